#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/transitions/update_schedule.h"
#include "datacom/v1/task.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace datacom {
namespace {

constexpr uint64_t kMostPlanningRows = 10'000'000;  // per member, because they stay in the learner's memory

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status Wrong(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

absl::Status CheckNumber(const std::string& path, double value, const v1::Rule& rule) {
  if (!std::isfinite(value)) return Wrong(path, absl::StrCat(value, " is not finite"));
  if (rule.has_min() && value < rule.min()) return Wrong(path, absl::StrCat(value, " is below ", rule.min()));
  if (rule.has_max() && value > rule.max()) return Wrong(path, absl::StrCat(value, " is above ", rule.max()));
  if (rule.has_above() && value <= rule.above())
    return Wrong(path, absl::StrCat(value, " is not above ", rule.above()));
  if (rule.has_below() && value >= rule.below())
    return Wrong(path, absl::StrCat(value, " is not below ", rule.below()));
  return absl::OkStatus();
}

absl::Status CheckWord(const std::string& path, const std::string& value, const v1::Rule& rule) {
  if (rule.one_of().empty() || std::find(rule.one_of().begin(), rule.one_of().end(), value) != rule.one_of().end()) {
    return absl::OkStatus();
  }
  return Wrong(path, absl::StrCat("\"", value, "\" is not one of ", absl::StrJoin(rule.one_of(), ", ")));
}

// One scalar; `index` < 0 for a singular field.
absl::Status CheckScalar(const std::string& path, const Message& message, const FieldDescriptor* field, int index,
                         const v1::Rule& rule) {
  const Reflection* reflection = message.GetReflection();
  const bool list = index >= 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return CheckNumber(
          path, list ? reflection->GetRepeatedUInt32(message, field, index) : reflection->GetUInt32(message, field),
          rule);
    case FieldDescriptor::CPPTYPE_UINT64: {
      const uint64_t value =
          list ? reflection->GetRepeatedUInt64(message, field, index) : reflection->GetUInt64(message, field);
      return CheckNumber(path, static_cast<double>(value), rule);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return CheckNumber(
          path, list ? reflection->GetRepeatedDouble(message, field, index) : reflection->GetDouble(message, field),
          rule);
    case FieldDescriptor::CPPTYPE_STRING:
      return CheckWord(
          path, list ? reflection->GetRepeatedString(message, field, index) : reflection->GetString(message, field),
          rule);
    default:
      return absl::OkStatus();
  }
}

absl::Status CheckRules(const std::string& prefix, const Message& message);

absl::Status CheckField(const std::string& path, const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  const v1::Rule& rule = field->options().GetExtension(v1::rule);
  if (field->is_repeated()) {
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      const std::string item = absl::StrCat(path, "[", i, "]");
      RETURN_IF_ERROR(is_message ? CheckRules(item + ".", reflection->GetRepeatedMessage(message, field, i))
                                 : CheckScalar(item, message, field, i, rule));
    }
    return absl::OkStatus();
  }
  if (!reflection->HasField(message, field)) {
    return rule.required() ? Wrong(path, "must be set") : absl::OkStatus();
  }
  if (is_message) return CheckRules(path + ".", reflection->GetMessage(message, field));
  if (rule.required() && field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
      reflection->GetString(message, field).empty()) {
    return Wrong(path, "must not be empty");
  }
  return CheckScalar(path, message, field, -1, rule);
}

absl::Status CheckRange(const std::string& prefix, const v1::Range& range) {
  if (range.high() >= range.low()) return absl::OkStatus();
  return Wrong(prefix + "high", absl::StrCat(range.high(), " is below low, ", range.low()));
}

absl::Status CheckRules(const std::string& prefix, const Message& message) {
  const google::protobuf::Descriptor* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    RETURN_IF_ERROR(CheckField(prefix + descriptor->field(i)->name(), message, descriptor->field(i)));
  }
  std::vector<const FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    if (field->is_extension()) RETURN_IF_ERROR(CheckField(prefix + field->name(), message, field));
  }
  if (const auto* range = dynamic_cast<const v1::Range*>(&message)) return CheckRange(prefix, *range);
  if (const auto* drawn = dynamic_cast<const v1::Randomisation*>(&message); drawn && drawn->has_mass()) {
    if (drawn->mass().low() <= 0)
      return Wrong(prefix + "mass.low", absl::StrCat(drawn->mass().low(), " is not above 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckRegistered(const std::string& path, const std::string& value, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), value) != names.end()) return absl::OkStatus();
  return Wrong(path, absl::StrCat("\"", value, "\" is not one of ", absl::StrJoin(names, ", ")));
}

// Every row of an epoch is acted by the policy of the update before, and the update at the epoch's end uses all of them
// (proto Schedule).
absl::Status CheckOnPolicy(const v1::Experiment& experiment) {
  const uint64_t epoch = experiment.run().steps_per_epoch();
  const v1::Schedule& schedule = experiment.schedule();
  if (experiment.run().env_steps() % epoch != 0) {
    return Wrong("run.env_steps",
                 absl::StrCat(experiment.run().env_steps(), " is not a multiple of run.steps_per_epoch ", epoch, ": ",
                              experiment.algorithm(), " learns from whole epochs"));
  }
  const auto fixed = [&](const char* path, const std::string& value, const std::string& needed) {
    return Wrong(path, absl::StrCat(value, ": ", experiment.algorithm(), " needs ", needed, "; leave it out"));
  };
  UpdateSchedule updates{experiment.run().env_steps(), experiment.replay().min_size(), schedule.updates_per_step()};
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
    return Wrong("replay.capacity",
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
    return Wrong("replay.min_size",
                 absl::StrCat(experiment.replay().min_size(), ": ", experiment.algorithm(),
                              " needs 0; it learns from all rows, also those of planning.random_rows"));
  }
  if (experiment.replay().capacity() > kMostPlanningRows) {
    return Wrong("replay.capacity",
                 absl::StrCat(experiment.replay().capacity(), ": ", experiment.algorithm(),
                              " keeps all of these rows in the learner's memory, at most ", kMostPlanningRows));
  }
  for (const uint64_t update : {uint64_t{2}, uint64_t{1000}}) {
    if (updates.StartedRows(update) == update * rows) continue;
    return Wrong("schedule.updates_per_step",
                 absl::StrCat(experiment.schedule().updates_per_step(), ": ", experiment.algorithm(),
                              " needs a whole number of rows for an update"));
  }
  const std::pair<const char*, uint64_t> counts[] = {{"planning.random_rows", planning.random_rows()},
                                                     {"planning.policy_period", planning.policy_period()},
                                                     {"planning.model_period", planning.model_period()}};
  for (const auto& [path, count] : counts) {
    if (count % rows != 0)
      return Wrong(path, absl::StrCat(count, " is not a multiple of the ", rows, " rows of an update"));
  }
  return absl::OkStatus();
}

// Settings that only a controlled delta reads have their defaults unless a member controls delta. REQUIRES a resolved
// experiment.
absl::Status CheckControlIsRead(const v1::Experiment& experiment) {
  std::vector<v1::Hyper> members;
  for (int i = 0; i < experiment.members_size(); ++i) members.push_back(MemberHyper(experiment, i));
  if (std::any_of(members.begin(), members.end(),
                  [](const v1::Hyper& hyper) { return hyper.delta_mode() == "controlled"; })) {
    return absl::OkStatus();
  }
  const v1::Hyper& defaults = v1::Hyper::default_instance();
  const std::pair<const char*, double (v1::Hyper::*)() const> settings[] = {
      {"delta_proportional", &v1::Hyper::delta_proportional},
      {"delta_integral", &v1::Hyper::delta_integral},
      {"cost_unit", &v1::Hyper::cost_unit}};
  for (const v1::Hyper& hyper : members) {
    for (const auto& [name, value] : settings) {
      if ((hyper.*value)() == (defaults.*value)()) continue;
      constexpr char kUnread[] = ": only hyper.delta_mode=controlled reads it, and no member has that mode";
      return Wrong(absl::StrCat("hyper.", name), absl::StrCat((hyper.*value)(), kUnread));
    }
  }
  return absl::OkStatus();
}

// Conditions on several fields. REQUIRES a resolved experiment.
absl::Status CheckTogether(const v1::Experiment& experiment) {
  const v1::ReplayOptions& replay = experiment.replay();
  const v1::Schedule& schedule = experiment.schedule();
  const v1::LearnerOptions& learner = experiment.learner();
  const AlgorithmInfo* const algorithm = FindAlgorithm(experiment.algorithm());
  const bool on_policy = algorithm != nullptr && algorithm->on_policy;
  if (on_policy) RETURN_IF_ERROR(CheckOnPolicy(experiment));
  if (algorithm != nullptr && algorithm->plans) RETURN_IF_ERROR(CheckPlanning(experiment));
  if (!on_policy && !experiment.run().lockstep() && schedule.publish_period() > schedule.max_policy_lag()) {
    return Wrong("schedule.publish_period",
                 absl::StrCat(schedule.publish_period(), " is above schedule.max_policy_lag ",
                              schedule.max_policy_lag(), ": actors would wait forever"));
  }
  if (experiment.run().env_steps() <= replay.min_size()) {
    return Wrong("run.env_steps", absl::StrCat(experiment.run().env_steps(), " is not above replay.min_size ",
                                               replay.min_size(), ": there would be no update"));
  }
  if (!(algorithm != nullptr && algorithm->new_rows) && replay.capacity() < learner.batch_size()) {
    return Wrong("replay.capacity",
                 absl::StrCat(replay.capacity(), " is below learner.batch_size ", learner.batch_size()));
  }
  if (replay.capacity() < replay.min_size()) {
    return Wrong("replay.capacity", absl::StrCat(replay.capacity(), " is below replay.min_size ", replay.min_size()));
  }
  if (replay.failure_capacity() <= learner.failure_batch_size()) {
    return Wrong("replay.failure_capacity",
                 absl::StrCat(replay.failure_capacity(), " is not above learner.failure_batch_size ",
                              learner.failure_batch_size(), ": failure rows would never be drawn"));
  }
  return CheckControlIsRead(experiment);
}

absl::Status NotRead(const std::string& path, const AlgorithmInfo& algorithm, const FieldDescriptor& field) {
  std::vector<std::string> readers;
  for (const AlgorithmInfo& other : Algorithms()) {
    if (ReadsSetting(other, field)) readers.push_back(other.name);
  }
  std::string who;  // nobody reads a setting of an algorithm for tests
  if (!readers.empty()) {
    who = absl::StrCat(" (", absl::StrJoin(readers, ", "), readers.size() == 1 ? " does)" : " do)");
  }
  return Wrong(path, absl::StrCat(algorithm.name, " does not read it", who, "; the hyper-parameters that ",
                                  algorithm.name, " reads are ", absl::StrJoin(HyperParametersOf(algorithm), ", ")));
}

absl::Status CheckRead(const std::string& prefix, const Message& message, const AlgorithmInfo& algorithm) {
  const Reflection* const reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> given;
  reflection->ListFields(message, &given);
  for (const FieldDescriptor* field : given) {
    const std::string path = prefix + field->name();
    if (!ReadsSetting(algorithm, *field)) return NotRead(path, algorithm, *field);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      RETURN_IF_ERROR(CheckRead(path + ".", reflection->GetMessage(message, field), algorithm));
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
      return Wrong(absl::StrCat("members[", i, "].seed"),
                   absl::StrCat(experiment.members(i).seed(), " is also the seed of members[", it->second,
                                "], and their hyper-parameters are equal"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateTaskOptions(const v1::TaskOptions& options) { return CheckRules("task_options.", options); }
absl::Status CheckRules(const Message& message) { return CheckRules("", message); }

absl::Status CheckSettingsAreRead(const v1::Experiment& experiment) {
  const AlgorithmInfo* const algorithm = FindAlgorithm(experiment.algorithm());
  return algorithm == nullptr ? absl::OkStatus() : CheckRead("", experiment, *algorithm);
}

absl::Status ValidateExperiment(const v1::Experiment& experiment, const std::vector<std::string>& tasks,
                                const std::vector<std::string>& algorithms) {
  RETURN_IF_ERROR(CheckRules(experiment));
  const v1::TaskOptions& options = experiment.task_options();
  const bool is_text = options.HasExtension(v1::text_task) &&
                       options.GetExtension(v1::text_task).definition().name() == experiment.task();
  if (!is_text) RETURN_IF_ERROR(CheckRegistered("task", experiment.task(), tasks));
  RETURN_IF_ERROR(CheckRegistered("algorithm", experiment.algorithm(), algorithms));
  RETURN_IF_ERROR(CheckSettingsAreRead(experiment));
  RETURN_IF_ERROR(CheckTogether(ResolveExperiment(experiment)));
  return CheckMembers(experiment);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
