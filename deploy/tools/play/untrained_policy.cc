#include "deploy/tools/play/untrained_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace datacom::tools {
namespace {

class UntrainedRule : public ActingRule {
 public:
  absl::Status Load(const Snapshot& /*snapshot*/) override {
    return absl::FailedPreconditionError("an untrained policy has no parameters to load");
  }
};

class Zeros : public UntrainedRule {
 public:
  explicit Zeros(const TaskSpec& spec) : action_dim_(spec.action_dim) {}
  void Act(int batch, const ActingInputs& /*inputs*/, float* actions, const ActingDiagnostics&) override {
    std::fill_n(actions, static_cast<size_t>(batch) * action_dim_, 0.0f);
  }
  int noise_dim() const override { return 0; }

 private:
  const int action_dim_;
};

class Random : public UntrainedRule {
 public:
  explicit Random(const TaskSpec& spec) : low_(spec.action_low), high_(spec.action_high) {}
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics&) override {
    const size_t n = low_.size();
    for (size_t i = 0; i < batch * n; ++i) {
      const double uniform = std::erfc(-inputs.noise[i] * M_SQRT1_2) / 2;  // normal cumulative distribution function
      actions[i] = static_cast<float>(low_[i % n] + uniform * (high_[i % n] - low_[i % n]));
    }
  }
  int noise_dim() const override { return static_cast<int>(low_.size()); }

 private:
  const std::vector<double> low_, high_;
};

class Scripted : public UntrainedRule {
 public:
  Scripted(const TaskSpec& spec, ScriptedPolicy policy)
      : policy_(std::move(policy)), observation_(spec.obs_dim), action_(spec.action_dim) {}
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics&) override {
    const size_t width = observation_.size(), n = action_.size();
    for (int i = 0; i < batch; ++i) {
      std::copy_n(inputs.observations + i * width, width, observation_.begin());
      policy_.act(observation_.data(), action_.data());
      std::transform(action_.begin(), action_.end(), actions + i * n, [](double a) { return static_cast<float>(a); });
    }
  }
  int noise_dim() const override { return 0; }

 private:
  const ScriptedPolicy policy_;
  std::vector<double> observation_, action_;
};

}  // namespace

absl::StatusOr<UntrainedPolicy> MakeUntrainedPolicy(const std::string& name, const TaskModel& model) {
  const TaskSpec& spec = model.spec;
  if (name == "zeros") return UntrainedPolicy{"zeros: zero actions", std::make_unique<Zeros>(spec)};
  if (name == "random") {
    return UntrainedPolicy{"random: uniform actions, drawn independently at every step",
                           std::make_unique<Random>(spec)};
  }
  std::vector<std::string> names = {"zeros", "random"};
  if (!model.scripted.empty()) names.emplace_back("scripted");
  for (const ScriptedPolicy& policy : model.scripted) {
    if (name == "scripted" || name == policy.name) {
      return UntrainedPolicy{absl::StrCat(policy.name, ": ", policy.summary), std::make_unique<Scripted>(spec, policy)};
    }
    names.push_back(policy.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--policy ", name, ": task ", spec.name,
                   model.scripted.empty() ? " has no scripted policy; it has: " : " has no such policy; it has: ",
                   absl::StrJoin(names, ", ")));
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
