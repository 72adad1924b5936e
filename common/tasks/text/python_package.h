// Files of installed Python packages, for models that belong to one.
#ifndef DATACOM_COMMON_TASKS_TEXT_PYTHON_PACKAGE_H_
#define DATACOM_COMMON_TASKS_TEXT_PYTHON_PACKAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace datacom::text {

inline constexpr char kPythonPrefix[] = "python:";

// The path of FILE for "PACKAGE/FILE" (without the prefix), where the python3 of PATH finds the package; nothing is
// imported. The file need not exist. Blocks while python3 runs; thread-safe. INVALID_ARGUMENT for another form, and
// naming the package that is not installed.
absl::StatusOr<std::string> FindInPythonPackage(absl::string_view reference);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_PYTHON_PACKAGE_H_
// SPDX-License-Identifier: Apache-2.0
