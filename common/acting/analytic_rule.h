// Acting rules atacom_fi and atacom_nfi (learner/algorithms/README.md 8): the Gaussian policy's sample u, mapped after
// the policy by the task's known constraints. atacom_fi makes them forward invariant, atacom_nfi uses them unchanged.
//   a = AnalyticMap(s) u in float64, rounded to float32, not rescaled; u is stored, a executed (column
//   executed_action).
#ifndef DATACOM_COMMON_ACTING_ANALYTIC_RULE_H_
#define DATACOM_COMMON_ACTING_ANALYTIC_RULE_H_

#include <memory>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/acting/gaussian_policy.h"
#include "common/safety/analytic_map.h"

namespace datacom {

// Not thread-safe; owns nets and workspace, shares the task's model; Load and Act neither allocate nor block.
class AnalyticRule : public ActingRule {
 public:
  // As MakeActingRule; also INVALID_ARGUMENT for a task without known constraints or with too many actions.
  static absl::StatusOr<std::unique_ptr<ActingRule>> MakeRule(const Snapshot& snapshot, const TaskModel& model,
                                                              bool forward_invariant, int max_batch);

  absl::Status Load(const Snapshot& snapshot) override;
  // Writes u to `actions`. Leaves diagnostics.constraint and cvar unchanged: there is no learned constraint.
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override;
  int noise_dim() const override { return policy_.noise_dim(); }
  const float* executed() const override { return executed_.data(); }

 private:
  AnalyticRule(gaussian_policy::GaussianPolicy policy, AnalyticMap map, const SafeMapGains& gains,
               const TaskModel& model, int max_batch);

  gaussian_policy::GaussianPolicy policy_;
  AnalyticMap map_;
  SafeMapGains gains_;
  std::shared_ptr<const ControlAffine> dynamics_;
  std::vector<float> executed_;                              // [max_batch, n]
  std::vector<double> observation_, q_, x_, x_dot_, f_, G_;  // one row
  std::vector<double> u_, action_;                           // one row: [n]
};

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_ANALYTIC_RULE_H_
