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

void Activate(Activation activation, const float* __restrict bias, int rows, int n, int64_t stride,
              float* __restrict y) {
  for (int r = 0; r < rows; ++r, y += stride) {
    if (activation == Activation::kRelu) {
      for (int j = 0; j < n; ++j) {
        const float v = y[j] + bias[j];
        y[j] = v < 0.0f ? 0.0f : v;  // keeps NaN
      }
    } else {
      for (int j = 0; j < n; ++j) y[j] = FastSigmoid(y[j] + bias[j]);
    }
  }
}

inline void MultiplySlopeOfRow(Activation activation, const float* __restrict hidden, int n,
                               float* __restrict adjoint) {
  if (activation == Activation::kRelu) {
    for (int j = 0; j < n; ++j) adjoint[j] = hidden[j] > 0.0f ? adjoint[j] : 0.0f;
  } else {
    for (int j = 0; j < n; ++j) adjoint[j] *= hidden[j] * (1.0f - hidden[j]);
  }
}

void MultiplySlope(Activation activation, const float* hidden, int64_t hidden_stride, int rows, int n, float* adjoint,
                   int64_t stride) {
  for (int r = 0; r < rows; ++r, adjoint += stride, hidden += hidden_stride) {
    MultiplySlopeOfRow(activation, hidden, n, adjoint);
  }
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

void NarrowAdjoint(Activation activation, const float* d, int64_t d_stride, int outputs, const float* __restrict w,
                   const float* hidden, int64_t hidden_stride, int rows, int n, float* __restrict adjoint,
                   int64_t stride) {
  for (int r = 0; r < rows; ++r, adjoint += stride, hidden += hidden_stride, d += d_stride) {
    for (int j = 0; j < n; ++j) adjoint[j] = d[0] * w[j];
    for (int o = 1; o < outputs; ++o) {
      const float factor = d[o];
      const float* __restrict const column = w + static_cast<int64_t>(o) * n;
      for (int j = 0; j < n; ++j) adjoint[j] = FusedMultiplyAdd(factor, column[j], adjoint[j]);
    }
    MultiplySlopeOfRow(activation, hidden, n, adjoint);
  }
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
inline void TransposeBlock(const float* from, int64_t stride, float* to, int64_t to_stride) {
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
  for (int c = 0; c < whole_columns; c += 8) {
    for (int r = 0; r < whole_rows; r += 8) {
      TransposeBlock(from + r * stride + c, stride, to + static_cast<int64_t>(c) * rows + r, rows);
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

// As PyTorch's: denominator sqrt(v) / sqrt(1 - b2^t) + eps.
void Adam(const AdamStep& step) {
  const float* __restrict const g = step.gradient;
  float* __restrict const p = step.parameter;
  float* __restrict const first = step.first;
  float* __restrict const second = step.second;
  for (int j = 0; j < step.n; ++j) {
    const float a = FusedMultiplyAdd(0.9f, first[j], 0.1f * g[j]);
    const float b = FusedMultiplyAdd(0.999f, second[j], 0.001f * (g[j] * g[j]));
    first[j] = a;
    second[j] = b;
    p[j] -= step.step_size * a / FusedMultiplyAdd(__builtin_sqrtf(b), step.root, 1e-8f);
  }
}

void Polyak(const float* __restrict from, float take, float keep, int n, float* __restrict to) {
  for (int j = 0; j < n; ++j) to[j] = FusedMultiplyAdd(take, from[j], keep * to[j]);
}

void Cosines(float level, int n, float* __restrict features) {
  for (int i = 0; i < n; ++i) features[i] = FastCosPi(static_cast<float>(i), level);
}

void Sigmoid(int n, float* __restrict x) {
  for (int j = 0; j < n; ++j) x[j] = FastSigmoid(x[j]);
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
