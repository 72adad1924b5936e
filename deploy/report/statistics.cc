#include "deploy/report/statistics.h"

#include <cmath>
#include <limits>

namespace datacom::report {
namespace {

// Modified Lentz evaluation of the continued fraction of I_x(a, b), good for x < (a + 1) / (a + b + 2).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kAccuracy = 1e-15;
  constexpr int kMaxTerms = 10000;
  auto guarded = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / guarded(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guarded(1 + even * d);
    c = guarded(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guarded(1 + odd * d);
    c = guarded(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < kAccuracy) break;
  }
  return fraction;
}

}  // namespace

double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double log_front = std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x);
  if (x < (a + 1) / (a + b + 2)) return std::exp(log_front) * BetaFraction(a, b, x) / a;
  return 1 - std::exp(log_front) * BetaFraction(b, a, 1 - x) / b;
}

double StudentT95(int degrees) {
  // P(|T| > t) = I_{v / (v + t^2)}(v / 2, 1 / 2), falling in t.
  const double v = degrees;
  double low = 1, high = 20;
  for (int i = 0; i < 200 && high - low > 1e-13 * high; ++i) {
    const double t = (low + high) / 2;
    (IncompleteBeta(v / 2, 0.5, v / (v + t * t)) > 0.05 ? low : high) = t;
  }
  return (low + high) / 2;
}

Interval MeanInterval(const std::vector<double>& values) {
  Interval interval;
  double sum = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++interval.count;
  }
  if (interval.count == 0) {
    interval.mean = std::numeric_limits<double>::quiet_NaN();
    return interval;
  }
  interval.mean = sum / interval.count;
  if (interval.count == 1) return interval;
  double squares = 0;
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - interval.mean) * (value - interval.mean);
  }
  const double deviation = std::sqrt(squares / (interval.count - 1));
  interval.half = StudentT95(interval.count - 1) * deviation / std::sqrt(static_cast<double>(interval.count));
  return interval;
}

}  // namespace datacom::report
