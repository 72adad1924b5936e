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
#include "common/acting/map_parts.h"
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
              int max_batch)
      : policy_(snapshot, form, model.spec, max_batch),
        constraint_(snapshot, form, max_batch),
        rows_(model, max_batch),
        known_(std::move(known)),
        map_(SafeMapDims{1 + known_.count(), rows_.dims().action, rows_.dims().q, rows_.dims().x, known_.equalities()}),
        joined_(known_.count() * JoinedRowSize(rows_.dims().action)),
        gradient_(rows_.dims().q + rows_.dims().x),
        flat_(gradient_.size()),
        other_(rows_.dims().action),
        filter_(rows_.dims().action) {}

  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override {
    policy_.Act(batch, inputs, actions);  // u, replaced by a below
    rows_.Evaluate(batch, inputs.observations);
    constraint_.Evaluate(batch, rows_.states());
    const int n = rows_.dims().action;
    for (int r = 0; r < batch; ++r) {
      float* row = actions + r * n;
      const double cvar = constraint_.Row(r, gradient_.data());
      const double k = cvar - delta_;
      known_.Evaluate(rows_.Row(r), joined_.data());
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

  // Prepares the map for row r, whose learned constraint is k, with or without its gradient.
  void SetMap(int r, double k, bool shield) {
    const double* const gradient = shield ? gradient_.data() : flat_.data();
    const KnownRowsInput row = rows_.Row(r);
    map_.Set({&k, gradient, gradient + rows_.dims().q, row.f, row.G, row.x_dot}, joined_.data(), gains_);
  }

  GaussianPolicy policy_;
  LearnedConstraint constraint_;
  double delta_ = 0;
  SafeMapGains gains_;
  ModelRows rows_;
  KnownRows known_;
  SafeMap map_;

  std::vector<double> joined_;    // one row: [known rows, n + 2]
  std::vector<double> gradient_;  // one row: [q + x]
  std::vector<double> flat_;      // [q + x] zeros
  std::vector<float> other_;      // [n] the action with the other choice of the shield
  RowFilter filter_;
};

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
