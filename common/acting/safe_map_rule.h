// Acting rule safe_map (D-ATACOM and IQN-ATACOM, learner/algorithms/README.md 4 and 7.2): the Gaussian policy's sample
// u, filtered by the safe map.
//   z = [q, x] of the task's control-affine model, rounded to float32;
//   k = value of the learned constraint at z - delta (learned_constraint.h), with dk/dz;
//   a = W(s, u) in float64, rounded to float32; known rows of the task that the snapshot names (scalars
//   known_constraint.<row>) are joined to the learned one in W (known_rows.h).
#ifndef DATACOM_COMMON_ACTING_SAFE_MAP_RULE_H_
#define DATACOM_COMMON_ACTING_SAFE_MAP_RULE_H_

#include <memory>
#include <string>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/acting/gaussian_policy.h"
#include "common/acting/learned_constraint.h"
#include "common/safety/known_rows.h"
#include "common/safety/safe_map.h"

namespace datacom::safe_map {

// Not thread-safe; owns nets and workspace, shares the task's model; Load and Act neither allocate nor block.
class SafeMapRule : public ActingRule {
 public:
  static absl::StatusOr<std::unique_ptr<ActingRule>> MakeRule(const Snapshot& snapshot, const TaskModel& model,
                                                              int max_batch);

  // Also INVALID_ARGUMENT when the snapshot names other known rows than the one the rule was made with.
  absl::Status Load(const Snapshot& snapshot) override;
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override;
  int noise_dim() const override { return policy_.noise_dim(); }
  bool has_constraint() const override { return true; }

 private:
  struct Scalars {
    double delta = 0;
    SafeMapGains gains;
  };
  static absl::StatusOr<Scalars> ReadScalars(const Snapshot& snapshot);

  SafeMapRule(gaussian_policy::GaussianPolicy policy, LearnedConstraint constraint, const Scalars& scalars,
              const std::vector<std::string>& known_names, KnownRows known, const TaskModel& model, int max_batch);
  void EvaluateModel(int batch, const float* observations);

  gaussian_policy::GaussianPolicy policy_;
  LearnedConstraint constraint_;
  Scalars scalars_;
  std::shared_ptr<const ControlAffine> dynamics_;
  ControlAffineDims dims_;
  std::vector<std::string> known_names_;
  KnownRows known_;
  SafeMap map_;

  std::vector<float> z_;                                // [max_batch, q + x]
  std::vector<double> f_, G_, x_dot_;                   // [max_batch, q], [max_batch, q, n], [max_batch, x]
  std::vector<double> joined_;                          // [max_batch, known rows, n + 2]
  std::vector<double> observation_, state_, gradient_;  // one row: [obs], [q + x], [q + x]
  std::vector<double> u_, action_;                      // one row: [n]
};

}  // namespace datacom::safe_map

#endif  // DATACOM_COMMON_ACTING_SAFE_MAP_RULE_H_
