// Acting rules atacom_fi and atacom_nfi (docs/algorithms.md 8): the Gaussian policy's sample u, mapped after
// the policy by the task's known constraints. atacom_fi makes them forward invariant, atacom_nfi uses them unchanged.
//   a = AnalyticMap(s) u in float64, rounded to float32, not rescaled; u is stored, a executed (column
//   executed_action).
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/acting/gaussian_policy.h"
#include "common/acting/map_parts.h"
#include "common/acting/register_rule.h"
#include "common/acting/rule_parts.h"
#include "common/safety/known_rows.h"

namespace datacom {
namespace {

std::vector<double> ViabilityGains(const KnownConstraints& constraints, bool forward_invariant) {
  return forward_invariant ? constraints.viability_gains() : std::vector<double>(constraints.count());
}

// Not thread-safe; owns nets and workspace, shares the task's model; Load and Act neither allocate nor block.
template <bool ForwardInvariant>
class AnalyticRule : public ExecutingRule {
 public:
  AnalyticRule(const Snapshot& snapshot, const SnapshotForm& form, const TaskModel& model, int max_batch)
      : policy_(snapshot, form, model.spec, max_batch),
        map_(model.known_constraints, ViabilityGains(*model.known_constraints, ForwardInvariant),
             model.dynamics->dims()),
        rows_(model, max_batch),
        filter_(model.spec.action_dim) {}

  // Writes u to `actions`. Leaves diagnostics.constraint and cvar unchanged: there is no learned constraint.
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override {
    policy_.Act(batch, inputs, actions);
    rows_.Evaluate(batch, inputs.observations);
    const int n = policy_.noise_dim();
    for (int r = 0; r < batch; ++r) {
      map_.Set(rows_.Row(r), gains_);
      filter_.Apply(r, actions + r * n, diagnostics, column(kExecuted) + r * n,
                    [this](const double* u, double* a) { map_.Apply(u, a); });
    }
  }
  int noise_dim() const override { return policy_.noise_dim(); }
  bool has_filter() const override { return true; }

 protected:
  void Set(const Snapshot& snapshot) override {
    policy_.Set(snapshot);
    gains_ = GainsOf(snapshot);
  }

 private:
  GaussianPolicy policy_;
  AnalyticMap map_;
  SafeMapGains gains_;
  ModelRows rows_;
  RowFilter filter_;
};

SnapshotForm Form(const SnapshotDims& dims, const Snapshot& /*like*/) {
  SnapshotForm form;
  GaussianPolicy::Declare(dims, &form);
  DeclareGains(&form);
  return form;
}

absl::Status CheckTask(const TaskModel& model) {
  if (model.known_constraints != nullptr) return CheckTaskOfMap(model);
  return absl::InvalidArgumentError(absl::StrCat("task ", model.spec.name, " has no known constraints"));
}

const RegisterActingRule kInvariant("atacom_fi",
                                    {&Form, &NewRule<AnalyticRule<true>>, &ExecutedActionOnly, &CheckTask});
const RegisterActingRule kNotInvariant("atacom_nfi",
                                       {&Form, &NewRule<AnalyticRule<false>>, &ExecutedActionOnly, &CheckTask});

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
