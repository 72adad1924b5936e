// The static side of the task register: links no simulator.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/files.h"
#include "common/base/named_register.h"
#include "common/base/plugins.h"
#include "common/base/status.h"
#include "common/config/carried_task.h"
#include "common/tasks/python/python_model.h"
#include "common/tasks/register_task.h"
#include "common/tasks/repeated_task.h"
#include "common/tasks/task.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/plugin.pb.h"
#include "datacom/v1/task_options.pb.h"
#include "google/protobuf/descriptor.h"

namespace datacom {

absl::StatusOr<std::vector<int>> SelectKnownRows(const TaskModel& model, const std::vector<std::string>& names) {
  std::vector<int> selected;
  if (names.empty()) return selected;
  if (model.known_constraints == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("known constraint \"", names.front(), "\": task ", model.spec.name, " has no known constraints"));
  }
  const std::vector<std::string>&rows = model.known_constraints->names(), &groups = model.known_constraints->groups();
  for (const std::string& name : names) {
    bool found = false;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (name != rows[i] && name != groups[i]) continue;
      found = true;
      selected.push_back(static_cast<int>(i));
    }
    if (found) continue;
    std::vector<std::string> known;  // rows of a group are adjacent
    std::unique_copy(groups.begin(), groups.end(), std::back_inserter(known));
    return absl::InvalidArgumentError(absl::StrCat("known constraint \"", name, "\": task ", model.spec.name,
                                                   " has the groups ", absl::StrJoin(known, ", "), " and the rows ",
                                                   absl::StrJoin(rows, ", ")));
  }
  std::sort(selected.begin(), selected.end());
  selected.erase(std::unique(selected.begin(), selected.end()), selected.end());
  return selected;
}

absl::StatusOr<std::vector<int>> SelectKnownRows(const TaskModel& model, const v1::Constraints& constraints) {
  const std::vector<std::string> names(constraints.known().begin(), constraints.known().end());
  return Annotate(SelectKnownRows(model, names), "constraints.known");
}

absl::StatusOr<ReturnRange> ReturnRangeOf(const TaskSpec& spec, double discount) {
  if (!spec.rewards) {
    return absl::InvalidArgumentError(
        absl::StrCat("task ", spec.name, " does not state the range of its rewards (reward_range of a task file)"));
  }
  const RewardRange& rewards = *spec.rewards;
  // Steps until an end are worth (1 - w) step / (1 - discount) and the end w final, with w = discount^steps: a mean.
  const double steps = 1 / (1 - discount);
  return ReturnRange{rewards.sum_low + std::min(rewards.step_low * steps, rewards.final_low),
                     rewards.sum_high + std::max(rewards.step_high * steps, rewards.final_high)};
}

RewardRange RepeatedRewards(const RewardRange& step, int repeat) {
  RewardRange decision = step;
  decision.step_low *= repeat;
  decision.step_high *= repeat;
  // The end may come with the first of the held steps or with the last.
  decision.final_low += (repeat - 1) * std::min(step.step_low, 0.0);
  decision.final_high += (repeat - 1) * std::max(step.step_high, 0.0);
  return decision;
}

absl::Status CheckStartValues(const TaskSpec& spec, const std::map<std::string, double>& init) {
  for (const auto& [key, value] : init) {
    if (std::find(spec.init_keys.begin(), spec.init_keys.end(), key) == spec.init_keys.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(spec.name, " has no start value \"", key,
                       "\"; there are: ", spec.init_keys.empty() ? "none" : absl::StrJoin(spec.init_keys, ", ")));
    }
    if (!std::isfinite(value))
      return absl::InvalidArgumentError(absl::StrCat(spec.name, " start value ", key, " = ", value));
  }
  return absl::OkStatus();
}

absl::Status RejectOtherOptions(absl::string_view task, const v1::TaskOptions& options,
                                std::initializer_list<absl::string_view> own) {
  std::vector<std::string> has = {"horizon", "randomisation", "action_repeat"};
  for (const absl::string_view name : own) has.emplace_back(name);
  std::vector<const google::protobuf::FieldDescriptor*> set;
  options.GetReflection()->ListFields(options, &set);
  for (const google::protobuf::FieldDescriptor* field : set) {
    if (std::find(has.begin(), has.end(), field->name()) != has.end()) continue;
    if (field->full_name() == "datacom.v1.plugin") continue;  // MakeTaskModel checks it
    return absl::InvalidArgumentError(absl::StrCat("task_options.", field->name(), ": task ", task,
                                                   " has no such option; it has: ", absl::StrJoin(has, ", ")));
  }
  return absl::OkStatus();
}

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
  if (const std::string file = absl::StrCat(name, "/task.textproto"); FileExists(file)) {
    return absl::NotFoundError(absl::StrCat("\"", name, "\" is a folder; name its task: ", file));
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
