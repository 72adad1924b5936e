// Reads a task.textproto and the files that its model needs into a TextTask, which holds everything: no file outside it
// is needed afterwards. Does not use MuJoCo. Pure but for reading files; thread-safe; blocks on the disk.
//
// References to files inside the model (includes, meshes, textures, height fields) are rewritten to names without
// folders, and the model's folder settings (meshdir, texturedir, assetdir) are removed.
#ifndef DATACOM_COMMON_TASKS_TEXT_TASK_FILE_H_
#define DATACOM_COMMON_TASKS_TEXT_TASK_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "datacom/v1/task.pb.h"

namespace datacom::text {

// All files of a task together, and what may travel of them inside of messages: large files are compressed.
inline constexpr size_t kMaxTaskBytes = 64 << 20, kMaxCarriedBytes = 4 << 20;
// One file that is read, also when `task new --no-visual` then leaves it out.
inline constexpr size_t kMaxFileBytes = size_t{1} << 30;

// Whether `task` is the path of a task file, not the name of a task: it ends in ".textproto".
bool IsTaskFile(absl::string_view task);

// Without `resolved`. INVALID_ARGUMENT naming the file, with line and column, or a file that the model needs and that
// does not exist.
absl::StatusOr<v1::TextTask> ReadTaskFile(const std::string& path);

// Appends a model and the files that it needs to `task`, the model first. INVALID_ARGUMENT "model: why" as above.
absl::Status AddModelFiles(const std::string& model, v1::TextTask* task);

// Compresses the large files. INVALID_ARGUMENT "model: why" if the files have more than kMaxTaskBytes together, or more
// than kMaxCarriedBytes then; it names the largest ones.
absl::Status CompressFiles(v1::TextTask* task);
// The content of a file, compressed or not. DATA_LOSS if it cannot be decompressed.
absl::StatusOr<std::string> ContentOf(const v1::TaskFile& file);

// The status, with "PATH:LINE:COLUMN: " before a message that begins with a field of the definition ("cost[1].value:
// ").
absl::Status AtLine(const std::string& path, const absl::Status& status);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_TASK_FILE_H_
// SPDX-License-Identifier: Apache-2.0
