// How much MuJoCo makes of a model's text: parts of elements with a count (replicate, composite, flexcomp), and numbers
// of textures, height fields, built-in meshes and data. MuJoCo makes them before it can be stopped, so a few bytes of a
// stranger's model could take all memory. A pure function; thread-safe.
#ifndef DATACOM_COMMON_TASKS_TEXT_MODEL_COPIES_H_
#define DATACOM_COMMON_TASKS_TEXT_MODEL_COPIES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace datacom::text {

inline constexpr double kMostCopies = 10000;  // of one element
inline constexpr double kMostParts = 200000;  // that are copies, of the whole model
inline constexpr double kMostNumbers = 1 << 25;

// The content of a file of the model; null if it is not known.
using FindModelFile = std::function<const std::string*(const std::string& path)>;

// INVALID_ARGUMENT, naming the element and the number, above these limits. Follows includes and attached models, as far
// as `find` knows them.
absl::Status CheckCopies(const std::string& model, const FindModelFile& find);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MODEL_COPIES_H_
// SPDX-License-Identifier: Apache-2.0
