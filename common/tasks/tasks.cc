// The simulator side of the task register.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/named_register.h"
#include "common/base/status.h"
#include "common/config/carried_task.h"
#include "common/tasks/python/python_task.h"
#include "common/tasks/randomised_task.h"
#include "common/tasks/register_task.h"
#include "common/tasks/repeated_task.h"
#include "common/tasks/task.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom {
namespace {

using Maker = absl::StatusOr<std::unique_ptr<Task>> (*)(const v1::TaskOptions& options);

NamedRegister<Maker>& Registered() {
  static NamedRegister<Maker> registered("task");
  return registered;
}

absl::StatusOr<std::unique_ptr<Task>> MakeNominal(absl::string_view name, const v1::TaskOptions& options) {
  if (const Maker* const make = Registered().Find(name)) return (*make)(options);
  if (!name.empty() && name == CarriedTask(options)) {
    return options.HasExtension(v1::text_task) ? text::MakeTask(options) : python::MakeTask(options);
  }
  const std::vector<std::string> models = TaskNames();
  if (std::find(models.begin(), models.end(), name) != models.end()) {
    return absl::InternalError(
        absl::StrCat("task ", name, " has no simulator: common/tasks/", name, "/task.cc registers none"));
  }
  return Registered().Unknown(name);
}

}  // namespace

RegisterTask::RegisterTask(const std::string& name, Maker make) { Registered().Add(name, make); }

absl::StatusOr<std::unique_ptr<Task>> MakeTask(absl::string_view name, const v1::TaskOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Task> task, MakeNominal(name, options));
  if (options.has_randomisation()) {
    task = std::make_unique<RandomisedTask>(std::move(task), options.randomisation());
  }
  if (options.action_repeat() > 1) {
    task = std::make_unique<RepeatedTask>(std::move(task), static_cast<int>(options.action_repeat()));
  }
  return task;
}

absl::Status LoadTaskOf(const std::string& folder, std::string* task, v1::TaskOptions* options) {
  RETURN_IF_ERROR(python::LoadTaskOf(task, options));
  return text::LoadTaskOf(folder, task, options);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
