#include "deploy/report/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "common/base/random.h"

namespace datacom::report {
namespace {

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

double StudentT(double freedom, double level) {
  return boost::math::quantile(boost::math::students_t(freedom), (1 + level) / 2);
}

Interval MeanInterval(const std::vector<double>& values) {
  Interval interval;
  double sum = 0, &least = interval.least, &most = interval.most;
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
  interval.half = StudentT(interval.count - 1) * deviation / std::sqrt(static_cast<double>(interval.count));
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
// SPDX-License-Identifier: Apache-2.0
