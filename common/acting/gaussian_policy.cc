#include "common/acting/gaussian_policy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::gaussian_policy {

GaussianPolicy::GaussianPolicy(std::string rule, Mlp mean, Mlp log_std, const TaskSpec& spec, int max_batch)
    : rule_(std::move(rule)),
      mean_(std::move(mean)),
      log_std_(std::move(log_std)),
      seen_(spec, max_batch),
      scale_(spec),
      mean_values_(max_batch * spec.action_dim),
      log_std_values_(max_batch * spec.action_dim) {}

absl::StatusOr<GaussianPolicy> GaussianPolicy::MakePolicy(const Snapshot& snapshot, const TaskSpec& spec,
                                                          int max_batch) {
  Mlp::Form form;
  form.inputs = spec.seen_dim();
  form.outputs = spec.action_dim;
  form.net = "actor.mean";
  ASSIGN_OR_RETURN(Mlp mean, Mlp::Make(snapshot, form, max_batch));
  form.net = "actor.log_std";
  ASSIGN_OR_RETURN(Mlp log_std, Mlp::Make(snapshot, form, max_batch));
  return GaussianPolicy(snapshot.acting_rule, std::move(mean), std::move(log_std), spec, max_batch);
}

absl::Status GaussianPolicy::Check(const Snapshot& snapshot) const {
  if (snapshot.acting_rule != rule_) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot is for acting rule \"", snapshot.acting_rule, "\", this one is \"", rule_, "\""));
  }
  RETURN_IF_ERROR(mean_.Check(snapshot));
  return log_std_.Check(snapshot);
}

absl::Status GaussianPolicy::Load(const Snapshot& snapshot) {
  RETURN_IF_ERROR(Check(snapshot));
  RETURN_IF_ERROR(mean_.Load(snapshot));
  return log_std_.Load(snapshot);
}

void GaussianPolicy::Act(int batch, const ActingInputs& inputs, float* actions,
                         const ActingDiagnostics& /*diagnostics*/) {
  const float* const seen = seen_.Of(batch, inputs.observations);
  mean_.Forward(batch, seen, mean_values_.data());
  log_std_.Forward(batch, seen, log_std_values_.data());
  const int n = mean_.outputs();
  for (int at = 0; at < batch * n; ++at) {
    const float std = std::exp(std::clamp(log_std_values_[at], kMinLogStd, kMaxLogStd));
    const float raw = mean_values_[at] + std * inputs.noise[at];
    actions[at] = scale_.Scale(at % n, std::tanh(raw));
  }
}

absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, const TaskModel& model, int max_batch) {
  ASSIGN_OR_RETURN(GaussianPolicy policy, GaussianPolicy::MakePolicy(snapshot, model.spec, max_batch));
  return std::unique_ptr<ActingRule>(std::make_unique<GaussianPolicy>(std::move(policy)));
}

std::vector<Column> Columns(uint32_t /*action_dim*/) { return {}; }

}  // namespace datacom::gaussian_policy
