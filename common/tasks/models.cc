// The static side of the task register: links no simulator.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/named_register.h"
#include "common/base/plugins.h"
#include "common/base/status.h"
#include "common/config/carried_task.h"
#include "common/tasks/python/python_model.h"
#include "common/tasks/register_task.h"
#include "common/tasks/repeated_task.h"
#include "common/tasks/task.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/plugin.pb.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom {

namespace {

using Maker = absl::StatusOr<TaskModel> (*)(const v1::TaskOptions& options);

NamedRegister<Maker>& Registered() {
  static NamedRegister<Maker> registered("task");
  return registered;
}

absl::StatusOr<TaskModel> MakeNominal(absl::string_view name, const v1::TaskOptions& options) {
  if (const Maker* const make = Registered().Find(name)) return (*make)(options);
  if (!name.empty() && name == CarriedTask(options)) {
    return options.HasExtension(v1::text_task) ? text::MakeModel(options) : python::MakeModel(options);
  }
  return Registered().Unknown(name);
}

}  // namespace

RegisterTaskModel::RegisterTaskModel(const std::string& name, Maker make) { Registered().Add(name, make); }

std::vector<std::string> TaskNames() { return Registered().Names(); }

absl::StatusOr<TaskModel> MakeTaskModel(absl::string_view name, const v1::TaskOptions& options) {
  const auto& plugins = options.GetRepeatedExtension(v1::plugin);
  RETURN_IF_ERROR(CheckPlugins({plugins.begin(), plugins.end()}));
  ASSIGN_OR_RETURN(TaskModel model, MakeNominal(name, options));
  if (options.action_repeat() > 1) {
    model.spec = RepeatedSpec(std::move(model.spec), static_cast<int>(options.action_repeat()));
  }
  return model;
}

absl::StatusOr<const ScriptedPolicy*> FindScriptedPolicy(const TaskModel& model, absl::string_view name) {
  std::vector<std::string> names;
  for (const ScriptedPolicy& policy : model.scripted) {
    if (policy.name == name) return &policy;
    names.push_back(policy.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("task ", model.spec.name, " has no scripted policy \"", name,
                                                 "\"; it has ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
