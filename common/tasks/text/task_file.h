// Reads a task.textproto and the files that its model needs into a TextTask, which holds everything: no file outside it
// is needed afterwards. Pure but for reading files; thread-safe; blocks on the disk and while the model compiles.
#ifndef DATACOM_COMMON_TASKS_TEXT_TASK_FILE_H_
#define DATACOM_COMMON_TASKS_TEXT_TASK_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/config/task_files.h"
#include "datacom/v1/task.pb.h"

namespace datacom::text {

// What of it is not in files of their own: the task's text, and the files that are not large.
inline constexpr size_t kMaxCarriedBytes = 4 << 20;
// One file that is read, also when `task new --no-visual` then leaves it out.
inline constexpr size_t kMaxFileBytes = size_t{1} << 30;

// Whether `task` is the path of a task file, not the name of a task: it ends in ".textproto".
bool IsTaskFile(absl::string_view task);

// Without `resolved`. INVALID_ARGUMENT naming the file, with line and column, or a file that the model needs and that
// does not exist.
absl::StatusOr<v1::TextTask> ReadTaskFile(const std::string& path);

// Compresses the large files and notes their SHA-256 (common/config/task_files.h). Large are files of more than 64 KiB,
// files of more than 4 KiB that are not text, and all if the others have more than kMaxCarriedBytes together.
// INVALID_ARGUMENT "model: why" if the files have more than kMaxTaskBytes together; it names the largest ones.
absl::Status CompressFiles(v1::TextTask* task);

// The status, with "PATH:LINE:COLUMN: " before a message that begins with a field of the definition ("cost[1].value:
// ").
absl::Status AtLine(const std::string& path, const absl::Status& status);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_TASK_FILE_H_
// SPDX-License-Identifier: Apache-2.0
