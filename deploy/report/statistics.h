// Mean and confidence interval over the members of a population. Pure functions.
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

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_STATISTICS_H_
