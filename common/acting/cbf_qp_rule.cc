// Acting rule cbf_qp (CBF-SAC, docs/algorithms.md 13.1): the Gaussian policy's sample u, filtered after the
// policy by the exact solution of a quadratic programme (barrier_qp.h) for a learned barrier V(q).
//   V and dV/dq: net "barrier" at q, rounded to float32; f and G: the task's control-affine model;
//   executed: the solution in float64, rounded to float32, also in evaluation. u is stored as the action, the solution
//   in column executed_action.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/acting/gaussian_policy.h"
#include "common/acting/map_parts.h"
#include "common/acting/register_rule.h"
#include "common/acting/rule_parts.h"
#include "common/base/status.h"
#include "common/safety/barrier_qp.h"

namespace datacom {
namespace {

// Not thread-safe; owns nets and workspace, shares the task's model; Load and Act neither allocate nor block.
class CbfQpRule : public ExecutingRule {
 public:
  CbfQpRule(const Snapshot& snapshot, const SnapshotForm& form, const TaskModel& model, int max_batch)
      : policy_(snapshot, form, model.spec, max_batch),
        barrier_(snapshot, form.Net("barrier"), max_batch),
        rows_(model, max_batch),
        low_(model.spec.action_low),
        high_(model.spec.action_high),
        values_(max_batch),
        slopes_(max_batch * barrier_.inputs()),
        LG_V_(model.spec.action_dim),
        filter_(model.spec.action_dim) {}

  // Leaves diagnostics.constraint and cvar unchanged: a barrier is not a discounted cost.
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override {
    policy_.Act(batch, inputs, actions);
    const int q = barrier_.inputs(), n = policy_.noise_dim();
    rows_.Evaluate(batch, inputs.observations);
    barrier_.ForwardWithGradient(batch, rows_.states(), values_.data(), slopes_.data());
    for (int r = 0; r < batch; ++r) {
      BarrierQp qp;
      qp.n = n;
      qp.V = values_[r];
      std::fill(LG_V_.begin(), LG_V_.end(), 0.0);
      const KnownRowsInput row = rows_.Row(r);
      for (int d = 0; d < q; ++d) {
        const double slope = slopes_[r * q + d];
        qp.Lf_V += slope * row.f[d];
        for (int i = 0; i < n; ++i) LG_V_[i] += slope * row.G[d * n + i];
      }
      qp.LG_V = LG_V_.data();
      qp.low = low_.data();
      qp.high = high_.data();
      qp.decay = decay_;
      qp.penalty = penalty_;
      filter_.ApplyShield(uses_shield(), r, actions + r * n, diagnostics, column(kExecuted) + r * n,
                          [&qp](const double* u, double* a) { SolveBarrierQp(qp, u, a); });
    }
  }

  int noise_dim() const override { return policy_.noise_dim(); }
  bool has_shield() const override { return true; }

 protected:
  void Set(const Snapshot& snapshot) override {
    policy_.Set(snapshot);
    barrier_.Set(snapshot);
    decay_ = ScalarOf(snapshot, "barrier_decay");
    penalty_ = ScalarOf(snapshot, "relaxation_penalty");
  }

 private:
  GaussianPolicy policy_;
  Mlp barrier_;
  double decay_ = 0, penalty_ = 0;
  ModelRows rows_;
  std::vector<double> low_, high_;      // [n]
  std::vector<float> values_, slopes_;  // [max_batch], [max_batch, q]
  std::vector<double> LG_V_;            // one row: [n]
  RowFilter filter_;
};

SnapshotForm Form(const SnapshotDims& dims, const Snapshot& /*like*/) {
  SnapshotForm form;
  GaussianPolicy::Declare(dims, &form);
  form.nets.push_back({"barrier", dims.state, 1, Mlp::Hidden::kRelu, Mlp::Output::kLinear, /*gradient=*/true});
  form.scalars = {{"barrier_decay", /*example=*/0.7}, {"relaxation_penalty", /*example=*/200, /*above=*/0}};
  return form;
}

absl::Status CheckTask(const TaskModel& model) {
  RETURN_IF_ERROR(CheckHasModel(model));
  const int uncontrolled = model.dynamics->dims().x;
  if (uncontrolled == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("task ", model.spec.name, " has ", uncontrolled,
                                                 " uncontrollable constraint states; a barrier needs controllable ",
                                                 "ones only"));
}

const RegisterActingRule kRegistered("cbf_qp", {&Form, &NewRule<CbfQpRule>, &ExecutedActionOnly, &CheckTask});

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
