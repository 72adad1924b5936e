#include "common/tasks/load_task.h"

#include "common/base/status.h"
#include "common/tasks/python/python_task.h"
#include "common/tasks/text/mujoco_compiled.h"

namespace datacom {

absl::Status LoadTaskOf(const std::string& folder, std::string* task, v1::TaskOptions* options) {
  RETURN_IF_ERROR(python::LoadTaskOf(task, options));
  return text::LoadTaskOf(folder, task, options);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
