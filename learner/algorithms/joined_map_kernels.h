// The map of a learned constraint joined with known ones (common/safety/safe_map.h), in two steps: first what depends
// only on the state, then the action.
#ifndef DATACOM_LEARNER_ALGORITHMS_JOINED_MAP_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_JOINED_MAP_KERNELS_H_

#include "learner/algorithms/safe_map_kernels.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

struct JoinedMapInput {
  SafeMapInput learned;  // target_entropy is not read
  DoubleView known;      // [members, rows, K * (action + 2)]: records
  int equalities = 0;    // how many of the K are equations: the last ones
};
// The state's part: B_top [action, action], offset [action], fixed [action], log-determinant.
inline int JoinedMapSize(int action) { return action * action + 2 * action + 1; }

class JoinedMapKernels : public KernelGroup {
 public:
  // map: [members, rows, JoinedMapSize]. The implementation for the CPU allocates its workspace in the first call.
  virtual void JoinMap(const JoinedMapInput& in, const DoubleView& map) = 0;
  // Like SafeMapKernels::SafeMapAction.
  virtual void JoinedMap(const DoubleView& map, const DoubleView& target_entropy, const FloatView& u,
                         const SafeMapOutput& out) = 0;
  virtual void JoinedMapGradient(const DoubleView& map, const DoubleView& record, const FloatView& u,
                                 const FloatView& d_action, const FloatView& d_u) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_JOINED_MAP_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
