// Means and confidence intervals over the members of a group. Pure functions.
#ifndef DATACOM_DEPLOY_REPORT_STATISTICS_H_
#define DATACOM_DEPLOY_REPORT_STATISTICS_H_

#include <vector>

namespace datacom::report {

// Regularised incomplete beta function I_x(a, b), a, b > 0, x in [0, 1]; continued fraction to about 1e-14.
double IncompleteBeta(double a, double b, double x);

// The t with P(|T| <= t) = 0.95 for Student's distribution with `degrees` >= 1 degrees of freedom.
double StudentT95(int degrees);

struct Interval {
  double mean = 0;
  double half = 0;  // half width of the 95 % interval of the mean; 0 for one value
  int count = 0;
};
// Of the values that are finite; count 0 when there is none.
Interval MeanInterval(const std::vector<double>& values);

// Mean of what is left of the finite values without the lowest and the highest quarter (each n / 4, rounded down), and
// the interval that holds 95 % of the means of resampled values (percentile bootstrap; the same for the same values).
struct InterquartileMean {
  double mean = 0;
  double low = 0, high = 0;
  int count = 0;  // of values before any is left out; 0 when none is finite
};
InterquartileMean ComputeInterquartileMean(std::vector<double> values);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_STATISTICS_H_
