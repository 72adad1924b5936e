// The map of a learned constraint joined with known ones (common/safety/safe_map.h).
#ifndef DATACOM_LEARNER_ALGORITHMS_JOINED_MAP_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_JOINED_MAP_KERNELS_H_

#include "learner/algorithms/safe_map_kernels.h"

namespace datacom::learner {

// The state's part: B_top [action, action], offset [action], fixed [action], log-determinant.
inline int JoinedMapSize(int action) { return action * action + 2 * action + 1; }

// map: [members, rows, JoinedMapSize]. The implementation for the CPU allocates its workspace in the first State.
class JoinedMapKernels : public MapKernels {};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_JOINED_MAP_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
