// The static side of the task register: links no simulator.
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/tasks/register_task.h"
#include "common/tasks/repeated_task.h"
#include "common/tasks/task.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom {

namespace {

using Maker = absl::StatusOr<TaskModel> (*)(const v1::TaskOptions& options);

std::map<std::string, Maker, std::less<>>& Registered() {
  static std::map<std::string, Maker, std::less<>> registered;
  return registered;
}

absl::StatusOr<TaskModel> MakeNominal(absl::string_view name, const v1::TaskOptions& options) {
  if (const auto found = Registered().find(name); found != Registered().end()) return found->second(options);
  if (options.HasExtension(v1::text_task) && name == options.GetExtension(v1::text_task).definition().name())
    return text::MakeModel(options);
  return absl::NotFoundError(
      absl::StrCat("task \"", name, "\" does not exist; there are: ", absl::StrJoin(TaskNames(), ", ")));
}

}  // namespace

RegisterTaskModel::RegisterTaskModel(const std::string& name, Maker make) {
  if (!Registered().emplace(name, make).second) std::abort();
}

std::vector<std::string> TaskNames() {
  std::vector<std::string> names;
  for (const auto& [name, make] : Registered()) names.push_back(name);
  return names;
}

absl::StatusOr<TaskModel> MakeTaskModel(absl::string_view name, const v1::TaskOptions& options) {
  ASSIGN_OR_RETURN(TaskModel model, MakeNominal(name, options));
  if (options.action_repeat() > 1) {
    model.spec = RepeatedSpec(std::move(model.spec), static_cast<int>(options.action_repeat()));
  }
  return model;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
