// float32 exponentials that compilers vectorise: branch-free polynomials, within 2 ulp of exact. NaN stays NaN.
#ifndef DATACOM_LEARNER_NN_FAST_MATH_H_
#define DATACOM_LEARNER_NN_FAST_MATH_H_

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

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_FAST_MATH_H_
