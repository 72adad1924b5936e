// Extremes for checks of a bound: std::max and std::min can drop a NaN, and the check would pass. Header only, no
// dependencies; pure functions, thread-safe.
#ifndef DATACOM_TESTS_TESTING_LARGER_OR_NAN_H_
#define DATACOM_TESTS_TESTING_LARGER_OR_NAN_H_

#include <cmath>

namespace datacom::testing {

// The larger of two; NaN if either is NaN.
inline double LargerOrNan(double a, double b) { return std::isnan(a) || a > b ? a : b; }
// The smaller of two; NaN if either is NaN.
inline double SmallerOrNan(double a, double b) { return std::isnan(a) || a < b ? a : b; }

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_LARGER_OR_NAN_H_
// SPDX-License-Identifier: Apache-2.0
