#include "common/acting/gaussian_policy.h"

#include <algorithm>
#include <cmath>

#include "common/acting/register_rule.h"

namespace datacom {

GaussianPolicy::GaussianPolicy(const Snapshot& snapshot, const SnapshotForm& form, const TaskSpec& spec, int max_batch)
    : mean_(snapshot, form.Net("actor.mean"), max_batch),
      log_std_(snapshot, form.Net("actor.log_std"), max_batch),
      seen_(spec, max_batch),
      scale_(spec),
      mean_values_(max_batch * spec.action_dim),
      log_std_values_(max_batch * spec.action_dim) {}

void GaussianPolicy::Declare(const SnapshotDims& dims, SnapshotForm* form) {
  for (const char* net : {"actor.mean", "actor.log_std"}) form->nets.push_back({net, dims.observation, dims.action});
}

void GaussianPolicy::Set(const Snapshot& snapshot) {
  mean_.Set(snapshot);
  log_std_.Set(snapshot);
}

void GaussianPolicy::Act(int batch, const ActingInputs& inputs, float* actions) {
  const float* const seen = seen_.Of(batch, inputs.observations);
  mean_.Forward(batch, seen, mean_values_.data());
  log_std_.Forward(batch, seen, log_std_values_.data());
  const int n = mean_.outputs();
  for (int at = 0; at < batch * n; ++at) {
    const float std = std::exp(std::clamp(log_std_values_[at], kMinLogStd, kMaxLogStd));
    const float raw = mean_values_[at] + std * inputs.noise[at];
    actions[at] = scale_.Scale(at % n, std::tanh(raw));
  }
  TakeProposals(inputs, batch, n, actions);
}

namespace {

// Not thread-safe; Load and Act neither allocate nor block.
class GaussianPolicyRule : public SnapshotRule {
 public:
  GaussianPolicyRule(const Snapshot& snapshot, const SnapshotForm& form, const TaskModel& model, int max_batch)
      : policy_(snapshot, form, model.spec, max_batch) {}

  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& /*diagnostics*/) override {
    policy_.Act(batch, inputs, actions);
  }
  int noise_dim() const override { return policy_.noise_dim(); }
  bool reads_model() const override { return false; }

 protected:
  void Set(const Snapshot& snapshot) override { policy_.Set(snapshot); }

 private:
  GaussianPolicy policy_;
};

SnapshotForm Form(const SnapshotDims& dims, const Snapshot& /*like*/) {
  SnapshotForm form;
  GaussianPolicy::Declare(dims, &form);
  return form;
}

std::vector<Column> Columns(uint32_t /*action_dim*/) { return {}; }

const RegisterActingRule kRegistered("gaussian_policy", {&Form, &NewRule<GaussianPolicyRule>, &Columns});

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
