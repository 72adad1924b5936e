// float32 exponentials that compilers vectorise: branch-free polynomials, within 2 ulp of exact. NaN stays NaN.
#ifndef DATACOM_LEARNER_NN_FAST_MATH_H_
#define DATACOM_LEARNER_NN_FAST_MATH_H_

#include <cmath>
#include <cstdint>
#include <cstring>

namespace datacom::learner {

// exp(x) for x in [-87, 88]; beyond, the value at the bound.
inline float FastExp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  // x = n ln2 + r with |r| <= ln2/2; adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const float shifted = x * 1.44269504088896341f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  float r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  // Taylor terms through r^7: truncation below 5e-9 relative on |r| <= 0.3466.
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1.0f;
  int32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  const int32_t scale_bits = static_cast<int32_t>(static_cast<uint32_t>(bits + 127) << 23);
  float scale;
  std::memcpy(&scale, &scale_bits, sizeof scale);
  return p * scale;
}

inline float FastSigmoid(float x) { return 1.0f / (1.0f + FastExp(-x)); }

// cos(pi n x) for whole n in [0, 2^20] and x in [0, 1], within 2e-7.
inline float FastCosPi(float n, float x) {
  const float product = n * x;
  const float whole = product + 12582912.0f - 12582912.0f;  // nearest integer
  const float r = std::fma(n, x, -whole);                   // cos(pi n x) = (-1)^whole cos(pi r), |r| <= 1/2
  const float t = r * r;
  // Taylor terms of cos(pi r) through r^12: truncation below 1e-8.
  float p = 1.9295743094039231e-3f;
  p = p * t - 2.5806891390014061e-2f;
  p = p * t + 2.3533063035889320e-1f;
  p = p * t - 1.3352627688545895f;
  p = p * t + 4.0587121264167682f;
  p = p * t - 4.9348022005446793f;
  p = p * t + 1.0f;
  const float half = whole * 0.5f;
  const float odd = whole - 2.0f * (half + 12582912.0f - 12582912.0f);  // -1, 0 or 1
  return p * (1.0f - 2.0f * odd * odd);
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_FAST_MATH_H_
