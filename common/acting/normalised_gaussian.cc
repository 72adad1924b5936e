#include "common/acting/normalised_gaussian.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/acting/scalars.h"
#include "common/base/status.h"

namespace datacom::normalised_gaussian {
namespace {

constexpr char kMean[] = "observation.mean", kStd[] = "observation.std", kLogStd[] = "actor.log_std";
constexpr char kLimit[] = "observation_limit";

}  // namespace

NormalisedGaussian::NormalisedGaussian(Mlp mean, const TaskSpec& spec, int max_batch)
    : mean_(std::move(mean)),
      seen_(spec, max_batch),
      scale_(spec),
      observation_mean_(spec.seen_dim()),
      observation_std_(spec.seen_dim()),
      log_std_(spec.action_dim),
      std_(spec.action_dim),
      inputs_(max_batch * spec.seen_dim()),
      executed_(max_batch * spec.action_dim) {}

absl::StatusOr<std::unique_ptr<ActingRule>> NormalisedGaussian::MakeRule(const Snapshot& snapshot,
                                                                         const TaskModel& model, int max_batch) {
  Mlp::Form form;
  form.net = "actor.mean";
  form.inputs = model.spec.seen_dim();
  form.outputs = model.spec.action_dim;
  form.hidden = Mlp::Hidden::kTanh;
  ASSIGN_OR_RETURN(Mlp mean, Mlp::Make(snapshot, form, max_batch));
  std::unique_ptr<ActingRule> rule(new NormalisedGaussian(std::move(mean), model.spec, max_batch));
  RETURN_IF_ERROR(rule->Load(snapshot));
  return rule;
}

absl::Status NormalisedGaussian::Check(const Snapshot& snapshot) const {
  if (snapshot.acting_rule != "normalised_gaussian") {
    return absl::InvalidArgumentError(absl::StrCat("snapshot is for acting rule \"", snapshot.acting_rule,
                                                   "\", this one is \"normalised_gaussian\""));
  }
  RETURN_IF_ERROR(mean_.Check(snapshot));
  RETURN_IF_ERROR(CheckVector(snapshot, kLogStd, mean_.outputs()));
  RETURN_IF_ERROR(CheckVector(snapshot, kMean, mean_.inputs()));
  RETURN_IF_ERROR(CheckVector(snapshot, kStd, mean_.inputs(), /*positive=*/true));
  ASSIGN_OR_RETURN(const double limit, FiniteScalar(snapshot, kLimit));
  if (static_cast<float>(limit) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("snapshot scalar ", kLimit, " = ", limit, ", must be above 0"));
}

absl::Status NormalisedGaussian::Load(const Snapshot& snapshot) {
  RETURN_IF_ERROR(Check(snapshot));
  RETURN_IF_ERROR(mean_.Load(snapshot));
  ASSIGN_OR_RETURN(const double limit, FiniteScalar(snapshot, kLimit));
  limit_ = static_cast<float>(limit);
  const auto copy = [&](const char* name, std::vector<float>* to) {
    std::copy_n(snapshot.Find(name)->values.data(), to->size(), to->data());
  };
  copy(kMean, &observation_mean_);
  copy(kStd, &observation_std_);
  copy(kLogStd, &log_std_);
  for (size_t i = 0; i < std_.size(); ++i) std_[i] = std::exp(log_std_[i]);
  return absl::OkStatus();
}

void NormalisedGaussian::Act(int batch, const ActingInputs& inputs, float* actions,
                             const ActingDiagnostics& diagnostics) {
  const int obs = mean_.inputs(), n = mean_.outputs();
  const float* const seen = seen_.Of(batch, inputs.observations);
  for (int r = 0; r < batch; ++r) {
    for (int i = 0; i < obs; ++i) {
      const float value = (seen[r * obs + i] - observation_mean_[i]) / observation_std_[i];
      inputs_[r * obs + i] = std::clamp(value, -limit_, limit_);
    }
  }
  mean_.Forward(batch, inputs_.data(), actions);
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  for (int r = 0; r < batch; ++r) {
    double log_prob = 0;
    for (int i = 0; i < n; ++i) {
      const int at = r * n + i;
      actions[at] += std_[i] * inputs.noise[at];
      executed_[at] = scale_.Scale(i, actions[at]);
      log_prob -= 0.5 * inputs.noise[at] * inputs.noise[at] + log_std_[i] + kHalfLogTwoPi;
    }
    if (diagnostics.log_prob != nullptr) diagnostics.log_prob[r] = static_cast<float>(log_prob);
    if (diagnostics.intervention != nullptr) diagnostics.intervention[r] = 0;
  }
}

absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, const TaskModel& model, int max_batch) {
  return NormalisedGaussian::MakeRule(snapshot, model, max_batch);
}

std::vector<Column> Columns(uint32_t action_dim) { return {ExecutedActionColumn(action_dim), LogProbColumn()}; }

}  // namespace datacom::normalised_gaussian
