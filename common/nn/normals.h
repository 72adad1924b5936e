// Many standard normal numbers at once, float32, from uniform numbers of 24 bits; FillNormal (common/base/random.h)
// takes 53. Pure function; allocates nothing.
#ifndef DATACOM_COMMON_NN_NORMALS_H_
#define DATACOM_COMMON_NN_NORMALS_H_

#include <cstdint>

namespace datacom {

// out[i] = i-th number of the stream `key` (StreamKey): Box-Muller on the words of Philox 4x32-10, whose counters are
// 0, 1, ... The stream has other numbers than FillNormal's with the same key.
void FillNormalsFast(uint64_t key, float* out, int count);

}  // namespace datacom

#endif  // DATACOM_COMMON_NN_NORMALS_H_
// SPDX-License-Identifier: Apache-2.0
