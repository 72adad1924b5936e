// Sixteen float32 numbers, in one register of AVX-512, two of AVX2 or four of ARM, and functions of them. For the
// translation units of one instruction set (loops_kernel.h); all names are local to the unit. Include no header here
// whose inline functions other units use: the linker may keep this unit's copy, with AVX-512 instructions, for all of
// them. Fused multiply-adds are explicit and no operation depends on the processor's model, so all versions compute
// the same bits.
#ifndef DATACOM_LEARNER_NN_CPU_LANES_H_
#define DATACOM_LEARNER_NN_CPU_LANES_H_

#ifdef __x86_64__
#include <immintrin.h>
#else
#define SIMDE_ENABLE_NATIVE_ALIASES  // the same functions, from the instructions of this processor
#include <simde/x86/avx2.h>
#include <simde/x86/fma.h>
#endif

namespace datacom::learner {
namespace {

inline float FusedMultiplyAdd(float a, float b, float sum) { return __builtin_fmaf(a, b, sum); }

constexpr int kLanes = 16;
constexpr int kRootOfHalf = 0x3f3504f3;  // bits of sqrt(1/2)

#ifdef __AVX512F__
struct Lanes {
  __m512 all;
};
inline Lanes LoadLanes(const float* from) { return {_mm512_loadu_ps(from)}; }
inline Lanes LoadSome(const float* from, int n) { return {_mm512_maskz_loadu_ps((1 << n) - 1, from)}; }  // n < 16
inline void StoreSome(float* to, int n, Lanes value) { _mm512_mask_storeu_ps(to, (1 << n) - 1, value.all); }
inline Lanes FillLanes(float value) { return {_mm512_set1_ps(value)}; }
inline Lanes AddLanes(Lanes a, Lanes b) { return {_mm512_add_ps(a.all, b.all)}; }
inline Lanes MultiplyLanes(Lanes a, Lanes b) { return {_mm512_mul_ps(a.all, b.all)}; }
inline Lanes SubtractLanes(Lanes a, Lanes b) { return {_mm512_sub_ps(a.all, b.all)}; }
inline Lanes DivideLanes(Lanes a, Lanes b) { return {_mm512_div_ps(a.all, b.all)}; }
inline Lanes LargerLanes(Lanes bound, Lanes a) { return {_mm512_max_ps(bound.all, a.all)}; }  // a where it is NaN
inline Lanes SmallerLanes(Lanes bound, Lanes a) { return {_mm512_min_ps(bound.all, a.all)}; }
inline Lanes WherePositive(Lanes a, Lanes value) {  // 0 elsewhere
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.all, _mm512_setzero_ps(), _CMP_GT_OQ), value.all)};
}
inline Lanes WhereLess(Lanes a, Lanes b, Lanes yes, Lanes no) {
  return {_mm512_mask_mov_ps(no.all, _mm512_cmp_ps_mask(a.all, b.all, _CMP_LT_OQ), yes.all)};
}
// x = significand 2^exponent with a significand in [sqrt(1/2), sqrt(2)), for positive normal x.
inline void Split(Lanes x, Lanes* significand, Lanes* exponent) {
  const __m512i root = _mm512_set1_epi32(kRootOfHalf), bits = _mm512_sub_epi32(_mm512_castps_si512(x.all), root);
  const __m512i rest = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffff));
  significand->all = _mm512_castsi512_ps(_mm512_add_epi32(rest, root));
  exponent->all = _mm512_cvtepi32_ps(_mm512_srai_epi32(bits, 23));
}
inline Lanes PowersOfTwo(Lanes shifted) {  // of the whole numbers in the low bits
  const __m512i exponent = _mm512_add_epi32(_mm512_castps_si512(shifted.all), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23))};
}
inline Lanes RootOfLanes(Lanes a) { return {_mm512_sqrt_ps(a.all)}; }
inline Lanes FusedLanes(Lanes a, Lanes b, Lanes sum) { return {_mm512_fmadd_ps(a.all, b.all, sum.all)}; }
inline void StoreLanes(float* to, Lanes value) { _mm512_storeu_ps(to, value.all); }
inline __m256 SumOfHalves(Lanes value) {
  return _mm256_add_ps(_mm512_castps512_ps256(value.all), _mm512_extractf32x8_ps(value.all, 1));
}
#else
struct Lanes {
  __m256 low, high;
};
inline Lanes LoadLanes(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
inline __m256i First(int n) {  // all bits of the first n of eight numbers
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Lanes LoadSome(const float* from, int n) {  // n < 16
  return {_mm256_maskload_ps(from, First(n)), _mm256_maskload_ps(from + 8, First(n - 8))};
}
inline void StoreSome(float* to, int n, Lanes value) {
  _mm256_maskstore_ps(to, First(n), value.low);
  _mm256_maskstore_ps(to + 8, First(n - 8), value.high);
}
inline Lanes FillLanes(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
inline Lanes AddLanes(Lanes a, Lanes b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
inline Lanes MultiplyLanes(Lanes a, Lanes b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
inline Lanes SubtractLanes(Lanes a, Lanes b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
inline Lanes DivideLanes(Lanes a, Lanes b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
inline Lanes LargerLanes(Lanes bound, Lanes a) {  // a where it is NaN
  return {_mm256_max_ps(bound.low, a.low), _mm256_max_ps(bound.high, a.high)};
}
inline Lanes SmallerLanes(Lanes bound, Lanes a) {
  return {_mm256_min_ps(bound.low, a.low), _mm256_min_ps(bound.high, a.high)};
}
inline __m256 WherePositive(__m256 a, __m256 value) {
  return _mm256_and_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_GT_OQ), value);
}
inline Lanes WherePositive(Lanes a, Lanes value) {  // 0 elsewhere
  return {WherePositive(a.low, value.low), WherePositive(a.high, value.high)};
}
inline Lanes WhereLess(Lanes a, Lanes b, Lanes yes, Lanes no) {
  return {_mm256_blendv_ps(no.low, yes.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
          _mm256_blendv_ps(no.high, yes.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
}
inline void Split(__m256 x, __m256* significand, __m256* exponent) {
  const __m256i root = _mm256_set1_epi32(kRootOfHalf), bits = _mm256_sub_epi32(_mm256_castps_si256(x), root);
  const __m256i rest = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffff));
  *significand = _mm256_castsi256_ps(_mm256_add_epi32(rest, root));
  *exponent = _mm256_cvtepi32_ps(_mm256_srai_epi32(bits, 23));
}
// x = significand 2^exponent with a significand in [sqrt(1/2), sqrt(2)), for positive normal x.
inline void Split(Lanes x, Lanes* significand, Lanes* exponent) {
  Split(x.low, &significand->low, &exponent->low);
  Split(x.high, &significand->high, &exponent->high);
}
inline __m256 PowersOfTwo(__m256 shifted) {
  const __m256i exponent = _mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}
inline Lanes PowersOfTwo(Lanes shifted) {  // of the whole numbers in the low bits
  return {PowersOfTwo(shifted.low), PowersOfTwo(shifted.high)};
}
inline Lanes RootOfLanes(Lanes a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }
inline Lanes FusedLanes(Lanes a, Lanes b, Lanes sum) {
  return {_mm256_fmadd_ps(a.low, b.low, sum.low), _mm256_fmadd_ps(a.high, b.high, sum.high)};
}
inline void StoreLanes(float* to, Lanes value) {
  _mm256_storeu_ps(to, value.low);
  _mm256_storeu_ps(to + 8, value.high);
}
inline __m256 SumOfHalves(Lanes value) { return _mm256_add_ps(value.low, value.high); }
#endif

// exp(x) for x in [-87, 88] within 2 ulp; outside, the value at the nearer bound. NaN stays NaN. x = n ln2 + r with |r|
// <= ln2/2; adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. Taylor terms through r^7: truncation
// below 5e-9 relative.
inline Lanes ExpLanes(Lanes x) {
  x = SmallerLanes(FillLanes(88.0f), LargerLanes(FillLanes(-87.0f), x));
  const Lanes magic = FillLanes(12582912.0f);
  const Lanes shifted = FusedLanes(x, FillLanes(1.44269504088896341f), magic);
  const Lanes n = SubtractLanes(shifted, magic);
  const Lanes high = FusedLanes(n, FillLanes(-0.693359375f), x), r = FusedLanes(n, FillLanes(2.12194440e-4f), high);
  Lanes p = FusedLanes(FillLanes(1.0f / 5040), r, FillLanes(1.0f / 720));
  p = FusedLanes(p, r, FillLanes(1.0f / 120));
  p = FusedLanes(p, r, FillLanes(1.0f / 24));
  p = FusedLanes(p, r, FillLanes(1.0f / 6));
  p = FusedLanes(p, r, FillLanes(0.5f));
  p = AddLanes(FusedLanes(p, MultiplyLanes(r, r), r), FillLanes(1.0f));
  return MultiplyLanes(p, PowersOfTwo(shifted));
}
inline Lanes NegativeLanes(Lanes x) { return SubtractLanes(FillLanes(-0.0f), x); }
inline Lanes SigmoidLanes(Lanes x) {
  const Lanes one = FillLanes(1);
  return DivideLanes(one, AddLanes(one, ExpLanes(NegativeLanes(x))));
}

// c[0] x^(N-1) + .. + c[N-1].
template <int N>
inline Lanes PolynomialLanes(const float (&c)[N], Lanes x) {
  Lanes sum = FillLanes(c[0]);
  for (int i = 1; i < N; ++i) sum = FusedLanes(sum, x, FillLanes(c[i]));
  return sum;
}

// Logarithm of positive normal numbers, within 3 ulp. NaN stays NaN.
inline Lanes LogLanes(Lanes x) {
  constexpr float kTerms[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                              -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                              2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  Lanes m, e;
  Split(x, &m, &e);
  m = SubtractLanes(m, FillLanes(1));
  const Lanes square = MultiplyLanes(m, m);
  Lanes sum = MultiplyLanes(PolynomialLanes(kTerms, m), MultiplyLanes(m, square));
  sum = FusedLanes(e, FillLanes(-2.12194440e-4f), sum);
  sum = AddLanes(m, FusedLanes(FillLanes(-0.5f), square, sum));
  return FusedLanes(x, FillLanes(0), FusedLanes(e, FillLanes(0.693359375f), sum));
}

// Hyperbolic tangent within 3 ulp: a polynomial near 0, 1 - 2 / (exp(2x) + 1) elsewhere.
inline Lanes TanhLanes(Lanes x) {
  constexpr float kTerms[] = {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
                              -3.33332819422e-1f};
  const Lanes one = FillLanes(1), square = MultiplyLanes(x, x);
  const Lanes near = FusedLanes(MultiplyLanes(PolynomialLanes(kTerms, square), square), x, x);
  const Lanes far = SubtractLanes(one, DivideLanes(FillLanes(2), AddLanes(ExpLanes(AddLanes(x, x)), one)));
  return WhereLess(square, FillLanes(0.625f * 0.625f), near, far);
}

// log(1 + exp(x)) = max(x, 0) + log1p(t), t = exp(-|x|), by 2 atanh(t / (2 + t)), within 3 ulp.
inline Lanes SoftplusLanes(Lanes x) {
  constexpr float kTerms[] = {1.0f / 15, 1.0f / 13, 1.0f / 11, 1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3};
  const Lanes t = ExpLanes(SmallerLanes(NegativeLanes(x), x));
  const Lanes s = DivideLanes(t, AddLanes(FillLanes(2), t)), square = MultiplyLanes(s, s);
  const Lanes half = FusedLanes(MultiplyLanes(PolynomialLanes(kTerms, square), square), s, s);
  return AddLanes(LargerLanes(FillLanes(0), x), AddLanes(half, half));
}

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_LANES_H_
// SPDX-License-Identifier: Apache-2.0
