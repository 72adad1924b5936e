// The loops of loops.h for perceptrons, for the instruction set of the translation unit that includes this; names are
// local to it (lanes.h).
#ifndef DATACOM_LEARNER_NN_CPU_DENSE_LOOPS_H_
#define DATACOM_LEARNER_NN_CPU_DENSE_LOOPS_H_

#include "learner/nn/cpu/lanes.h"
#include "learner/nn/cpu/loops.h"

namespace datacom::learner {
namespace {

// The sum over the lanes of each of eight vectors, by the tree (i, i + 4), (i, i + 2), (i, i + 1).
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

template <Activation A>
inline Lanes ActivationLanes(Lanes x) {
  if (A == Activation::kRelu) return LargerLanes(FillLanes(0), x);
  return A == Activation::kSigmoid ? SigmoidLanes(x) : TanhLanes(x);
}
// Of one number, with the bits of ActivationLanes.
template <Activation A>
inline float ActivationOf(float x) {
  if (A == Activation::kRelu) return x < 0.0f ? 0.0f : x;  // keeps NaN
  float lanes[kLanes];
  StoreLanes(lanes, ActivationLanes<A>(FillLanes(x)));
  return lanes[0];
}

// value * act'(hidden).
template <Activation A>
inline Lanes SlopeLanes(Lanes hidden, Lanes value) {
  if (A == Activation::kRelu) return WherePositive(hidden, value);
  const Lanes one = FillLanes(1);
  if (A == Activation::kTanh) return MultiplyLanes(value, SubtractLanes(one, MultiplyLanes(hidden, hidden)));
  return MultiplyLanes(value, MultiplyLanes(hidden, SubtractLanes(one, hidden)));
}
template <Activation A>
inline float SlopeOf(float hidden, float value) {
  if (A == Activation::kRelu) return hidden > 0.0f ? value : 0.0f;
  return value * (A == Activation::kTanh ? 1.0f - hidden * hidden : hidden * (1.0f - hidden));
}

// A compile-time constant. (std::integral_constant has inline functions that other units use.)
template <Activation A>
struct Kind {
  constexpr Activation operator()() const { return A; }
};
// Calls work with the constant of this activation.
template <class Work>
inline void ForKind(Activation activation, const Work& work) {
  if (activation == Activation::kRelu) work(Kind<Activation::kRelu>());
  if (activation == Activation::kSigmoid) work(Kind<Activation::kSigmoid>());
  if (activation == Activation::kTanh) work(Kind<Activation::kTanh>());
}

template <Activation A>
void ActivateBy(const float* bias, int rows, int n, int64_t stride, float* y) {
  for (int r = 0; r < rows; ++r, y += stride) {
    int j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      StoreLanes(y + j, ActivationLanes<A>(AddLanes(LoadLanes(y + j), LoadLanes(bias + j))));
    }
    for (; j < n; ++j) y[j] = ActivationOf<A>(y[j] + bias[j]);
  }
}

void Activate(Activation activation, const float* bias, int rows, int n, int64_t stride, float* y) {
  ForKind(activation, [&](auto kind) { ActivateBy<kind()>(bias, rows, n, stride, y); });
}

template <Activation A>
void MultiplySlopeBy(const float* hidden, int64_t hidden_stride, int rows, int n, float* adjoint, int64_t stride) {
  for (int r = 0; r < rows; ++r, adjoint += stride, hidden += hidden_stride) {
    int j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      StoreLanes(adjoint + j, SlopeLanes<A>(LoadLanes(hidden + j), LoadLanes(adjoint + j)));
    }
    for (; j < n; ++j) adjoint[j] = SlopeOf<A>(hidden[j], adjoint[j]);
  }
}

void MultiplySlope(Activation activation, const float* hidden, int64_t hidden_stride, int rows, int n, float* adjoint,
                   int64_t stride) {
  ForKind(activation, [&](auto kind) { MultiplySlopeBy<kind()>(hidden, hidden_stride, rows, n, adjoint, stride); });
}

// Inner products of eight rows with w. Rows may coincide.
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

// Sixteen gradients of one row, before the activation's slope is applied.
inline Lanes NarrowGradient(const float* d, int outputs, const float* w, int n) {
  Lanes sum = MultiplyLanes(FillLanes(d[0]), LoadLanes(w));
  for (int o = 1; o < outputs; ++o) {
    sum = FusedLanes(FillLanes(d[o]), LoadLanes(w + static_cast<int64_t>(o) * n), sum);
  }
  return sum;
}

template <Activation A>
void NarrowAdjointBy(const float* d, int64_t d_stride, int outputs, const float* w, const float* hidden,
                     int64_t hidden_stride, int rows, int n, float* adjoint, int64_t stride) {
  for (int r = 0; r < rows; ++r, adjoint += stride, hidden += hidden_stride, d += d_stride) {
    int j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      StoreLanes(adjoint + j, SlopeLanes<A>(LoadLanes(hidden + j), NarrowGradient(d, outputs, w + j, n)));
    }
    for (; j < n; ++j) {
      float sum = d[0] * w[j];
      for (int o = 1; o < outputs; ++o) sum = FusedMultiplyAdd(d[o], w[static_cast<int64_t>(o) * n + j], sum);
      adjoint[j] = SlopeOf<A>(hidden[j], sum);
    }
  }
}

void NarrowAdjoint(Activation activation, const float* d, int64_t d_stride, int outputs, const float* w,
                   const float* hidden, int64_t hidden_stride, int rows, int n, float* adjoint, int64_t stride) {
  ForKind(activation, [&](auto kind) {
    NarrowAdjointBy<kind()>(d, d_stride, outputs, w, hidden, hidden_stride, rows, n, adjoint, stride);
  });
}

// Sums of `Count` vectors of columns in registers; if d is null, all weights are one.
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

// Transposes a square block as wide as a register: exchanges quarters (halves) of rows, then pairs of rows, then pairs
// of pairs.
#ifdef __AVX512F__
constexpr int kBlock = 16;
using Row = __m512;
inline Row FourRowsApart(const float* from, int64_t stride) {
  const __m256 near =
      _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), _mm_loadu_ps(from + 4 * stride), 1);
  const __m256 far = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + 8 * stride)),
                                          _mm_loadu_ps(from + 12 * stride), 1);
  return _mm512_insertf32x8(_mm512_castps256_ps512(near), far, 1);
}
inline Row LowPairs(Row a, Row b) { return _mm512_unpacklo_ps(a, b); }
inline Row HighPairs(Row a, Row b) { return _mm512_unpackhi_ps(a, b); }
template <int Order>
inline void StoreShuffled(float* to, Row a, Row b) {
  _mm512_storeu_ps(to, _mm512_shuffle_ps(a, b, Order));
}
#else
constexpr int kBlock = 8;
using Row = __m256;
inline Row FourRowsApart(const float* from, int64_t stride) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), _mm_loadu_ps(from + 4 * stride), 1);
}
inline Row LowPairs(Row a, Row b) { return _mm256_unpacklo_ps(a, b); }
inline Row HighPairs(Row a, Row b) { return _mm256_unpackhi_ps(a, b); }
template <int Order>
inline void StoreShuffled(float* to, Row a, Row b) {
  _mm256_storeu_ps(to, _mm256_shuffle_ps(a, b, Order));
}
#endif

inline void TransposeBlock(const float* from, int64_t stride, float* to, int64_t to_stride) {
  for (int c = 0; c < kBlock; c += 4) {
    Row row[4];
    for (int i = 0; i < 4; ++i) row[i] = FourRowsApart(from + c + i * stride, stride);
    const Row low0 = LowPairs(row[0], row[1]), high0 = HighPairs(row[0], row[1]);
    const Row low1 = LowPairs(row[2], row[3]), high1 = HighPairs(row[2], row[3]);
    float* const column = to + c * to_stride;
    StoreShuffled<0x44>(column, low0, low1);
    StoreShuffled<0xee>(column + to_stride, low0, low1);
    StoreShuffled<0x44>(column + 2 * to_stride, high0, high1);
    StoreShuffled<0xee>(column + 3 * to_stride, high0, high1);
  }
}

void Transpose(const float* from, int64_t stride, int rows, int columns, float* to, int64_t to_stride) {
  const int whole_rows = rows / kBlock * kBlock, whole_columns = columns / kBlock * kBlock;
  for (int first = 0; first < whole_columns; first += 16) {  // whole cache lines of `from`
    for (int r = 0; r < whole_rows; r += kBlock) {
      for (int c = first; c < first + 16 && c < whole_columns; c += kBlock) {
        TransposeBlock(from + r * stride + c, stride, to + c * to_stride + r, to_stride);
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      to[c * to_stride + r] = from[r * stride + c];
    }
  }
}

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_DENSE_LOOPS_H_
// SPDX-License-Identifier: Apache-2.0
