// The filter of a linear model of the next cost (docs/algorithms.md 12). Pure function, float64; thread-safe;
// allocates nothing.
#ifndef DATACOM_COMMON_SAFETY_COST_PROJECTION_H_
#define DATACOM_COMMON_SAFETY_COST_PROJECTION_H_

namespace datacom {

// Moves `action` along `slope` until the predicted cost, cost + <slope, action>, is `threshold`, if it is not below
// that already. slope, action, projected: [n]; projected may be action.
inline void ProjectToCostThreshold(int n, const double* slope, double cost, double threshold, const double* action,
                                   double* projected) {
  double predicted = cost, square = 1e-8;
  for (int i = 0; i < n; ++i) {
    predicted += slope[i] * action[i];
    square += slope[i] * slope[i];
  }
  const double share = predicted < threshold ? 0 : (predicted - threshold) / square;
  for (int i = 0; i < n; ++i) projected[i] = action[i] - share * slope[i];
}

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_COST_PROJECTION_H_
// SPDX-License-Identifier: Apache-2.0
