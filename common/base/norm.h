// The Euclidean norm of two numbers. Thread-safe.
#ifndef DATACOM_COMMON_BASE_NORM_H_
#define DATACOM_COMMON_BASE_NORM_H_

#include <cmath>

namespace datacom {

// std::hypot would give other bits with another C library, and would need glibc 2.35. Components beyond 1e150 overflow.
inline double Norm(double a, double b) { return std::sqrt(a * a + b * b); }

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_NORM_H_
// SPDX-License-Identifier: Apache-2.0
