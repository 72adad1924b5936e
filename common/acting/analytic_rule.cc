#include "common/acting/analytic_rule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/acting/filtered_action.h"
#include "common/acting/scalars.h"
#include "common/base/status.h"

namespace datacom {

using gaussian_policy::GaussianPolicy;

AnalyticRule::AnalyticRule(GaussianPolicy policy, AnalyticMap map, const SafeMapGains& gains, const TaskModel& model,
                           int max_batch)
    : policy_(std::move(policy)),
      map_(std::move(map)),
      gains_(gains),
      dynamics_(model.dynamics),
      executed_(max_batch * model.spec.action_dim),
      observation_(model.spec.obs_dim),
      q_(model.dynamics->dims().q),
      x_(model.dynamics->dims().x),
      x_dot_(x_.size()),
      f_(q_.size()),
      G_(q_.size() * model.spec.action_dim),
      u_(model.spec.action_dim),
      action_(model.spec.action_dim) {}

absl::StatusOr<std::unique_ptr<ActingRule>> AnalyticRule::MakeRule(const Snapshot& snapshot, const TaskModel& model,
                                                                   bool forward_invariant, int max_batch) {
  if (model.known_constraints == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("acting rule ", snapshot.acting_rule, ": task ", model.spec.name, " has no known constraints"));
  }
  const ControlAffineDims dims = model.dynamics->dims();
  if (dims.action > kMaxSafeMapActions) {
    return absl::InvalidArgumentError(absl::StrCat("task ", model.spec.name, " has ", dims.action,
                                                   " actions, the safe map takes at most ", kMaxSafeMapActions));
  }
  ASSIGN_OR_RETURN(const SafeMapGains gains, ReadSafeMapGains(snapshot));
  ASSIGN_OR_RETURN(GaussianPolicy policy, GaussianPolicy::MakePolicy(snapshot, model.spec, max_batch));
  std::vector<double> viability(model.known_constraints->count(), 0.0);
  if (forward_invariant) viability = model.known_constraints->viability_gains();
  AnalyticMap map(model.known_constraints, std::move(viability), dims);
  return std::unique_ptr<ActingRule>(new AnalyticRule(std::move(policy), std::move(map), gains, model, max_batch));
}

absl::Status AnalyticRule::Load(const Snapshot& snapshot) {
  ASSIGN_OR_RETURN(const SafeMapGains gains, ReadSafeMapGains(snapshot));
  RETURN_IF_ERROR(policy_.Load(snapshot));
  gains_ = gains;
  return absl::OkStatus();
}

void AnalyticRule::Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) {
  policy_.Act(batch, inputs, actions, {});
  const size_t obs = observation_.size(), n = u_.size();
  for (int r = 0; r < batch; ++r) {
    std::copy_n(inputs.observations + r * obs, obs, observation_.data());
    dynamics_->Evaluate(observation_.data(), {q_.data(), x_.data(), x_dot_.data(), f_.data(), G_.data()});
    map_.Set({q_.data(), x_.data(), f_.data(), G_.data(), x_dot_.data(), observation_.data()}, gains_);
    std::copy_n(actions + r * n, n, u_.data());
    map_.Apply(u_.data(), action_.data());
    const double intervention = RoundFilteredAction(action_, u_, &executed_[r * n]);
    if (diagnostics.intervention != nullptr) diagnostics.intervention[r] = intervention;
  }
}

namespace atacom_fi {

absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, const TaskModel& model, int max_batch) {
  return AnalyticRule::MakeRule(snapshot, model, /*forward_invariant=*/true, max_batch);
}
std::vector<Column> Columns(uint32_t action_dim) { return {ExecutedActionColumn(action_dim)}; }

}  // namespace atacom_fi

namespace atacom_nfi {

absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, const TaskModel& model, int max_batch) {
  return AnalyticRule::MakeRule(snapshot, model, /*forward_invariant=*/false, max_batch);
}
std::vector<Column> Columns(uint32_t action_dim) { return {ExecutedActionColumn(action_dim)}; }

}  // namespace atacom_nfi
}  // namespace datacom
