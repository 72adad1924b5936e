// Acting rule cbf_qp (CBF-SAC, learner/algorithms/README.md 13.1): the Gaussian policy's sample u, filtered after the
// policy by the exact solution of a quadratic programme (barrier_qp.h) for a learned barrier V(q).
//   V and dV/dq: net "barrier" at q, rounded to float32; f and G: the task's control-affine model;
//   executed: the solution in float64, rounded to float32, also in evaluation. u is stored as the action, the solution
//   in column executed_action.
#ifndef DATACOM_COMMON_ACTING_CBF_QP_RULE_H_
#define DATACOM_COMMON_ACTING_CBF_QP_RULE_H_

#include <memory>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/acting/gaussian_policy.h"
#include "common/nn/mlp.h"

namespace datacom::cbf_qp {

// Not thread-safe; owns nets and workspace, shares the task's model; Load and Act neither allocate nor block.
class CbfQpRule : public ActingRule {
 public:
  // As MakeActingRule; also INVALID_ARGUMENT for a task with an uncontrollable constraint state.
  static absl::StatusOr<std::unique_ptr<ActingRule>> MakeRule(const Snapshot& snapshot, const TaskModel& model,
                                                              int max_batch);

  absl::Status Load(const Snapshot& snapshot) override;
  // Leaves diagnostics.constraint and cvar unchanged: a barrier is not a discounted cost.
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override;
  int noise_dim() const override { return policy_.noise_dim(); }
  const float* executed() const override { return executed_.data(); }

 private:
  struct Scalars {
    double decay = 0, penalty = 0;
  };
  static absl::StatusOr<Scalars> ReadScalars(const Snapshot& snapshot);
  CbfQpRule(gaussian_policy::GaussianPolicy policy, Mlp barrier, const Scalars& scalars, const TaskModel& model,
            int max_batch);

  gaussian_policy::GaussianPolicy policy_;
  Mlp barrier_;
  Scalars scalars_;
  std::shared_ptr<const ControlAffine> dynamics_;
  std::vector<double> low_, high_;           // [n]
  std::vector<float> q_, values_, slopes_;   // [max_batch, q], [max_batch], [max_batch, q]
  std::vector<double> f_, G_;                // [max_batch, q], [max_batch, q, n]
  std::vector<float> executed_;              // [max_batch, n]
  std::vector<double> observation_, state_;  // one row: [obs], [q]
  std::vector<double> LG_V_, u_, action_;    // one row: [n]
};

}  // namespace datacom::cbf_qp

#endif  // DATACOM_COMMON_ACTING_CBF_QP_RULE_H_
