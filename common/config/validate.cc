#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/near_miss.h"
#include "common/base/plugins.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/carried_task.h"
#include "common/config/experiment.h"
#include "common/config/rules.h"
#include "common/config/textproto.h"
#include "common/transitions/update_schedule.h"
#include "datacom/v1/plugin.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace datacom {
namespace {

constexpr uint64_t kMostPlanningRows = 10'000'000;  // per member, because they stay in the learner's memory
constexpr size_t kLongestTitle = 200;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status CheckRegistered(const std::string& path, const std::string& value, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), value) != names.end()) return absl::OkStatus();
  return WrongField(
      path, absl::StrCat("\"", value, "\" is not one of ", absl::StrJoin(names, ", "), DidYouMean(value, names)));
}

// Every row of an epoch is acted by the policy of the update before, and the update at the epoch's end uses all of them
// (proto Schedule).
absl::Status CheckOnPolicy(const v1::Experiment& experiment) {
  const uint64_t epoch = experiment.run().steps_per_epoch();
  const v1::Schedule& schedule = experiment.schedule();
  if (experiment.run().env_steps() % epoch != 0) {
    return WrongField("run.env_steps",
                      absl::StrCat(experiment.run().env_steps(), " is not a multiple of run.steps_per_epoch ", epoch,
                                   ": ", experiment.algorithm(), " learns from whole epochs; the next multiple is ",
                                   (experiment.run().env_steps() / epoch + 1) * epoch));
  }
  const auto fixed = [&](const char* path, const std::string& value, const std::string& needed) {
    return WrongField(path, absl::StrCat(value, ": ", experiment.algorithm(), " needs ", needed, "; leave it out"));
  };
  const UpdateSchedule updates = UpdatesOf(experiment);
  const uint64_t epochs = experiment.run().env_steps() / epoch;
  if (experiment.replay().min_size() != 0) return fixed("replay.min_size", absl::StrCat(updates.min_size), "0");
  if (updates.LastUpdate() != epochs || updates.RowsSeen(1) != epoch) {
    return fixed("schedule.updates_per_step", absl::StrCat(schedule.updates_per_step()), "1 / run.steps_per_epoch");
  }
  if (schedule.max_policy_lag() != 0)
    return fixed("schedule.max_policy_lag", absl::StrCat(schedule.max_policy_lag()), "0");
  if (schedule.publish_period() != 1)
    return fixed("schedule.publish_period", absl::StrCat(schedule.publish_period()), "1");
  if (experiment.replay().capacity() < epoch) {
    return WrongField("replay.capacity",
                      absl::StrCat(experiment.replay().capacity(), " is below run.steps_per_epoch ", epoch));
  }
  return absl::OkStatus();
}

// Every update takes the same number of rows, and the planner's nets learn in whole updates (proto Planning).
absl::Status CheckPlanning(const v1::Experiment& experiment) {
  const v1::Planning& planning = experiment.planning();
  const uint64_t rows = RowsPerDraw(experiment);
  const UpdateSchedule updates{experiment.run().env_steps(), 0, experiment.schedule().updates_per_step()};
  if (experiment.replay().min_size() != 0) {
    return WrongField("replay.min_size",
                      absl::StrCat(experiment.replay().min_size(), ": ", experiment.algorithm(),
                                   " needs 0; it learns from all rows, also those of planning.random_rows"));
  }
  if (experiment.replay().capacity() > kMostPlanningRows) {
    return WrongField("replay.capacity",
                      absl::StrCat(experiment.replay().capacity(), ": ", experiment.algorithm(),
                                   " keeps all of these rows in the learner's memory, at most ", kMostPlanningRows));
  }
  for (const uint64_t update : {uint64_t{2}, uint64_t{1000}}) {
    if (updates.StartedRows(update) == update * rows) continue;
    return WrongField("schedule.updates_per_step",
                      absl::StrCat(experiment.schedule().updates_per_step(), ": ", experiment.algorithm(),
                                   " needs a whole number of rows for an update"));
  }
  const std::pair<const char*, uint64_t> counts[] = {{"planning.random_rows", planning.random_rows()},
                                                     {"planning.policy_period", planning.policy_period()},
                                                     {"planning.model_period", planning.model_period()}};
  for (const auto& [path, count] : counts) {
    if (count % rows != 0)
      return WrongField(path, absl::StrCat(count, " is not a multiple of the ", rows, " rows of an update"));
  }
  return absl::OkStatus();
}

// Whether the member reads a setting with this rule (Rule.read_if).
bool Reads(const v1::Hyper& hyper, const v1::Rule& rule) {
  return std::any_of(rule.read_if().begin(), rule.read_if().end(), [&hyper](const std::string& text) {
    const std::pair<std::string, std::string> condition = absl::StrSplit(text, '=');
    const FieldDescriptor* const field = v1::Hyper::descriptor()->FindFieldByName(condition.first);
    return hyper.GetReflection()->GetString(hyper, field) == condition.second;
  });
}

// A setting with Rule.read_if has its default unless a member reads it, or is noted. REQUIRES a resolved experiment.
absl::Status CheckReadByAMember(const v1::Experiment& experiment, std::vector<std::string>* notes = nullptr) {
  std::vector<v1::Hyper> members;
  for (int m = 0; m < experiment.members_size(); ++m) members.push_back(MemberHyper(experiment, m));
  for (int i = 0; i < v1::Hyper::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = v1::Hyper::descriptor()->field(i);
    const v1::Rule& rule = field->options().GetExtension(v1::rule);
    const auto reads = [&rule](const v1::Hyper& hyper) { return Reads(hyper, rule); };
    if (rule.read_if().empty() || std::any_of(members.begin(), members.end(), reads)) continue;
    for (size_t m = 0; m < members.size(); ++m) {
      const std::string value = PrintField(members[m], field);
      if (value == PrintField(v1::Hyper::default_instance(), field)) continue;
      const std::string conditions = absl::StrJoin(rule.read_if(), " or hyper.");
      if (rule.noted()) {
        if (notes != nullptr) {
          notes->push_back(
              absl::StrCat("hyper.", field->name(), "=", value, " is not read: no member has hyper.", conditions));
        }
        break;
      }
      const v1::Hyper& own = experiment.members(static_cast<int>(m)).hyper();
      const std::string at = own.GetReflection()->HasField(own, field) ? absl::StrCat("members[", m, "].") : "";
      return WrongField(
          absl::StrCat(at, "hyper.", field->name()),
          absl::StrCat(value, ": only members with hyper.", conditions, " read it, and no member has that"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPrecision(const v1::LearnerOptions& learner) {
  if (learner.device() == "cuda" || learner.precision() == "float32") return absl::OkStatus();
  if (learner.precision() == "tf32") return WrongField("learner.precision", "\"tf32\" needs learner.device=cuda");
  if (learner.kernels() == "tensor") return absl::OkStatus();
  return WrongField("learner.precision", absl::StrCat("\"", learner.precision(),
                                                      "\" needs LibTorch: set learner.kernels=tensor or "
                                                      "learner.device=cuda"));
}

// Conditions on several fields. REQUIRES a resolved experiment.
absl::Status CheckTogether(const v1::Experiment& experiment) {
  const v1::ReplayOptions& replay = experiment.replay();
  const v1::Schedule& schedule = experiment.schedule();
  const v1::LearnerOptions& learner = experiment.learner();
  const AlgorithmInfo* const algorithm = FindAlgorithm(experiment.algorithm());
  const bool on_policy = algorithm != nullptr && algorithm->on_policy;
  RETURN_IF_ERROR(CheckPrecision(learner));
  if (on_policy) RETURN_IF_ERROR(CheckOnPolicy(experiment));
  if (algorithm != nullptr && algorithm->plans) RETURN_IF_ERROR(CheckPlanning(experiment));
  if (!on_policy && !experiment.run().lockstep() && schedule.publish_period() > schedule.max_policy_lag()) {
    return WrongField("schedule.publish_period",
                      absl::StrCat(schedule.publish_period(), " is above schedule.max_policy_lag ",
                                   schedule.max_policy_lag(), ": actors would wait forever"));
  }
  if (experiment.run().env_steps() <= replay.min_size()) {
    return WrongField("run.env_steps", absl::StrCat(experiment.run().env_steps(), " is not above replay.min_size ",
                                                    replay.min_size(), ": there would be no update"));
  }
  if (!(algorithm != nullptr && algorithm->new_rows) && replay.capacity() < learner.batch_size()) {
    return WrongField("replay.capacity",
                      absl::StrCat(replay.capacity(), " is below learner.batch_size ", learner.batch_size()));
  }
  if (algorithm != nullptr && algorithm->new_rows && replay.newest_share() != 1) {
    return WrongField("replay.newest_share", absl::StrCat(replay.newest_share(), ": ", experiment.algorithm(),
                                                          " does not draw rows from the replay; leave it out"));
  }
  // The first update has the smallest window.
  const uint64_t window = ReplayLayoutOf(experiment, /*row_bytes=*/0).Window(replay.min_size() + 1);
  if (replay.newest_share() < 1 && window < learner.batch_size()) {
    return WrongField(
        "replay.newest_share",
        absl::StrCat(replay.newest_share(), ": the first update draws from ", window, " of ", replay.min_size() + 1,
                     " rows, fewer than learner.batch_size ", learner.batch_size(), "; raise replay.min_size"));
  }
  if (replay.capacity() < replay.min_size()) {
    return WrongField("replay.capacity",
                      absl::StrCat(replay.capacity(), " is below replay.min_size ", replay.min_size()));
  }
  if (replay.failure_capacity() <= learner.failure_batch_size()) {
    return WrongField("replay.failure_capacity",
                      absl::StrCat(replay.failure_capacity(), " is not above learner.failure_batch_size ",
                                   learner.failure_batch_size(), ": failure rows would never be drawn"));
  }
  return CheckReadByAMember(experiment);
}

absl::Status NotRead(const std::string& path, const AlgorithmInfo& algorithm, const FieldDescriptor& field) {
  const std::vector<std::string> readers = ReadersOf(field);
  std::string who;  // nobody reads a setting of an algorithm for tests
  if (!readers.empty()) {
    who = absl::StrCat(" (", absl::StrJoin(readers, ", "), readers.size() == 1 ? " does)" : " do)");
  }
  return WrongField(
      path, absl::StrCat(algorithm.name, " does not read it", who, "; the hyper-parameters that ", algorithm.name,
                         " reads are ", absl::StrJoin(HyperParametersOf(algorithm), ", ")));
}

// notes, unless null: gets the settings that are not read and may be, if they have another value than their default.
absl::Status CheckRead(const std::string& prefix, const Message& message, const AlgorithmInfo& algorithm,
                       std::vector<std::string>* notes = nullptr) {
  const Reflection* const reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> given;
  reflection->ListFields(message, &given);
  for (const FieldDescriptor* field : given) {
    const std::string path = prefix + field->name();
    if (!ReadsSetting(algorithm, *field)) {
      if (!MayBeUnread(*field)) return NotRead(path, algorithm, *field);
      const std::unique_ptr<Message> absent(message.New());
      const std::string value = PrintField(message, field);
      if (notes == nullptr || value == PrintField(*absent, field)) continue;
      notes->push_back(absl::StrCat(path, "=", value, " is not read by ", algorithm.name));
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      RETURN_IF_ERROR(CheckRead(path + ".", reflection->GetMessage(message, field), algorithm, notes));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      const Message& item = reflection->GetRepeatedMessage(message, field, i);
      RETURN_IF_ERROR(CheckRead(absl::StrCat(path, "[", i, "]."), item, algorithm));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMembers(const v1::Experiment& experiment) {
  std::map<std::string, int> seen;  // seed and overrides, serialised
  for (int i = 0; i < experiment.members_size(); ++i) {
    v1::Member member = experiment.members(i);
    member.clear_label();
    const auto [it, fresh] = seen.emplace(member.SerializeAsString(), i);
    if (!fresh) {
      return WrongField(absl::StrCat("members[", i, "].seed"),
                        absl::StrCat(experiment.members(i).seed(), " is also the seed of members[", it->second,
                                     "], and their hyper-parameters are equal"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateTaskOptions(const v1::TaskOptions& options) { return CheckRules(options, "task_options."); }

absl::Status CheckSettingsAreRead(const v1::Experiment& experiment) {
  const AlgorithmInfo* const algorithm = FindAlgorithm(experiment.algorithm());
  return algorithm == nullptr ? absl::OkStatus() : CheckRead("", experiment, *algorithm);
}

std::vector<std::string> UnreadNotes(const v1::Experiment& resolved) {
  std::vector<std::string> notes;
  if (const AlgorithmInfo* const algorithm = FindAlgorithm(resolved.algorithm())) {
    CheckRead("", resolved, *algorithm, &notes).IgnoreError();
  }
  CheckReadByAMember(resolved, &notes).IgnoreError();
  return notes;
}

absl::Status CheckTitle(const std::string& place, const std::string& name) {
  RETURN_IF_ERROR(CheckFolderName(place, name));
  if (name == "." || name == "..")
    return absl::InvalidArgumentError(absl::StrCat(place, ": \"", name, "\" is no name"));
  if (name.size() <= kLongestTitle) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(place, ": a name of ", name.size(), " bytes, at most ", kLongestTitle, " are taken"));
}

absl::Status ValidateExperiment(const v1::Experiment& experiment, const std::vector<std::string>& tasks,
                                const std::vector<std::string>& algorithms) {
  RETURN_IF_ERROR(CheckTitle("name", experiment.name()));
  RETURN_IF_ERROR(CheckRules(experiment));
  const auto& plugins = experiment.task_options().GetRepeatedExtension(v1::plugin);
  RETURN_IF_ERROR(CheckPlugins({plugins.begin(), plugins.end()}));
  const bool carried = !experiment.task().empty() && experiment.task() == CarriedTask(experiment.task_options());
  if (!carried) RETURN_IF_ERROR(CheckRegistered("task", experiment.task(), tasks));
  RETURN_IF_ERROR(CheckRegistered("algorithm", experiment.algorithm(), algorithms));
  RETURN_IF_ERROR(CheckSettingsAreRead(experiment));
  RETURN_IF_ERROR(CheckTogether(ResolveExperiment(experiment)));
  return CheckMembers(experiment);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
