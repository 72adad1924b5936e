// The C interface of an acting rule: turns every Status and exception into an error code and a message.
#include "deploy/robot/datacom_policy.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/acting/acting_rule.h"
#include "common/acting/policy_file.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/tasks/task.h"
#include "datacom/v1/plugin.pb.h"

struct datacom_policy {
  datacom::Policy file;
  datacom::TaskModel model;
  std::unique_ptr<datacom::ActingRule> rule;
  std::vector<float> observation, noise, proposed, action;  // workspace
  std::vector<float> memory;                                // numbers that the acting rule keeps of the episode
  std::vector<double> G;  // of the observation; empty for a rule that reads no model columns
  std::vector<const char*> observation_names, action_names;
  datacom_policy_info info;
  char why[256] = "";
  std::atomic_flag busy = ATOMIC_FLAG_INIT;  // while a thread is in datacom_policy_act
};

namespace datacom {
namespace {

// [count] C strings of the names; "" for each that there is not.
std::vector<const char*> NamesOf(const std::vector<std::string>& names, size_t count) {
  std::vector<const char*> list(count, "");
  for (size_t i = 0; i < std::min(count, names.size()); ++i) list[i] = names[i].c_str();
  return list;
}

datacom_policy_info Describe(const datacom_policy& policy) {
  const v1::PolicyFile& about = policy.file.about;
  const Snapshot& snapshot = policy.file.snapshot;
  const TaskSpec& spec = policy.model.spec;
  datacom_policy_info info;
  info.task = spec.name.c_str();
  info.experiment = about.experiment().c_str();
  info.algorithm = about.algorithm().c_str();
  info.acting_rule = snapshot.acting_rule.c_str();
  info.build = about.build().c_str();
  info.member = snapshot.member;
  info.epoch = about.epoch();
  info.update = snapshot.version.update;
  info.observation_dim = static_cast<int>(policy.observation_names.size());
  info.seen_dim = spec.seen_dim();
  info.observation_names = policy.observation_names.data();
  info.action_names = policy.action_names.data();
  info.action_dim = spec.action_dim;
  info.filters = policy.rule->has_filter() ? 1 : 0;
  info.noise_dim = policy.rule->noise_dim();
  info.control_period = spec.control_dt;
  info.action_low = spec.action_low.data();
  info.action_high = spec.action_high.data();
  return info;
}

absl::StatusOr<std::unique_ptr<datacom_policy>> Load(const char* path) {
  std::string message;
  if (!CheckProcessor(&message)) return absl::UnimplementedError(message);
  auto policy = std::make_unique<datacom_policy>();
  ASSIGN_OR_RETURN(policy->file, ReadPolicyFile(path));
  const Snapshot& snapshot = policy->file.snapshot;
  if (const auto& plugins = policy->file.about.task_options().GetRepeatedExtension(v1::plugin); !plugins.empty()) {
    return absl::UnimplementedError(
        absl::StrCat(path, ": it needs the plug-in ", plugins[0], ", and this library loads none"));
  }
  absl::StatusOr<TaskModel> model = MakeTaskModel(snapshot.task, policy->file.about.task_options());
  if (!model.ok()) return absl::UnimplementedError(std::string(Annotate(model.status(), path).message()));
  policy->model = *std::move(model);
  absl::StatusOr<std::unique_ptr<ActingRule>> rule = MakeActingRule(snapshot, policy->model, /*max_batch=*/1);
  if (!rule.ok()) return absl::UnimplementedError(std::string(Annotate(rule.status(), path).message()));
  policy->rule = *std::move(rule);
  policy->observation.resize(policy->model.spec.obs_dim);
  policy->noise.resize(policy->rule->noise_dim());
  policy->memory.resize(policy->rule->memory_dim());
  policy->action.resize(policy->model.spec.action_dim);
  policy->proposed.resize(policy->model.spec.action_dim);
  const TaskSpec& spec = policy->model.spec;
  const bool reads_model = policy->rule->reads_model();
  policy->observation_names = NamesOf(spec.observation_names, reads_model ? spec.obs_dim : spec.seen_dim());
  policy->action_names = NamesOf(spec.action_names, spec.action_dim);
  if (reads_model && spec.model_dim > 0) policy->G.resize(policy->model.dynamics->dims().q * spec.action_dim);
  policy->info = Describe(*policy);
  return policy;
}

int CodeOf(const absl::Status& status) {
  if (status.ok()) return DATACOM_POLICY_OK;
  // DATA_LOSS: the file is truncated or changed. INVALID_ARGUMENT: it holds an invalid snapshot.
  if (absl::IsDataLoss(status) || absl::IsInvalidArgument(status)) return DATACOM_POLICY_DAMAGED;
  if (absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status)) return DATACOM_POLICY_UNSUPPORTED;
  return DATACOM_POLICY_UNREADABLE;
}

void CopyMessage(const char* what, char* message, size_t message_bytes) {
  if (message != nullptr && message_bytes > 0) std::snprintf(message, message_bytes, "%s", what);
}

template <typename... Values>
int Refuse(datacom_policy* policy, int code, const char* format, Values... values) {
  std::snprintf(policy->why, sizeof policy->why, format, values...);
  return code;
}

// Rounds the observation to float32. What the rule does not read stays 0.
int Round(datacom_policy* policy, const double* values) {
  for (size_t i = 0; i < policy->observation_names.size(); ++i) {
    policy->observation[i] = static_cast<float>(values[i]);
    if (std::isfinite(policy->observation[i])) continue;
    return Refuse(policy, DATACOM_POLICY_BAD_INPUT, "number %zu of the observation, %s, is %g", i,
                  policy->observation_names[i], values[i]);
  }
  return DATACOM_POLICY_OK;
}

// A robot that leaves the model columns at 0 would get actions without a filter.
int CheckModel(datacom_policy* policy, const double* observation) {
  if (policy->G.empty()) return DATACOM_POLICY_OK;
  policy->model.dynamics->Evaluate(observation, {nullptr, nullptr, nullptr, nullptr, policy->G.data()});
  if (std::any_of(policy->G.begin(), policy->G.end(), [](double v) { return v != 0; })) return DATACOM_POLICY_OK;
  const int seen = policy->info.seen_dim;
  return Refuse(
      policy, DATACOM_POLICY_NO_MODEL,
      "G is 0, so the rule %s could filter nothing: the robot must fill in numbers %d to %d of the observation, "
      "from %s on, of its present model",
      policy->info.acting_rule, seen, policy->info.observation_dim - 1, policy->observation_names[seen]);
}

// The policy's noise: zeros if the caller gives none.
int SetNoise(datacom_policy* policy, const float* noise) {
  std::fill(policy->noise.begin(), policy->noise.end(), 0.0f);
  if (noise == nullptr) return DATACOM_POLICY_OK;
  std::copy_n(noise, policy->noise.size(), policy->noise.begin());
  if (std::all_of(policy->noise.begin(), policy->noise.end(), [](float v) { return std::isfinite(v); })) {
    return DATACOM_POLICY_OK;
  }
  return Refuse(policy, DATACOM_POLICY_BAD_INPUT, "%s", "the noise has a number that is not finite");
}

// What is filtered: the action of somebody else's policy, within the task's bounds.
int SetProposed(datacom_policy* policy, const double* proposed) {
  if (!policy->rule->has_filter()) {
    return Refuse(policy, DATACOM_POLICY_UNSUPPORTED, "the rule %s has no filter", policy->info.acting_rule);
  }
  const TaskSpec& spec = policy->model.spec;
  for (size_t i = 0; i < policy->proposed.size(); ++i) {
    if (!std::isfinite(proposed[i])) {
      return Refuse(policy, DATACOM_POLICY_BAD_INPUT, "number %zu of the proposed action is %g", i, proposed[i]);
    }
    policy->proposed[i] = static_cast<float>(std::clamp(proposed[i], spec.action_low[i], spec.action_high[i]));
  }
  return DATACOM_POLICY_OK;
}

// proposed: [action_dim], or null: the policy's own action is filtered.
int Act(datacom_policy* policy, const datacom_policy_input& input, const double* proposed, double* action,
        datacom_policy_judgement* judgement) {
  policy->why[0] = '\0';
  const auto finite = [](float v) { return std::isfinite(v); };
  const auto previous_cost = static_cast<float>(input.previous_cost);
  if (const int code = Round(policy, input.observation); code != DATACOM_POLICY_OK) return code;
  if (!finite(previous_cost)) return Refuse(policy, DATACOM_POLICY_BAD_INPUT, "%s", "previous_cost is not finite");
  if (const int code = CheckModel(policy, input.observation); code != DATACOM_POLICY_OK) return code;
  const int code = proposed == nullptr ? SetNoise(policy, input.noise) : SetProposed(policy, proposed);
  if (code != DATACOM_POLICY_OK) return code;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  datacom_policy_judgement said = {kNone, kNone, 0};
  const datacom::ActingInputs inputs{policy->observation.data(), policy->noise.data(), &previous_cost,
                                     policy->memory.data(), proposed == nullptr ? nullptr : policy->proposed.data()};
  policy->rule->Act(1, inputs, policy->action.data(), {&said.constraint, &said.cvar, &said.intervention});
  const float* const executed = policy->rule->executed() != nullptr ? policy->rule->executed() : policy->action.data();
  if (!std::all_of(executed, executed + policy->action.size(), finite)) {
    return Refuse(policy, DATACOM_POLICY_FAILED, "%s", "the policy computed an action that is not finite");
  }
  std::copy_n(executed, policy->action.size(), action);
  if (judgement != nullptr) *judgement = said;
  return DATACOM_POLICY_OK;
}

// Calls `act` while no other thread acts with the policy. complete: no pointer that it reads is null.
template <typename Call>
int Guard(datacom_policy* policy, bool complete, const Call& act) {
  if (policy == nullptr) return DATACOM_POLICY_BAD_INPUT;
  if (policy->busy.test_and_set(std::memory_order_acquire)) return DATACOM_POLICY_BUSY;
  int code = DATACOM_POLICY_OK;
  try {
    code = complete ? act() : Refuse(policy, DATACOM_POLICY_BAD_INPUT, "%s", "a pointer is null");
  } catch (const std::exception& error) {
    code = Refuse(policy, DATACOM_POLICY_FAILED, "%s", error.what());
  }
  policy->busy.clear(std::memory_order_release);
  return code;
}

}  // namespace
}  // namespace datacom

int datacom_policy_load(const char* path, datacom_policy** policy, char* message, size_t message_bytes) {
  if (policy != nullptr) *policy = nullptr;
  if (path == nullptr || policy == nullptr) {
    datacom::CopyMessage("path or policy is NULL", message, message_bytes);
    return DATACOM_POLICY_BAD_INPUT;
  }
  try {
    absl::StatusOr<std::unique_ptr<datacom_policy>> loaded = datacom::Load(path);
    if (loaded.ok()) {
      *policy = loaded->release();
      return DATACOM_POLICY_OK;
    }
    datacom::CopyMessage(std::string(loaded.status().message()).c_str(), message, message_bytes);
    return datacom::CodeOf(loaded.status());
  } catch (const std::exception& error) {
    datacom::CopyMessage(error.what(), message, message_bytes);
    return DATACOM_POLICY_FAILED;
  }
}

void datacom_policy_free(datacom_policy* policy) { delete policy; }

const datacom_policy_info* datacom_policy_describe(const datacom_policy* policy) { return &policy->info; }

void datacom_policy_begin(datacom_policy* policy) {
  if (policy != nullptr) std::fill(policy->memory.begin(), policy->memory.end(), 0.0f);
}

int datacom_policy_act(datacom_policy* policy, const datacom_policy_input* input, double* action,
                       datacom_policy_judgement* judgement) {
  const bool complete = input != nullptr && input->observation != nullptr && action != nullptr;
  return datacom::Guard(policy, complete, [&] { return datacom::Act(policy, *input, nullptr, action, judgement); });
}

int datacom_policy_filter(datacom_policy* policy, const datacom_policy_input* input, const double* proposed,
                          double* action, datacom_policy_judgement* judgement) {
  const bool complete = input != nullptr && input->observation != nullptr && proposed != nullptr && action != nullptr;
  return datacom::Guard(policy, complete, [&] { return datacom::Act(policy, *input, proposed, action, judgement); });
}

int datacom_policy_use_shield(datacom_policy* policy, int use) {
  if (policy == nullptr) return DATACOM_POLICY_BAD_INPUT;
  if (!policy->rule->has_shield()) return DATACOM_POLICY_UNSUPPORTED;
  policy->rule->UseShield(use != 0);
  return DATACOM_POLICY_OK;
}

const char* datacom_policy_why(const datacom_policy* policy) { return policy->why; }
// SPDX-License-Identifier: Apache-2.0
