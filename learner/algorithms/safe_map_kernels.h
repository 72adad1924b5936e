// The map W(s, u) of one learned constraint (docs/safe_map.md 2.4) and its gradient
// (docs/algorithms.md 4), in two steps: first what depends only on the state, then the action.
#ifndef DATACOM_LEARNER_ALGORITHMS_SAFE_MAP_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_SAFE_MAP_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

struct SafeMapInput {
  DoubleView k;                                 // [members, rows, 1]
  DoubleView J;                                 // [members, rows, q + x]
  DoubleView f;                                 // [members, rows, q]
  DoubleView G;                                 // [members, rows, q * action]
  DoubleView x_dot;                             // [members, rows, x]
  DoubleView gain, slack_beta, target_entropy;  // [members, 1, 1]
};
struct SafeMapOutput {
  FloatView action;   // [members, rows, action]
  FloatView log_pi;   // [members, rows, 1]: the clamped log-determinant is subtracted in place
  DoubleView record;  // [members, rows, 1]: the scale, for the gradient
};

class SafeMapKernels : public KernelGroup {
 public:
  // map: [members, rows, SafeMapSize] (safe_map_row.h).
  virtual void SafeMapState(const SafeMapInput& in, const DoubleView& map) = 0;
  virtual void SafeMapAction(const DoubleView& map, const FloatView& u, const SafeMapOutput& out) = 0;
  virtual void SafeMapGradient(const DoubleView& map, const DoubleView& record, const FloatView& u,
                               const FloatView& d_action, const FloatView& d_u) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SAFE_MAP_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
