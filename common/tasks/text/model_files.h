// The files of a model on the disk, as MuJoCo finds them: what a model refers to, and what that refers to.
//
// They keep their places to each other, so their references stay as they are and an asset without a name keeps the one
// that it has from its file. Only a reference that is an absolute path is rewritten: it begins with a folder that
// stands for the root. Blocks on the disk and while the model compiles; thread-safe.
#ifndef DATACOM_COMMON_TASKS_TEXT_MODEL_FILES_H_
#define DATACOM_COMMON_TASKS_TEXT_MODEL_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "datacom/v1/task.pb.h"

namespace datacom::text {

// Whether a file of a model is a model itself, or a part of one.
bool IsXml(absl::string_view content);

// Appends a model and the files that it needs to `task`: their paths in the lowest folder that has all of them, and
// contents; the model first. INVALID_ARGUMENT "model: why", if the model does not compile, naming a file that does not
// exist, and FAILED_PRECONDITION "model: why" if these files do not compile to the same model as those on the disk.
absl::Status AddModelFiles(const std::string& model, v1::TextTask* task);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MODEL_FILES_H_
// SPDX-License-Identifier: Apache-2.0
