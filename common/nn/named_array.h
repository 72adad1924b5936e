// One array of a snapshot (snapshot.h). This header needs only the standard library.
#ifndef DATACOM_COMMON_NN_NAMED_ARRAY_H_
#define DATACOM_COMMON_NN_NAMED_ARRAY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace datacom {

struct NamedArray {
  std::string name;  // "actor.mean.0.weight" [in, out] row-major: y = x W + b; "actor.mean.0.bias" [out]
  std::vector<uint32_t> shape;
  std::vector<float> values;  // product of shape
};

}  // namespace datacom

#endif  // DATACOM_COMMON_NN_NAMED_ARRAY_H_
// SPDX-License-Identifier: Apache-2.0
