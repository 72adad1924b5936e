#include "deploy/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/random.h"

namespace datacom::report {
namespace {

// Modified Lentz evaluation of the continued fraction of I_x(a, b); converges fast for x < (a + 1) / (a + b + 2).
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

// Mean of sorted values without the lowest and the highest quarter.
double MiddleMean(const std::vector<double>& sorted) {
  const size_t cut = sorted.size() / 4;
  double sum = 0;
  for (size_t i = cut; i < sorted.size() - cut; ++i) sum += sorted[i];
  return sum / static_cast<double>(sorted.size() - 2 * cut);
}

// The p-quantile of sorted values, linear between neighbours.
double Quantile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(at);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
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
  double sum = 0, least = 0, most = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = interval.count == 0 ? value : std::min(least, value);
    most = interval.count == 0 ? value : std::max(most, value);
    sum += value;
    ++interval.count;
  }
  if (interval.count == 0) {
    interval.mean = std::numeric_limits<double>::quiet_NaN();
    return interval;
  }
  // The mean of equal values is that value; a rounded mean would look like a spread.
  interval.mean = least == most ? least : sum / interval.count;
  if (least == most) return interval;
  double squares = 0;
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - interval.mean) * (value - interval.mean);
  }
  const double deviation = std::sqrt(squares / (interval.count - 1));
  interval.half = StudentT95(interval.count - 1) * deviation / std::sqrt(static_cast<double>(interval.count));
  return interval;
}

InterquartileMean ComputeInterquartileMean(std::vector<double> values) {
  constexpr int kResamples = 2000;
  values.erase(std::remove_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); }),
               values.end());
  InterquartileMean result;
  result.count = static_cast<int>(values.size());
  if (values.empty()) {
    result.mean = result.low = result.high = std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  std::sort(values.begin(), values.end());
  result.mean = MiddleMean(values);
  RandomStream stream(StreamKey("report.bootstrap", {values.size()}));
  std::vector<double> means, resample(values.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double& value : resample) value = values[stream.Below(values.size())];
    std::sort(resample.begin(), resample.end());
    means.push_back(MiddleMean(resample));
  }
  std::sort(means.begin(), means.end());
  result.low = Quantile(means, 0.025);
  result.high = Quantile(means, 0.975);
  return result;
}

}  // namespace datacom::report
