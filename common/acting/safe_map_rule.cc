#include "common/acting/safe_map_rule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/acting/filtered_action.h"
#include "common/acting/scalars.h"
#include "common/base/status.h"
#include "common/tasks/known_selection.h"

namespace datacom::safe_map {

using gaussian_policy::GaussianPolicy;

SafeMapRule::SafeMapRule(GaussianPolicy policy, LearnedConstraint constraint, const Scalars& scalars,
                         const std::vector<std::string>& known_names, KnownRows known, const TaskModel& model,
                         int max_batch)
    : policy_(std::move(policy)),
      constraint_(std::move(constraint)),
      scalars_(scalars),
      dynamics_(model.dynamics),
      dims_(model.dynamics->dims()),
      known_names_(known_names),
      known_(std::move(known)),
      map_(SafeMapDims{1 + known_.count(), dims_.action, dims_.q, dims_.x}) {
  const int width = dims_.q + dims_.x;
  z_.resize(max_batch * width);
  f_.resize(max_batch * dims_.q);
  G_.resize(max_batch * dims_.q * dims_.action);
  x_dot_.resize(max_batch * dims_.x);
  joined_.resize(max_batch * known_.count() * JoinedRowSize(dims_.action));
  observation_.resize(dims_.obs);
  state_.resize(width);
  gradient_.resize(width);
  u_.resize(dims_.action);
  action_.resize(dims_.action);
}

absl::StatusOr<std::unique_ptr<ActingRule>> SafeMapRule::MakeRule(const Snapshot& snapshot, const TaskModel& model,
                                                                  int max_batch) {
  const ControlAffineDims dims = model.dynamics->dims();
  if (dims.action > kMaxSafeMapActions) {
    return absl::InvalidArgumentError(absl::StrCat("task ", model.spec.name, " has ", dims.action,
                                                   " actions, the safe map takes at most ", kMaxSafeMapActions));
  }
  ASSIGN_OR_RETURN(const Scalars scalars, ReadScalars(snapshot));
  ASSIGN_OR_RETURN(GaussianPolicy policy, GaussianPolicy::MakePolicy(snapshot, model.spec, max_batch));
  ASSIGN_OR_RETURN(LearnedConstraint constraint, LearnedConstraint::Make(snapshot, dims.q + dims.x, max_batch));
  const std::vector<std::string> names = KnownConstraintNames(snapshot);
  ASSIGN_OR_RETURN(std::vector<int> rows, SelectKnownRows(model, names));
  KnownRows known(model.known_constraints, std::move(rows), dims);
  return std::unique_ptr<ActingRule>(
      new SafeMapRule(std::move(policy), std::move(constraint), scalars, names, std::move(known), model, max_batch));
}

absl::StatusOr<SafeMapRule::Scalars> SafeMapRule::ReadScalars(const Snapshot& snapshot) {
  Scalars scalars;
  ASSIGN_OR_RETURN(scalars.delta, FiniteScalar(snapshot, "delta"));
  ASSIGN_OR_RETURN(scalars.gains, ReadSafeMapGains(snapshot));
  return scalars;
}

absl::Status SafeMapRule::Load(const Snapshot& snapshot) {
  // Check everything before changing anything.
  ASSIGN_OR_RETURN(const Scalars scalars, ReadScalars(snapshot));
  RETURN_IF_ERROR(policy_.Check(snapshot));
  RETURN_IF_ERROR(constraint_.Check(snapshot));
  RETURN_IF_ERROR(CheckKnownConstraintNames(snapshot, known_names_));
  RETURN_IF_ERROR(policy_.Load(snapshot));
  RETURN_IF_ERROR(constraint_.Load(snapshot));
  scalars_ = scalars;
  return absl::OkStatus();
}

void SafeMapRule::EvaluateModel(int batch, const float* observations) {
  const int width = dims_.q + dims_.x;
  for (int r = 0; r < batch; ++r) {
    std::copy_n(observations + r * dims_.obs, dims_.obs, observation_.data());
    ControlAffineOut out;
    out.q = state_.data();
    out.x = state_.data() + dims_.q;
    out.x_dot = x_dot_.data() + r * dims_.x;
    out.f = f_.data() + r * dims_.q;
    out.G = G_.data() + r * dims_.q * dims_.action;
    dynamics_->Evaluate(observation_.data(), out);
    known_.Evaluate({out.q, out.x, out.f, out.G, out.x_dot, observation_.data()},
                    joined_.data() + r * known_.count() * JoinedRowSize(dims_.action));
    std::transform(state_.begin(), state_.end(), z_.begin() + r * width,
                   [](double v) { return static_cast<float>(v); });
  }
}

void SafeMapRule::Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) {
  policy_.Act(batch, inputs, actions, {});  // u, replaced by a below
  EvaluateModel(batch, inputs.observations);
  constraint_.Evaluate(batch, z_.data());
  const int n = dims_.action;
  for (int r = 0; r < batch; ++r) {
    float* row = actions + r * n;
    const double cvar = constraint_.Row(r, gradient_.data());
    const double k = cvar - scalars_.delta;
    SafeMapTerms terms;
    terms.k = &k;
    terms.J_k = gradient_.data();
    terms.J_x = gradient_.data() + dims_.q;
    terms.f = f_.data() + r * dims_.q;
    terms.G = G_.data() + r * dims_.q * n;
    terms.x_dot = x_dot_.data() + r * dims_.x;
    map_.Set(terms, joined_.data() + r * known_.count() * JoinedRowSize(n), scalars_.gains);
    std::copy_n(row, n, u_.data());
    if (diagnostics.raw_action != nullptr) std::copy_n(row, n, diagnostics.raw_action + r * n);
    map_.Apply(u_.data(), action_.data());
    const double intervention = RoundFilteredAction(action_, u_, row);
    if (diagnostics.constraint != nullptr) diagnostics.constraint[r] = k;
    if (diagnostics.cvar != nullptr) diagnostics.cvar[r] = cvar;
    if (diagnostics.intervention != nullptr) diagnostics.intervention[r] = intervention;
  }
}

absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, const TaskModel& model, int max_batch) {
  return SafeMapRule::MakeRule(snapshot, model, max_batch);
}

std::vector<Column> Columns(uint32_t action_dim) {
  std::vector<Column> columns = {RawActionColumn(action_dim)};
  for (const Column& column : JudgementColumns()) columns.push_back(column);
  return columns;
}

}  // namespace datacom::safe_map
