// The C interface of an acting rule: turns every Status and exception into an error code and a message.
#include "deploy/robot/datacom_policy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/acting/policy_file.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/tasks/task.h"

struct datacom_policy {
  datacom::Policy file;
  datacom::TaskModel model;
  std::unique_ptr<datacom::ActingRule> rule;
  std::vector<float> observation, noise, action;  // workspace
  std::vector<float> memory;                      // numbers that the acting rule keeps of the episode
  datacom_policy_info info;
};

namespace datacom {
namespace {

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
  info.observation_dim = spec.obs_dim;
  info.action_dim = spec.action_dim;
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

// Rounds to float32; false when a rounded value is not finite.
bool Round(const double* values, std::vector<float>* rounded) {
  std::transform(values, values + rounded->size(), rounded->begin(), [](double v) { return static_cast<float>(v); });
  return std::all_of(rounded->begin(), rounded->end(), [](float v) { return std::isfinite(v); });
}

int Act(datacom_policy* policy, const datacom_policy_input& input, double* action,
        datacom_policy_judgement* judgement) {
  const auto finite = [](float v) { return std::isfinite(v); };
  const auto previous_cost = static_cast<float>(input.previous_cost);
  if (!Round(input.observation, &policy->observation) || !finite(previous_cost)) return DATACOM_POLICY_BAD_INPUT;
  if (input.noise == nullptr) {
    std::fill(policy->noise.begin(), policy->noise.end(), 0.0f);
  } else {
    std::copy_n(input.noise, policy->noise.size(), policy->noise.begin());
    if (!std::all_of(policy->noise.begin(), policy->noise.end(), finite)) return DATACOM_POLICY_BAD_INPUT;
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  datacom_policy_judgement said = {kNone, kNone, 0};
  const datacom::ActingInputs inputs{policy->observation.data(), policy->noise.data(), &previous_cost,
                                     policy->memory.data()};
  policy->rule->Act(1, inputs, policy->action.data(), {&said.constraint, &said.cvar, &said.intervention});
  const float* const executed = policy->rule->executed() != nullptr ? policy->rule->executed() : policy->action.data();
  if (!std::all_of(executed, executed + policy->action.size(), finite)) return DATACOM_POLICY_FAILED;
  std::copy_n(executed, policy->action.size(), action);
  if (judgement != nullptr) *judgement = said;
  return DATACOM_POLICY_OK;
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
  if (policy == nullptr || input == nullptr || input->observation == nullptr || action == nullptr) {
    return DATACOM_POLICY_BAD_INPUT;
  }
  try {
    return datacom::Act(policy, *input, action, judgement);
  } catch (const std::exception&) {
    return DATACOM_POLICY_FAILED;
  }
}
// SPDX-License-Identifier: Apache-2.0
