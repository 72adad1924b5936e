// The map W(s, u) of a learned constraint (docs/safe_map.md 2.4) and its gradient (docs/algorithms.md 4), in two steps:
// first what depends only on the state, then the action.
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
  // Only of JoinedMapKernels:
  DoubleView known;    // [members, rows, K * (action + 2)]: records (common/safety/safe_map.h)
  int equalities = 0;  // how many of the K are equations: the last ones
};
struct SafeMapOutput {
  FloatView action;   // [members, rows, action]
  FloatView log_pi;   // [members, rows, 1]: the clamped log-determinant is subtracted in place
  DoubleView record;  // [members, rows, 1]: the scale, for the gradient
};

class MapKernels : public KernelGroup {
 public:
  // map: [members, rows, ...], with the log-determinant, which is at least target_entropy.
  virtual void State(const SafeMapInput& in, const DoubleView& map) = 0;
  virtual void Action(const DoubleView& map, const FloatView& u, const SafeMapOutput& out) = 0;
  virtual void Gradient(const DoubleView& map, const DoubleView& record, const FloatView& u, const FloatView& d_action,
                        const FloatView& d_u) = 0;
};

// Of the learned constraint alone. map: [members, rows, SafeMapSize] (safe_map_row.h).
class SafeMapKernels : public MapKernels {};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SAFE_MAP_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
