// Acting rule gaussian_policy: a squashed Gaussian (learner/algorithms/README.md 1.5).
//   raw = mean(s) + exp(clamp(log_std(s), -20, 2)) * noise;  u = tanh(raw) * (high - low) / 2 + (high + low) / 2,
//   float32.
#ifndef DATACOM_COMMON_ACTING_GAUSSIAN_POLICY_H_
#define DATACOM_COMMON_ACTING_GAUSSIAN_POLICY_H_

#include <memory>
#include <utility>
#include <vector>

#include "common/acting/action_scale.h"
#include "common/acting/register_rule.h"
#include "common/acting/seen_part.h"
#include "common/nn/mlp.h"

namespace datacom::gaussian_policy {

inline constexpr float kMinLogStd = -20, kMaxLogStd = 2;

// The rule itself; rules that filter its samples contain one. Not thread-safe; owns nets and workspace; Load and Act
// neither allocate nor block.
class GaussianPolicy : public SnapshotRule {
 public:
  static void Declare(const SnapshotDims& dims, SnapshotForm* form);
  static absl::StatusOr<GaussianPolicy> MakePolicy(const Snapshot& snapshot, const SnapshotForm& form,
                                                   const TaskSpec& spec, int max_batch);

  void Set(const Snapshot& snapshot) override;
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override;
  int noise_dim() const override { return mean_.outputs(); }

 private:
  GaussianPolicy(Mlp mean, Mlp log_std, const TaskSpec& spec, int max_batch);

  Mlp mean_, log_std_;
  SeenPart seen_;
  ActionScale scale_;
  std::vector<float> mean_values_, log_std_values_;  // [max_batch, action]
};

}  // namespace datacom::gaussian_policy

#endif  // DATACOM_COMMON_ACTING_GAUSSIAN_POLICY_H_
// SPDX-License-Identifier: Apache-2.0
