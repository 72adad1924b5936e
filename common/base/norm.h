// The Euclidean norm of two numbers. Thread-safe.
#ifndef DATACOM_COMMON_BASE_NORM_H_
#define DATACOM_COMMON_BASE_NORM_H_

#include <cmath>

namespace datacom {

// Not std::hypot: its bits depend on the C library, and programs that use it need glibc 2.35. Components beyond 1e150
// overflow.
inline double Norm(double a, double b) { return std::sqrt(a * a + b * b); }

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_NORM_H_
// SPDX-License-Identifier: Apache-2.0
