// Means and confidence intervals over the members of a group. Pure functions.
#ifndef DATACOM_DEPLOY_REPORT_STATISTICS_H_
#define DATACOM_DEPLOY_REPORT_STATISTICS_H_

#include <vector>

namespace datacom::report {

// The t of Student's distribution with P(|T| <= t) = level, in (0, 1); the degrees of freedom need not be whole.
double StudentT(double freedom, double level = 0.95);

struct Interval {
  double mean = 0;
  double half = 0;  // half width of the 95 % interval of the mean (Student t); 0 for one value
  int count = 0;
  double least = 0, most = 0;  // of the values
};
// Over the finite values; count is 0 when there are none.
Interval MeanInterval(const std::vector<double>& values);

// Mean of the finite values without the lowest and the highest quarter (n / 4 values each, rounded down), and its 95 %
// percentile-bootstrap interval. The same values always give the same interval.
struct InterquartileMean {
  double mean = 0;
  double low = 0, high = 0;
  int count = 0;  // number of finite values
};
InterquartileMean ComputeInterquartileMean(std::vector<double> values);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_STATISTICS_H_
// SPDX-License-Identifier: Apache-2.0
