// The loops of loops.h for swish units, for the instruction set of the translation unit that includes this; names are
// local to it (lanes.h). A swish unit's slope does not follow from its value, so both are computed together.
#ifndef DATACOM_LEARNER_NN_CPU_SWISH_LOOPS_H_
#define DATACOM_LEARNER_NN_CPU_SWISH_LOOPS_H_

#include "learner/nn/cpu/lanes.h"
#include "learner/nn/cpu/loops.h"

namespace datacom::learner {
namespace {

// x sigmoid(x), and its derivative sigmoid(x) + x sigmoid(x) (1 - sigmoid(x)).
inline void SwishLanes(Lanes x, Lanes* value, Lanes* slope) {
  const Lanes share = SigmoidLanes(x);
  *value = MultiplyLanes(x, share);
  *slope = AddLanes(share, MultiplyLanes(*value, SubtractLanes(FillLanes(1), share)));
}

void Swish(const float* bias, int rows, int n, int64_t stride, float* y, int64_t slope_stride, float* slope) {
  for (int r = 0; r < rows; ++r, y += stride, slope += slope_stride) {
    Lanes value, derivative;
    int j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      SwishLanes(AddLanes(LoadLanes(y + j), LoadLanes(bias + j)), &value, &derivative);
      StoreLanes(y + j, value);
      StoreLanes(slope + j, derivative);
    }
    for (; j < n; ++j) {
      float lanes[kLanes];
      SwishLanes(FillLanes(y[j] + bias[j]), &value, &derivative);
      StoreLanes(lanes, value);
      y[j] = lanes[0];
      StoreLanes(lanes, derivative);
      slope[j] = lanes[0];
    }
  }
}

void MultiplyRows(const float* x, int64_t x_stride, int rows, int n, float* y, int64_t stride) {
  for (int r = 0; r < rows; ++r, x += x_stride, y += stride) {
    int j = 0;
    for (; j + kLanes <= n; j += kLanes) StoreLanes(y + j, MultiplyLanes(LoadLanes(x + j), LoadLanes(y + j)));
    for (; j < n; ++j) y[j] *= x[j];
  }
}

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_SWISH_LOOPS_H_
// SPDX-License-Identifier: Apache-2.0
