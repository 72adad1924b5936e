// The loops of loops.h for the instruction set of the translation unit that includes this; names are local to it
// (lanes.h). Loops that are not written with lanes are vectorised by the compiler, without reordering. So all units
// compute the same bits.
#ifndef DATACOM_LEARNER_NN_CPU_LOOPS_KERNEL_H_
#define DATACOM_LEARNER_NN_CPU_LOOPS_KERNEL_H_

#include "learner/nn/cpu/dense_loops.h"
#include "learner/nn/cpu/loops.h"
#include "learner/nn/cpu/product_loops.h"
#include "learner/nn/cpu/slope_loops.h"

namespace datacom::learner {
namespace {

// Each chunk is summed in float32; the chunks are added in float64.
double SquaredSum(const float* x, int n) {
  constexpr int kChunk = 2048;
  double total = 0;
  int j = 0;
  while (j + 4 * kLanes <= n) {
    const int end = n - j < kChunk ? n : j + kChunk;
    Lanes sum[4];
    for (Lanes& lanes : sum) lanes = FillLanes(0);
    for (; j + 4 * kLanes <= end; j += 4 * kLanes) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const Lanes value = LoadLanes(x + j + i * kLanes);
        sum[i] = FusedLanes(value, value, sum[i]);
      }
    }
    float lane[kLanes], part = 0;
    StoreLanes(lane, AddLanes(AddLanes(sum[0], sum[1]), AddLanes(sum[2], sum[3])));
    for (float value : lane) part += value;
    total += part;
  }
  for (; j < n; ++j) total += static_cast<double>(x[j]) * x[j];
  return total;
}

// Optimisers walk through more memory than the inner caches hold. The processor's own prefetching stops at the end of
// each page, this does not. Prefetching past the end has no effect.
inline void ReadAhead(const float* from) {
  constexpr int kFloats = 512;
  _mm_prefetch(reinterpret_cast<const char*>(from + kFloats), _MM_HINT_T0);
}

// Like PyTorch: the denominator is sqrt(v) / sqrt(1 - b2^t) + eps.
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

void Cosines(float level, int n, float* __restrict features) {
  for (int i = 0; i < n; ++i) features[i] = FastCosPi(static_cast<float>(i), level);
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

// Applies Of, a function of sixteen numbers, to n numbers.
template <Lanes Of(Lanes)>
void Map(int n, const float* x, float* y) {
  int j = 0;
  for (; j + kLanes <= n; j += kLanes) StoreLanes(y + j, Of(LoadLanes(x + j)));
  if (j == n) return;
  float rest[kLanes] = {};
  for (int i = j; i < n; ++i) rest[i - j] = x[i];
  StoreLanes(rest, Of(LoadLanes(rest)));
  for (int i = j; i < n; ++i) y[i] = rest[i - j];
}

double FusedMultiplyAdds(int steps) {
#ifdef __AVX512F__
  constexpr int kSums = 24;
#else
  constexpr int kSums = 6;
#endif
  Lanes sum[kSums];
  for (int k = 0; k < kSums; ++k) {  // all numbers differ, so the compiler cannot drop any
    float start[kLanes];
    for (int i = 0; i < kLanes; ++i) start[i] = static_cast<float>(k * kLanes + i);
    sum[k] = LoadLanes(start);
  }
  Lanes factor = FillLanes(0.5f);
  for (int i = 0; i < steps; ++i) {
#pragma GCC unroll 24
    for (int k = 0; k < kSums; ++k) sum[k] = FusedLanes(sum[k], factor, factor);
  }
  float out[kLanes], total = 0;
  for (const Lanes& lanes : sum) {
    StoreLanes(out, lanes);
    for (float value : out) total += value;
  }
  return total > 0 ? 2.0 * kLanes * kSums * steps : 0;  // always true, because the sums tend to 1
}

constexpr Loops kLoops = {Activate,
                          MultiplySlope,
                          Swish,
                          NormalisedRelu,
                          NormalisedReluAdjoint,
                          MultiplyRows,
                          NarrowProduct,
                          NarrowAdjoint,
                          ColumnSums,
                          WeightedColumnSums,
                          AddScaledRows,
                          ScaleRows,
                          Transpose,
                          SquaredSum,
                          Adam,
                          Polyak,
                          Map<ExpLanes>,
                          Map<LogLanes>,
                          Map<TanhLanes>,
                          Map<SigmoidLanes>,
                          Map<SoftplusLanes>,
                          Cosines,
                          Gated,
                          GatedGradient,
                          QuantileHuber,
                          MultiplyMatrices,
                          FusedMultiplyAdds};

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_LOOPS_KERNEL_H_
// SPDX-License-Identifier: Apache-2.0
