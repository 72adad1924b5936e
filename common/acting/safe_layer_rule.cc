#include "common/acting/safe_layer_rule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/acting/filtered_action.h"
#include "common/acting/scalars.h"
#include "common/base/status.h"

namespace datacom::safe_layer {

void Project(int n, const double* slope, double cost, double threshold, const double* action, double* projected) {
  double predicted = cost, square = 1e-8;
  for (int i = 0; i < n; ++i) {
    predicted += slope[i] * action[i];
    square += slope[i] * slope[i];
  }
  const double share = predicted < threshold ? 0 : (predicted - threshold) / square;
  for (int i = 0; i < n; ++i) projected[i] = action[i] - share * slope[i];
}

SafeLayerRule::SafeLayerRule(Mlp actor, Mlp model, const Scalars& scalars, const TaskSpec& spec, int max_batch)
    : actor_(std::move(actor)),
      model_(std::move(model)),
      scalars_(scalars),
      seen_(spec, max_batch),
      low_(spec.action_low.begin(), spec.action_low.end()),
      high_(spec.action_high.begin(), spec.action_high.end()),
      slopes_(max_batch * spec.action_dim),
      executed_(max_batch * spec.action_dim),
      slope_(spec.action_dim),
      action_(spec.action_dim),
      projected_(spec.action_dim) {}

absl::StatusOr<std::unique_ptr<ActingRule>> SafeLayerRule::MakeRule(const Snapshot& snapshot, const TaskModel& model,
                                                                    int max_batch) {
  Mlp::Form form;
  form.inputs = model.spec.seen_dim();
  form.outputs = model.spec.action_dim;
  form.net = "actor";
  ASSIGN_OR_RETURN(Mlp actor, Mlp::Make(snapshot, form, max_batch));
  form.net = "safety_model";
  ASSIGN_OR_RETURN(Mlp safety_model, Mlp::Make(snapshot, form, max_batch));
  ASSIGN_OR_RETURN(const Scalars scalars, ReadScalars(snapshot));
  return std::unique_ptr<ActingRule>(
      new SafeLayerRule(std::move(actor), std::move(safety_model), scalars, model.spec, max_batch));
}

absl::StatusOr<SafeLayerRule::Scalars> SafeLayerRule::ReadScalars(const Snapshot& snapshot) {
  if (snapshot.acting_rule != "safe_layer") {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot is for acting rule \"", snapshot.acting_rule, "\", this one is \"safe_layer\""));
  }
  Scalars scalars;
  ASSIGN_OR_RETURN(scalars.exploration_noise, FiniteScalar(snapshot, "exploration_noise"));
  ASSIGN_OR_RETURN(scalars.projection_threshold, FiniteScalar(snapshot, "projection_threshold"));
  return scalars;
}

absl::Status SafeLayerRule::Load(const Snapshot& snapshot) {
  ASSIGN_OR_RETURN(const Scalars scalars, ReadScalars(snapshot));
  RETURN_IF_ERROR(actor_.Check(snapshot));
  RETURN_IF_ERROR(model_.Check(snapshot));
  RETURN_IF_ERROR(actor_.Load(snapshot));
  RETURN_IF_ERROR(model_.Load(snapshot));
  scalars_ = scalars;
  return absl::OkStatus();
}

void SafeLayerRule::Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) {
  const float* const seen = seen_.Of(batch, inputs.observations);
  actor_.Forward(batch, seen, actions);
  model_.Forward(batch, seen, slopes_.data());
  const int n = actor_.outputs();
  const float std = static_cast<float>(scalars_.exploration_noise);
  for (int r = 0; r < batch; ++r) {
    float* const row = actions + r * n;
    for (int i = 0; i < n; ++i) {
      const float half = (high_[i] - low_[i]) / 2, centre = (high_[i] + low_[i]) / 2;
      row[i] = std::clamp(std::tanh(row[i]) * half + centre + std * inputs.noise[r * n + i], low_[i], high_[i]);
    }
    std::copy_n(row, n, action_.data());
    std::copy_n(slopes_.data() + r * n, n, slope_.data());
    Project(n, slope_.data(), inputs.previous_costs[r], scalars_.projection_threshold, action_.data(),
            projected_.data());
    const double intervention = RoundFilteredAction(projected_, action_, &executed_[r * n]);
    if (diagnostics.intervention != nullptr) diagnostics.intervention[r] = intervention;
  }
}

absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, const TaskModel& model, int max_batch) {
  return SafeLayerRule::MakeRule(snapshot, model, max_batch);
}

std::vector<Column> Columns(uint32_t action_dim) { return {ExecutedActionColumn(action_dim), PreviousCostColumn()}; }

}  // namespace datacom::safe_layer
