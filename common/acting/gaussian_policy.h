// A squashed Gaussian policy (docs/algorithms.md 1.5): the acting rule gaussian_policy, and a part of rules
// that filter its samples.
//   raw = mean(s) + exp(clamp(log_std(s), -20, 2)) * noise;  u = tanh(raw) * (high - low) / 2 + (high + low) / 2,
//   float32.
#ifndef DATACOM_COMMON_ACTING_GAUSSIAN_POLICY_H_
#define DATACOM_COMMON_ACTING_GAUSSIAN_POLICY_H_

#include <vector>

#include "common/acting/acting_rule.h"
#include "common/acting/rule_parts.h"
#include "common/acting/snapshot_form.h"
#include "common/nn/mlp.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"

namespace datacom {

inline constexpr float kMinLogStd = -20, kMaxLogStd = 2;

// Not thread-safe; owns nets and workspace; Set and Act neither allocate nor block.
class GaussianPolicy {
 public:
  static void Declare(const SnapshotDims& dims, SnapshotForm* form);
  GaussianPolicy(const Snapshot& snapshot, const SnapshotForm& form, const TaskSpec& spec, int max_batch);
  void Set(const Snapshot& snapshot);
  // Reads observations, noise and proposals of the inputs. actions: [batch, action].
  void Act(int batch, const ActingInputs& inputs, float* actions);
  int noise_dim() const { return mean_.outputs(); }  // the number of actions

 private:
  Mlp mean_, log_std_;
  SeenPart seen_;
  ActionScale scale_;
  std::vector<float> mean_values_, log_std_values_;  // [max_batch, action]
};

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_GAUSSIAN_POLICY_H_
// SPDX-License-Identifier: Apache-2.0
