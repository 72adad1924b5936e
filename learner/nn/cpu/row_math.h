// Functions of single float32 numbers. NaN stays NaN. Local to the translation unit that includes them.
#ifndef DATACOM_LEARNER_NN_CPU_ROW_MATH_H_
#define DATACOM_LEARNER_NN_CPU_ROW_MATH_H_

#include <cmath>

namespace datacom::learner {
namespace {

inline float Clamp(float x, float low, float high) { return x < low ? low : (x > high ? high : x); }
inline float NonNegative(float x) { return x < 0 ? 0 : x; }
inline float Softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }
inline float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
inline float SoftplusSlope(float x) { return x > 20 ? 1.0f : Sigmoid(x); }

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_ROW_MATH_H_
// SPDX-License-Identifier: Apache-2.0
