// The loops of loops.h for units whose slope does not follow from their value, so that both are computed together:
// normalised layers of ReLU units, and swish units. For the instruction set of the translation unit that includes this;
// names are local to it (lanes.h). A row depends on no other row. Sums over its units are sixteen partial sums, which a
// fixed tree adds.
#ifndef DATACOM_LEARNER_NN_CPU_SLOPE_LOOPS_H_
#define DATACOM_LEARNER_NN_CPU_SLOPE_LOOPS_H_

#include "learner/nn/cpu/lanes.h"
#include "learner/nn/cpu/loops.h"

namespace datacom::learner {
namespace {

// Calls work(first, count) for sixteen units after the other; count is less for the last ones.
template <class Work>
inline void EachLanes(int n, const Work& work) {
  int j = 0;
  for (; j + kLanes <= n; j += kLanes) work(j, kLanes);
  if (j < n) work(j, n - j);
}
// The first `count` numbers, then `rest`.
inline Lanes LoadPart(const float* from, int count, float rest) {
  if (count == kLanes) return LoadLanes(from);
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = i < count ? from[i] : rest;
  return LoadLanes(lanes);
}
inline void StorePart(float* to, int count, Lanes value) {
  if (count == kLanes) return StoreLanes(to, value);
  float lanes[kLanes];
  StoreLanes(lanes, value);
  for (int i = 0; i < count; ++i) to[i] = lanes[i];
}

// The sum over the lanes, by the tree (i, i + 8), (i, i + 4), (i, i + 2), (i, i + 1).
inline float SumOfLanes(Lanes value) {
  const __m256 eight = SumOfHalves(value);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

void NormalisedRelu(const float* bias, int rows, int n, int64_t stride, float* y, int64_t normal_stride, float* normal,
                    int64_t inverse_stride, float* inverse) {
  const float width = static_cast<float>(n);
  for (int r = 0; r < rows; ++r, y += stride, normal += normal_stride, inverse += inverse_stride) {
    Lanes sum = FillLanes(0), squares = FillLanes(0);
    EachLanes(n, [&](int j, int count) {
      sum = AddLanes(sum, AddLanes(LoadPart(y + j, count, 0), LoadPart(bias + j, count, 0)));
    });
    const float mean = SumOfLanes(sum) / width;
    const Lanes means = FillLanes(mean);
    const auto deviation = [&](int j, int count) {  // 0 behind the row
      return SubtractLanes(AddLanes(LoadPart(y + j, count, mean), LoadPart(bias + j, count, 0)), means);
    };
    EachLanes(n, [&](int j, int count) {
      const Lanes apart = deviation(j, count);
      squares = FusedLanes(apart, apart, squares);
    });
    const float variance = SumOfLanes(squares) / width + 1e-5f;
    *inverse = __builtin_sqrtf(variance) / variance;  // NaN if the squares overflow; 1 / sqrt(variance) would be 0
    const Lanes scale = FillLanes(*inverse);
    EachLanes(n, [&](int j, int count) {
      const Lanes value = MultiplyLanes(deviation(j, count), scale);
      StorePart(normal + j, count, value);
      StorePart(y + j, count, LargerLanes(FillLanes(0), value));  // keeps NaN
    });
  }
}

void NormalisedReluAdjoint(const float* d, int64_t d_stride, const float* inverse, int64_t inverse_stride, int rows,
                           int n, float* normal, int64_t stride) {
  const float width = static_cast<float>(n);
  for (int r = 0; r < rows; ++r, d += d_stride, inverse += inverse_stride, normal += stride) {
    Lanes sum = FillLanes(0), product = FillLanes(0);
    EachLanes(n, [&](int j, int count) {
      const Lanes unit = LoadPart(normal + j, count, 0), open = WherePositive(unit, LoadPart(d + j, count, 0));
      sum = AddLanes(sum, open);
      product = FusedLanes(open, unit, product);
    });
    const Lanes mean = FillLanes(SumOfLanes(sum) / width), slope = FillLanes(-(SumOfLanes(product) / width));
    const Lanes scale = FillLanes(*inverse);
    EachLanes(n, [&](int j, int count) {
      const Lanes unit = LoadPart(normal + j, count, 0), open = WherePositive(unit, LoadPart(d + j, count, 0));
      StorePart(normal + j, count, MultiplyLanes(scale, FusedLanes(unit, slope, SubtractLanes(open, mean))));
    });
  }
}

// x sigmoid(x), and its derivative sigmoid(x) + x sigmoid(x) (1 - sigmoid(x)).
void Swish(const float* bias, int rows, int n, int64_t stride, float* y, int64_t slope_stride, float* slope) {
  for (int r = 0; r < rows; ++r, y += stride, slope += slope_stride) {
    EachLanes(n, [&](int j, int count) {
      const Lanes x = AddLanes(LoadPart(y + j, count, 0), LoadPart(bias + j, count, 0));
      const Lanes share = SigmoidLanes(x), value = MultiplyLanes(x, share);
      StorePart(y + j, count, value);
      StorePart(slope + j, count, AddLanes(share, MultiplyLanes(value, SubtractLanes(FillLanes(1), share))));
    });
  }
}

void MultiplyRows(const float* x, int64_t x_stride, int rows, int n, float* y, int64_t stride) {
  for (int r = 0; r < rows; ++r, x += x_stride, y += stride) {
    EachLanes(n, [&](int j, int count) {
      StorePart(y + j, count, MultiplyLanes(LoadPart(x + j, count, 0), LoadPart(y + j, count, 0)));
    });
  }
}

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_SLOPE_LOOPS_H_
// SPDX-License-Identifier: Apache-2.0
