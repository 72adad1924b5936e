#include "common/acting/cbf_qp_rule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/acting/filtered_action.h"
#include "common/acting/scalars.h"
#include "common/base/status.h"
#include "common/safety/barrier_qp.h"

namespace datacom::cbf_qp {

using gaussian_policy::GaussianPolicy;

CbfQpRule::CbfQpRule(GaussianPolicy policy, Mlp barrier, const Scalars& scalars, const TaskModel& model, int max_batch)
    : policy_(std::move(policy)),
      barrier_(std::move(barrier)),
      scalars_(scalars),
      dynamics_(model.dynamics),
      low_(model.spec.action_low),
      high_(model.spec.action_high) {
  const int n = model.spec.action_dim, q = barrier_.inputs();
  q_.resize(max_batch * q);
  values_.resize(max_batch);
  slopes_.resize(max_batch * q);
  f_.resize(max_batch * q);
  G_.resize(max_batch * q * n);
  executed_.resize(max_batch * n);
  observation_.resize(model.spec.obs_dim);
  state_.resize(q);
  LG_V_.resize(n);
  u_.resize(n);
  action_.resize(n);
}

absl::StatusOr<std::unique_ptr<ActingRule>> CbfQpRule::MakeRule(const Snapshot& snapshot, const TaskModel& model,
                                                                int max_batch) {
  const ControlAffineDims dims = model.dynamics->dims();
  if (dims.x > 0) {
    return absl::InvalidArgumentError(absl::StrCat("acting rule ", snapshot.acting_rule, ": task ", model.spec.name,
                                                   " has ", dims.x, " uncontrollable constraint states; a barrier ",
                                                   "needs controllable ones only"));
  }
  ASSIGN_OR_RETURN(const Scalars scalars, ReadScalars(snapshot));
  ASSIGN_OR_RETURN(GaussianPolicy policy, GaussianPolicy::MakePolicy(snapshot, model.spec, max_batch));
  Mlp::Form form;
  form.net = "barrier";
  form.inputs = dims.q;
  form.outputs = 1;
  form.gradient = true;
  ASSIGN_OR_RETURN(Mlp barrier, Mlp::Make(snapshot, form, max_batch));
  return std::unique_ptr<ActingRule>(new CbfQpRule(std::move(policy), std::move(barrier), scalars, model, max_batch));
}

absl::StatusOr<CbfQpRule::Scalars> CbfQpRule::ReadScalars(const Snapshot& snapshot) {
  Scalars scalars;
  ASSIGN_OR_RETURN(scalars.decay, FiniteScalar(snapshot, "barrier_decay"));
  ASSIGN_OR_RETURN(scalars.penalty, FiniteScalar(snapshot, "relaxation_penalty"));
  if (!(scalars.penalty > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot scalar relaxation_penalty = ", scalars.penalty, ", must be above 0"));
  }
  return scalars;
}

absl::Status CbfQpRule::Load(const Snapshot& snapshot) {
  ASSIGN_OR_RETURN(const Scalars scalars, ReadScalars(snapshot));
  RETURN_IF_ERROR(policy_.Check(snapshot));
  RETURN_IF_ERROR(barrier_.Check(snapshot));
  RETURN_IF_ERROR(policy_.Load(snapshot));
  RETURN_IF_ERROR(barrier_.Load(snapshot));
  scalars_ = scalars;
  return absl::OkStatus();
}

void CbfQpRule::Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) {
  policy_.Act(batch, inputs, actions, {});
  const int obs = static_cast<int>(observation_.size()), q = barrier_.inputs(), n = static_cast<int>(u_.size());
  for (int r = 0; r < batch; ++r) {
    std::copy_n(inputs.observations + r * obs, obs, observation_.data());
    ControlAffineOut out;
    out.q = state_.data();
    out.f = f_.data() + r * q;
    out.G = G_.data() + r * q * n;
    dynamics_->Evaluate(observation_.data(), out);
    std::transform(state_.begin(), state_.end(), q_.begin() + r * q, [](double v) { return static_cast<float>(v); });
  }
  barrier_.ForwardWithGradient(batch, q_.data(), values_.data(), slopes_.data());
  for (int r = 0; r < batch; ++r) {
    BarrierQp qp;
    qp.n = n;
    qp.V = values_[r];
    std::fill(LG_V_.begin(), LG_V_.end(), 0.0);
    for (int d = 0; d < q; ++d) {
      const double slope = slopes_[r * q + d];
      qp.Lf_V += slope * f_[r * q + d];
      for (int i = 0; i < n; ++i) LG_V_[i] += slope * G_[(r * q + d) * n + i];
    }
    qp.LG_V = LG_V_.data();
    qp.low = low_.data();
    qp.high = high_.data();
    qp.decay = scalars_.decay;
    qp.penalty = scalars_.penalty;
    std::copy_n(actions + r * n, n, u_.data());
    SolveBarrierQp(qp, u_.data(), action_.data());
    const double intervention = RoundFilteredAction(action_, u_, &executed_[r * n]);
    if (diagnostics.intervention != nullptr) diagnostics.intervention[r] = intervention;
  }
}

absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, const TaskModel& model, int max_batch) {
  return CbfQpRule::MakeRule(snapshot, model, max_batch);
}

std::vector<Column> Columns(uint32_t action_dim) { return {ExecutedActionColumn(action_dim)}; }

}  // namespace datacom::cbf_qp
