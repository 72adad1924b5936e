// Acting rule safe_map (D-ATACOM and IQN-ATACOM, docs/algorithms.md 4 and 7.2): the Gaussian policy's sample
// u, filtered by the safe map.
//   z = [q, x] of the task's control-affine model, rounded to float32;
//   k = value of the learned constraint at z - delta (learned_constraint.h), with dk/dz;
//   a = W(s, u) in float64, rounded to float32; known rows of the task that the snapshot names (scalars
//   known_constraint.<row>) are joined to the learned one in W (known_rows.h).
// The shield is the learned row: without it dk/dz is 0, so that the row leaves every action free.
// Columns raw_action (u), cvar (the learned constraint's value) and delta.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/acting/gaussian_policy.h"
#include "common/acting/learned_constraint.h"
#include "common/acting/register_rule.h"
#include "common/acting/rule_parts.h"
#include "common/base/status.h"
#include "common/safety/known_rows.h"
#include "common/safety/safe_map.h"
#include "common/tasks/task.h"

namespace datacom {
namespace {

// Not thread-safe; owns nets and workspace, shares the task's model; Load and Act neither allocate nor block.
class SafeMapRule : public SnapshotRule {
 public:
  SafeMapRule(const Snapshot& snapshot, const SnapshotForm& form, KnownRows known, const TaskModel& model,
              int max_batch);

  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override;
  int noise_dim() const override { return policy_.noise_dim(); }
  bool has_constraint() const override { return true; }
  bool has_shield() const override { return true; }

 protected:
  void Set(const Snapshot& snapshot) override {
    policy_.Set(snapshot);
    constraint_.Set(snapshot);
    delta_ = ScalarOf(snapshot, "delta");
    gains_ = GainsOf(snapshot);
  }

 private:
  enum { kRaw, kValue, kThreshold };  // numbers of the columns
  void EvaluateModel(int batch, const float* observations);
  // Prepares the map for row r, whose learned constraint is k, with or without its gradient.
  void SetMap(int r, double k, bool shield);

  GaussianPolicy policy_;
  LearnedConstraint constraint_;
  double delta_ = 0;
  SafeMapGains gains_;
  std::shared_ptr<const ControlAffine> dynamics_;
  ControlAffineDims dims_;
  KnownRows known_;
  SafeMap map_;

  std::vector<float> z_;                                // [max_batch, q + x]
  std::vector<double> f_, G_, x_dot_;                   // [max_batch, q], [max_batch, q, n], [max_batch, x]
  std::vector<double> joined_;                          // [max_batch, known rows, n + 2]
  std::vector<double> observation_, state_, gradient_;  // one row: [obs], [q + x], [q + x]
  std::vector<double> flat_;                            // [q + x] zeros
  std::vector<float> other_;                            // [n] the action with the other choice of the shield
  RowFilter filter_;
};

SafeMapRule::SafeMapRule(const Snapshot& snapshot, const SnapshotForm& form, KnownRows known, const TaskModel& model,
                         int max_batch)
    : policy_(snapshot, form, model.spec, max_batch),
      constraint_(snapshot, form, max_batch),
      dynamics_(model.dynamics),
      dims_(model.dynamics->dims()),
      known_(std::move(known)),
      map_(SafeMapDims{1 + known_.count(), dims_.action, dims_.q, dims_.x, known_.equalities()}),
      filter_(dims_.action) {
  const int width = dims_.q + dims_.x;
  z_.resize(max_batch * width);
  f_.resize(max_batch * dims_.q);
  G_.resize(max_batch * dims_.q * dims_.action);
  x_dot_.resize(max_batch * dims_.x);
  joined_.resize(max_batch * known_.count() * JoinedRowSize(dims_.action));
  observation_.resize(dims_.obs);
  state_.resize(width);
  gradient_.resize(width);
  flat_.resize(width);
  other_.resize(dims_.action);
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

void SafeMapRule::SetMap(int r, double k, bool shield) {
  const double* const gradient = shield ? gradient_.data() : flat_.data();
  SafeMapTerms terms;
  terms.k = &k;
  terms.J_k = gradient;
  terms.J_x = gradient + dims_.q;
  terms.f = f_.data() + r * dims_.q;
  terms.G = G_.data() + r * dims_.q * dims_.action;
  terms.x_dot = x_dot_.data() + r * dims_.x;
  map_.Set(terms, joined_.data() + r * known_.count() * JoinedRowSize(dims_.action), gains_);
}

void SafeMapRule::Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) {
  policy_.Act(batch, inputs, actions);  // u, replaced by a below
  EvaluateModel(batch, inputs.observations);
  constraint_.Evaluate(batch, z_.data());
  const int n = dims_.action;
  for (int r = 0; r < batch; ++r) {
    float* row = actions + r * n;
    const double cvar = constraint_.Row(r, gradient_.data());
    const double k = cvar - delta_;
    const auto apply = [this](const double* u, double* a) { map_.Apply(u, a); };
    std::copy_n(row, n, column(kRaw) + r * n);
    column(kValue)[r] = static_cast<float>(cvar);
    column(kThreshold)[r] = static_cast<float>(cvar - k);
    if (diagnostics.shield_change != nullptr) {
      SetMap(r, k, !uses_shield());
      filter_.Apply(r, row, {}, other_.data(), apply);
    }
    SetMap(r, k, uses_shield());
    filter_.Apply(r, row, diagnostics, row, apply);
    if (diagnostics.shield_change != nullptr) diagnostics.shield_change[r] = ActionDistance(n, row, other_.data());
    if (diagnostics.constraint != nullptr) diagnostics.constraint[r] = k;
    if (diagnostics.cvar != nullptr) diagnostics.cvar[r] = cvar;
  }
}

SnapshotForm Form(const SnapshotDims& dims, const Snapshot& like) {
  SnapshotForm form;
  GaussianPolicy::Declare(dims, &form);
  LearnedConstraint::Declare(dims.state, like, &form);
  form.scalars.push_back({"delta", /*example=*/0.8});
  DeclareGains(&form);
  form.known_constraints = true;
  return form;
}

absl::StatusOr<std::unique_ptr<SnapshotRule>> Make(const Snapshot& snapshot, const SnapshotForm& form,
                                                   const TaskModel& model, int max_batch) {
  ASSIGN_OR_RETURN(std::vector<int> rows, SelectKnownRows(model, KnownConstraintNames(snapshot)));
  KnownRows known(model.known_constraints, std::move(rows), model.dynamics->dims());
  return std::make_unique<SafeMapRule>(snapshot, form, std::move(known), model, max_batch);
}

std::vector<Column> Columns(uint32_t action_dim) {
  return {{kRawAction, ColumnType::kFloat32, action_dim, false},
          {kCvar, ColumnType::kFloat32, 1, false},
          {kDelta, ColumnType::kFloat32, 1, false}};
}

const RegisterActingRule kRegistered("safe_map", {&Form, &Make, &Columns, &CheckTaskOfMap});

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
