// float32 exponentials that compilers vectorise: polynomials without branches, within 2 ulp of the exact value. NaN
// stays NaN. Fused multiply-adds are explicit, so the bits are the same for every instruction set (build with
// -ffp-contract=off). The functions are local to the translation unit that includes them, because units are built for
// different instruction sets (loops_kernel.h).
#ifndef DATACOM_LEARNER_NN_CPU_FAST_MATH_H_
#define DATACOM_LEARNER_NN_CPU_FAST_MATH_H_

#include <cstdint>

namespace datacom::learner {
namespace {

inline float FusedMultiplyAdd(float a, float b, float sum) { return __builtin_fmaf(a, b, sum); }

// exp(x) for x in [-87, 88]; outside, the value at the nearer bound.
inline float FastExp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  // x = n ln2 + r with |r| <= ln2/2; adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const float shifted = FusedMultiplyAdd(x, 1.44269504088896341f, 12582912.0f);
  const float n = shifted - 12582912.0f;
  float r = FusedMultiplyAdd(n, -0.693359375f, x);
  r = FusedMultiplyAdd(n, 2.12194440e-4f, r);
  // Taylor terms through r^7: truncation below 5e-9 relative on |r| <= 0.3466.
  float p = 1.0f / 5040;
  p = FusedMultiplyAdd(p, r, 1.0f / 720);
  p = FusedMultiplyAdd(p, r, 1.0f / 120);
  p = FusedMultiplyAdd(p, r, 1.0f / 24);
  p = FusedMultiplyAdd(p, r, 1.0f / 6);
  p = FusedMultiplyAdd(p, r, 0.5f);
  p = FusedMultiplyAdd(p, r * r, r) + 1.0f;
  int32_t bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  const int32_t scale_bits = static_cast<int32_t>(static_cast<uint32_t>(bits + 127) << 23);
  float scale;
  __builtin_memcpy(&scale, &scale_bits, sizeof scale);
  return p * scale;
}

inline float FastSigmoid(float x) { return 1.0f / (1.0f + FastExp(-x)); }

// cos(pi n x) for whole n in [0, 2^20] and x in [0, 1], within 2e-7.
inline float FastCosPi(float n, float x) {
  const float product = n * x;
  const float whole = product + 12582912.0f - 12582912.0f;  // nearest integer
  const float r = FusedMultiplyAdd(n, x, -whole);           // cos(pi n x) = (-1)^whole cos(pi r), |r| <= 1/2
  const float t = r * r;
  // Taylor terms of cos(pi r) through r^12: truncation below 1e-8.
  float p = 1.9295743094039231e-3f;
  p = FusedMultiplyAdd(p, t, -2.5806891390014061e-2f);
  p = FusedMultiplyAdd(p, t, 2.3533063035889320e-1f);
  p = FusedMultiplyAdd(p, t, -1.3352627688545895f);
  p = FusedMultiplyAdd(p, t, 4.0587121264167682f);
  p = FusedMultiplyAdd(p, t, -4.9348022005446793f);
  p = FusedMultiplyAdd(p, t, 1.0f);
  const float half = whole * 0.5f;
  const float odd = whole - 2.0f * (half + 12582912.0f - 12582912.0f);  // -1, 0 or 1
  return p * (1.0f - 2.0f * odd * odd);
}

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_FAST_MATH_H_
// SPDX-License-Identifier: Apache-2.0
