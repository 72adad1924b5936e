// The loops of loops.h for the instruction set of the unit that includes this. All names are local to that unit, and
// nothing is included that other units share code of, so that no wide instruction gets into code shared with others.
// Every operation is on sixteen lanes, one register of AVX-512 or two of AVX2, or on single numbers in a loop that the
// compiler vectorises without reordering; fused multiply-adds are written out. So both units compute the same bits.
#ifndef DATACOM_LEARNER_NN_LOOPS_KERNEL_H_
#define DATACOM_LEARNER_NN_LOOPS_KERNEL_H_

#include <immintrin.h>

#include "learner/nn/fast_math.h"
#include "learner/nn/loops.h"

namespace datacom::learner {
namespace {

constexpr int kLanes = 16;

#ifdef __AVX512F__
struct Lanes {
  __m512 all;
};
inline Lanes LoadLanes(const float* from) { return {_mm512_loadu_ps(from)}; }
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

// The sums of eight vectors' lanes, each by the tree (i, i + 4), (i, i + 2), (i, i + 1).
inline __m256 SumsOfEight(const __m256* v) {
  __m256 four[4], two[2];
  for (int i = 0; i < 4; ++i) {
    four[i] = _mm256_add_ps(_mm256_permute2f128_ps(v[i], v[i + 4], 0x20), _mm256_permute2f128_ps(v[i], v[i + 4], 0x31));
  }
  for (int i = 0; i < 2; ++i) {
    const __m256 a = four[2 * i], b = four[2 * i + 1];
    two[i] = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
  }
  return _mm256_add_ps(_mm256_shuffle_ps(two[0], two[1], 0x88), _mm256_shuffle_ps(two[0], two[1], 0xdd));
}

// FastExp and FastSigmoid, the same operations.
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
inline Lanes SigmoidLanes(Lanes x) {
  const Lanes one = FillLanes(1);
  return DivideLanes(one, AddLanes(one, ExpLanes(SubtractLanes(FillLanes(-0.0f), x))));
}

template <Activation kind>
inline Lanes ActivationLanes(Lanes x) {
  return kind == Activation::kRelu ? LargerLanes(FillLanes(0), x) : SigmoidLanes(x);
}
template <Activation kind>
inline float ActivationOf(float x) {
  return kind == Activation::kRelu ? (x < 0.0f ? 0.0f : x) : FastSigmoid(x);  // keeps NaN
}

// value * act'(hidden).
template <Activation kind>
inline Lanes SlopeLanes(Lanes hidden, Lanes value) {
  if (kind == Activation::kRelu) return WherePositive(hidden, value);
  return MultiplyLanes(value, MultiplyLanes(hidden, SubtractLanes(FillLanes(1), hidden)));
}
template <Activation kind>
inline float SlopeOf(float hidden, float value) {
  if (kind == Activation::kRelu) return hidden > 0.0f ? value : 0.0f;
  return value * (hidden * (1.0f - hidden));
}

template <Activation kind>
void ActivateBy(const float* bias, int rows, int n, int64_t stride, float* y) {
  for (int r = 0; r < rows; ++r, y += stride) {
    int j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      StoreLanes(y + j, ActivationLanes<kind>(AddLanes(LoadLanes(y + j), LoadLanes(bias + j))));
    }
    for (; j < n; ++j) y[j] = ActivationOf<kind>(y[j] + bias[j]);
  }
}

void Activate(Activation activation, const float* bias, int rows, int n, int64_t stride, float* y) {
  (activation == Activation::kRelu ? ActivateBy<Activation::kRelu> : ActivateBy<Activation::kSigmoid>)(bias, rows, n,
                                                                                                       stride, y);
}

template <Activation kind>
void MultiplySlopeBy(const float* hidden, int64_t hidden_stride, int rows, int n, float* adjoint, int64_t stride) {
  for (int r = 0; r < rows; ++r, adjoint += stride, hidden += hidden_stride) {
    int j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      StoreLanes(adjoint + j, SlopeLanes<kind>(LoadLanes(hidden + j), LoadLanes(adjoint + j)));
    }
    for (; j < n; ++j) adjoint[j] = SlopeOf<kind>(hidden[j], adjoint[j]);
  }
}

void MultiplySlope(Activation activation, const float* hidden, int64_t hidden_stride, int rows, int n, float* adjoint,
                   int64_t stride) {
  (activation == Activation::kRelu
       ? MultiplySlopeBy<Activation::kRelu>
       : MultiplySlopeBy<Activation::kSigmoid>)(hidden, hidden_stride, rows, n, adjoint, stride);
}

// The inner products of eight rows with w. The rows may be the same.
inline __m256 EightProducts(const float* const* row, int n, const float* w) {
  Lanes sum[8];
  for (Lanes& lanes : sum) lanes = FillLanes(0);
  int j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    const Lanes factor = LoadLanes(w + j);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sum[i] = FusedLanes(LoadLanes(row[i] + j), factor, sum[i]);
  }
  __m256 half[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) half[i] = SumOfHalves(sum[i]);
  const __m256 total = SumsOfEight(half);
  if (j == n) return total;
  alignas(32) float rest[8];
  for (int i = 0; i < 8; ++i) {
    rest[i] = 0;
    for (int k = j; k < n; ++k) rest[i] = FusedMultiplyAdd(row[i][k], w[k], rest[i]);
  }
  return _mm256_add_ps(total, _mm256_load_ps(rest));
}

void NarrowProduct(const float* x, int64_t x_stride, int rows, int n, const float* w, int outputs, const float* bias,
                   bool add, float* y, int64_t stride) {
  for (int first = 0; first < rows; first += 8) {
    const int count = rows - first < 8 ? rows - first : 8;
    const float* row[8];
    for (int i = 0; i < 8; ++i) row[i] = x + (first + (i < count ? i : 0)) * x_stride;
    for (int o = 0; o < outputs; ++o) {
      alignas(32) float product[8];
      const __m256 start = _mm256_set1_ps(bias == nullptr ? 0.0f : bias[o]);
      _mm256_store_ps(product, _mm256_add_ps(start, EightProducts(row, n, w + static_cast<int64_t>(o) * n)));
      float* to = y + first * stride + o;
      for (int i = 0; i < count; ++i, to += stride) *to = add ? *to + product[i] : product[i];
    }
  }
}

// The gradients of one row, sixteen of them, before the activation.
inline Lanes NarrowGradient(const float* d, int outputs, const float* w, int n) {
  Lanes sum = MultiplyLanes(FillLanes(d[0]), LoadLanes(w));
  for (int o = 1; o < outputs; ++o) {
    sum = FusedLanes(FillLanes(d[o]), LoadLanes(w + static_cast<int64_t>(o) * n), sum);
  }
  return sum;
}

template <Activation kind>
void NarrowAdjointBy(const float* d, int64_t d_stride, int outputs, const float* w, const float* hidden,
                     int64_t hidden_stride, int rows, int n, float* adjoint, int64_t stride) {
  for (int r = 0; r < rows; ++r, adjoint += stride, hidden += hidden_stride, d += d_stride) {
    int j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      StoreLanes(adjoint + j, SlopeLanes<kind>(LoadLanes(hidden + j), NarrowGradient(d, outputs, w + j, n)));
    }
    for (; j < n; ++j) {
      float sum = d[0] * w[j];
      for (int o = 1; o < outputs; ++o) sum = FusedMultiplyAdd(d[o], w[static_cast<int64_t>(o) * n + j], sum);
      adjoint[j] = SlopeOf<kind>(hidden[j], sum);
    }
  }
}

void NarrowAdjoint(Activation activation, const float* d, int64_t d_stride, int outputs, const float* w,
                   const float* hidden, int64_t hidden_stride, int rows, int n, float* adjoint, int64_t stride) {
  (activation == Activation::kRelu ? NarrowAdjointBy<Activation::kRelu>
                                   : NarrowAdjointBy<Activation::kSigmoid>)(d, d_stride, outputs, w, hidden,
                                                                            hidden_stride, rows, n, adjoint, stride);
}

// `Count` vectors of columns, summed in registers; d null: of weight one.
template <int Count>
inline void SumColumns(const float* x, int64_t stride, const float* d, int64_t d_stride, int rows, float* sums) {
  Lanes sum[Count];
  for (Lanes& lanes : sum) lanes = FillLanes(0);
  for (int r = 0; r < rows; ++r, x += stride) {
    if (d == nullptr) {
#pragma GCC unroll 4
      for (int i = 0; i < Count; ++i) sum[i] = AddLanes(sum[i], LoadLanes(x + i * kLanes));
    } else {
      const Lanes weight = FillLanes(d[r * d_stride]);
#pragma GCC unroll 4
      for (int i = 0; i < Count; ++i) sum[i] = FusedLanes(weight, LoadLanes(x + i * kLanes), sum[i]);
    }
  }
  for (int i = 0; i < Count; ++i) StoreLanes(sums + i * kLanes, sum[i]);
}

void WeightedColumnSums(const float* x, int64_t stride, const float* d, int64_t d_stride, int rows, int n,
                        float* sums) {
  int j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes) SumColumns<4>(x + j, stride, d, d_stride, rows, sums + j);
  for (; j + kLanes <= n; j += kLanes) SumColumns<1>(x + j, stride, d, d_stride, rows, sums + j);
  for (; j < n; ++j) {
    float sum = 0;
    for (int r = 0; r < rows; ++r) {
      sum = d == nullptr ? sum + x[r * stride + j] : FusedMultiplyAdd(d[r * d_stride], x[r * stride + j], sum);
    }
    sums[j] = sum;
  }
}

void ColumnSums(const float* x, int64_t stride, int rows, int n, float* sums) {
  WeightedColumnSums(x, stride, /*d=*/nullptr, 0, rows, n, sums);
}

void AddScaledRows(const float* __restrict x, int64_t stride, const float* __restrict scale, int64_t scale_stride,
                   int rows, int n, float* __restrict to, int64_t to_stride) {
  for (int r = 0; r < rows; ++r, x += stride, to += to_stride) {
    const float factor = scale[r * scale_stride];
    for (int j = 0; j < n; ++j) to[j] = FusedMultiplyAdd(factor, x[j], to[j]);
  }
}

void ScaleRows(const float* __restrict scale, int64_t scale_stride, int rows, int n, float* __restrict x,
               int64_t stride) {
  for (int r = 0; r < rows; ++r, x += stride) {
    const float factor = scale[r * scale_stride];
    for (int j = 0; j < n; ++j) x[j] *= factor;
  }
}

// An 8 x 8 block: pairs of rows, then pairs of pairs, then the halves.
[[gnu::always_inline]] inline void TransposeBlock(const float* from, int64_t stride, float* to, int64_t to_stride) {
  __m256 row[8], pair[8];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {  // row i has rows i and i + 4 of the left half, row i + 4 those of the right half
    const float* const above = from + i * stride;
    const float* const below = above + 4 * stride;
    row[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(above)), _mm_loadu_ps(below), 1);
    row[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(above + 4)), _mm_loadu_ps(below + 4), 1);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 4) {
    _mm256_storeu_ps(to + i * to_stride, _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44));
    _mm256_storeu_ps(to + (i + 1) * to_stride, _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee));
    _mm256_storeu_ps(to + (i + 2) * to_stride, _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44));
    _mm256_storeu_ps(to + (i + 3) * to_stride, _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee));
  }
}

void Transpose(const float* from, int64_t stride, int rows, int columns, float* to) {
  const int whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
  for (int c = 0; c < whole_columns; c += 16) {  // two blocks: whole cache lines of `from`
    for (int r = 0; r < whole_rows; r += 8) {
      const float* const block = from + r * stride + c;
      TransposeBlock(block, stride, to + static_cast<int64_t>(c) * rows + r, rows);
      if (c + 8 < whole_columns) TransposeBlock(block + 8, stride, to + static_cast<int64_t>(c + 8) * rows + r, rows);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      to[static_cast<int64_t>(c) * rows + r] = from[r * stride + c];
    }
  }
}

// x * 0 is 0 for finite x and NaN otherwise.
bool AllFinite(const float* x, int n) {
  Lanes sum[4];
  for (Lanes& lanes : sum) lanes = FillLanes(0);
  const Lanes zero = FillLanes(0);
  int j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sum[i] = FusedLanes(LoadLanes(x + j + i * kLanes), zero, sum[i]);
  }
  float lane[kLanes], total = 0;
  StoreLanes(lane, AddLanes(AddLanes(sum[0], sum[1]), AddLanes(sum[2], sum[3])));
  for (float value : lane) total += value;
  for (; j < n; ++j) total += x[j] * 0.0f;
  return total == 0.0f;
}

// Optimisers walk through more memory than the nearer caches hold. The processor's own prefetching stops at the end of
// every page, this does not. Reading ahead past the end does nothing.
inline void ReadAhead(const float* from) {
  constexpr int kFloats = 512;
  _mm_prefetch(reinterpret_cast<const char*>(from + kFloats), _MM_HINT_T0);
}

// As PyTorch's: denominator sqrt(v) / sqrt(1 - b2^t) + eps.
void Adam(const AdamStep& step) {
  const float* const g = step.gradient;
  float *const p = step.parameter, *const first = step.first, *const second = step.second;
  const Lanes b1 = FillLanes(0.9f), c1 = FillLanes(0.1f), b2 = FillLanes(0.999f), c2 = FillLanes(0.001f);
  const Lanes size = FillLanes(-step.step_size), root = FillLanes(step.root), epsilon = FillLanes(1e-8f);
  int j = 0;
  for (; j + kLanes <= step.n; j += kLanes) {
    ReadAhead(p + j), ReadAhead(first + j), ReadAhead(second + j);
    const Lanes gradient = LoadLanes(g + j);
    const Lanes a = FusedLanes(b1, LoadLanes(first + j), MultiplyLanes(c1, gradient));
    const Lanes square = MultiplyLanes(c2, MultiplyLanes(gradient, gradient));
    const Lanes b = FusedLanes(b2, LoadLanes(second + j), square);
    StoreLanes(first + j, a);
    StoreLanes(second + j, b);
    const Lanes change = DivideLanes(MultiplyLanes(size, a), FusedLanes(RootOfLanes(b), root, epsilon));
    StoreLanes(p + j, AddLanes(LoadLanes(p + j), change));
  }
  for (; j < step.n; ++j) {
    first[j] = FusedMultiplyAdd(0.9f, first[j], 0.1f * g[j]);
    second[j] = FusedMultiplyAdd(0.999f, second[j], 0.001f * (g[j] * g[j]));
    p[j] += -step.step_size * first[j] / FusedMultiplyAdd(__builtin_sqrtf(second[j]), step.root, 1e-8f);
  }
}

void Polyak(const float* from, float take, float keep, int n, float* to) {
  const Lanes taken = FillLanes(take), kept = FillLanes(keep);
  int j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    ReadAhead(from + j), ReadAhead(to + j);
    StoreLanes(to + j, FusedLanes(taken, LoadLanes(from + j), MultiplyLanes(kept, LoadLanes(to + j))));
  }
  for (; j < n; ++j) to[j] = FusedMultiplyAdd(take, from[j], keep * to[j]);
}

void Cosines(float level, int n, float* __restrict features) {
  for (int i = 0; i < n; ++i) features[i] = FastCosPi(static_cast<float>(i), level);
}

void Sigmoid(int n, float* x) {
  int j = 0;
  for (; j + kLanes <= n; j += kLanes) StoreLanes(x + j, SigmoidLanes(LoadLanes(x + j)));
  for (; j < n; ++j) x[j] = FastSigmoid(x[j]);
}

void Gated(const float* __restrict base, const float* __restrict gate, int n, float* __restrict product) {
  for (int j = 0; j < n; ++j) product[j] = (base[j] < 0.0f ? 0.0f : base[j]) * gate[j];  // keeps NaN
}

void GatedGradient(const float* __restrict base, const float* __restrict gate, int n, float* __restrict d_base,
                   float* __restrict d_product) {
  for (int j = 0; j < n; ++j) {
    const float open = base[j] > 0.0f ? d_product[j] * gate[j] : 0.0f;
    d_base[j] += open;
    d_product[j] = open * base[j] * (1.0f - gate[j]);
  }
}

void QuantileHuber(const float* __restrict quantile, const float* __restrict level, const float* __restrict target,
                   int targets, float* __restrict sum, float* __restrict slope) {
  float total[kLanes] = {}, gradient[kLanes] = {};
  for (int j = 0; j < targets; ++j) {
    for (int i = 0; i < kLanes; ++i) {
      const float e = target[j] - quantile[i], size = e < 0.0f ? -e : e;
      const float weight = e < 0.0f ? 1.0f - level[i] : level[i];
      total[i] += weight * (size < 1.0f ? 0.5f * e * e : size - 0.5f);
      gradient[i] -= weight * (size < 1.0f ? e : (e < 0.0f ? -1.0f : 1.0f));
    }
  }
  for (int i = 0; i < kLanes; ++i) sum[i] = total[i], slope[i] = gradient[i];
}

constexpr Loops kLoops = {Activate,      MultiplySlope, NarrowProduct, NarrowAdjoint, ColumnSums,   WeightedColumnSums,
                          AddScaledRows, ScaleRows,     Transpose,     AllFinite,     Adam,         Polyak,
                          Cosines,       Sigmoid,       Gated,         GatedGradient, QuantileHuber};

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_LOOPS_KERNEL_H_
