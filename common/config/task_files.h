// The large files of a text task: meshes and other files of its model. A message that holds the task has their
// contents, compressed (TaskFile.gzip). The text of an experiment names them by their SHA-256 and leaves the contents
// out, so that it stays short; they are beside it, each once, in the folder task_files as SHA256.gz. They may also be
// in the text's own folder, as in a ConfigMap, or in the folder $DATACOM_TASK_FILES. An old experiment has contents
// without a SHA-256; they stay in its text.
//
// Pure functions; thread-safe; those with a folder block on the disk.
#ifndef DATACOM_COMMON_CONFIG_TASK_FILES_H_
#define DATACOM_COMMON_CONFIG_TASK_FILES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom {

inline constexpr char kTaskFilesFolder[] = "task_files";
inline constexpr size_t kMaxTaskBytes = 128 << 20;  // of all files of a task together, decompressed

// Files that have a SHA-256 and no content. INVALID_ARGUMENT if a SHA-256 is not 64 hexadecimal digits.
absl::StatusOr<std::vector<const v1::TaskFile*>> MissingTaskFiles(const v1::TaskOptions& options);
// Fills in the contents that are missing and that are beside a text in the folder. It does not compare them with their
// SHA-256; who decompresses a file does.
absl::Status AddTaskFiles(const std::string& folder, v1::TaskOptions* options);
// Fills in every content that is missing with what `read` returns.
absl::Status AddTaskFiles(const std::function<absl::StatusOr<std::string>(const v1::TaskFile&)>& read,
                          v1::TaskOptions* options);
// The contents of all files, compressed or not. FAILED_PRECONDITION, naming a file whose content is missing; DATA_LOSS,
// naming one that cannot be decompressed, has another SHA-256, or exceeds kMaxTaskBytes with the compressed ones before
// it.
absl::StatusOr<std::vector<std::string>> ContentsOf(const v1::TextTask& task);
// FAILED_PRECONDITION also says where the content was sought; else the errors of ContentsOf. Decompresses every file.
absl::Status CheckTaskFiles(const std::string& folder, const v1::TaskOptions& options);
// Writes the contents of files with a SHA-256 into the folder, unless it has them.
absl::Status WriteTaskFiles(const std::string& folder, const v1::TaskOptions& options);
// Leaves out the contents of files with a SHA-256.
void DropTaskFiles(v1::TaskOptions* options);

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_TASK_FILES_H_
// SPDX-License-Identifier: Apache-2.0
