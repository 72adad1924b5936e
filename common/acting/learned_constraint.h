// Value and gradient of a learned feasibility constraint at constraint states z, from a snapshot's nets:
//   "constraint.mean", "constraint.log_std" and scalar risk_margin (docs/algorithms.md 4), sigmoid hidden:
//     softplus(mean(z)) + exp(clamp(log_std(z), -20, 2)) * risk_margin, a CVaR; the clamp's gradient is 0 outside;
//   or "constraint.value" (docs/algorithms.md 7.2), ReLU hidden: softplus(value(z)), a quantile.
// The nets compute gradients in float32; they are widened to float64. Not thread-safe; owns nets and workspace; Set
// and Evaluate neither allocate nor block.
#ifndef DATACOM_COMMON_ACTING_LEARNED_CONSTRAINT_H_
#define DATACOM_COMMON_ACTING_LEARNED_CONSTRAINT_H_

#include <optional>
#include <vector>

#include "common/acting/snapshot_form.h"
#include "common/nn/mlp.h"
#include "common/nn/snapshot.h"

namespace datacom {

class LearnedConstraint {
 public:
  // inputs: dimensions of z; like: whose nets these are, the CVaR's if it has none.
  static void Declare(int inputs, const Snapshot& like, SnapshotForm* form);
  LearnedConstraint(const Snapshot& snapshot, const SnapshotForm& form, int max_batch);
  void Set(const Snapshot& snapshot);

  // z: [batch, inputs], batch <= max_batch. Needs a Set first.
  void Evaluate(int batch, const float* z);
  // Returns the value of row r of the last Evaluate and writes its gradient, [inputs].
  double Row(int r, double* gradient) const;

 private:
  Mlp value_;  // the mean, or the quantile
  std::optional<Mlp> log_std_;
  double margin_ = 0;
  std::vector<float> values_, log_stds_;              // [max_batch]
  std::vector<float> value_slopes_, log_std_slopes_;  // [max_batch, inputs]
};

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_LEARNED_CONSTRAINT_H_
// SPDX-License-Identifier: Apache-2.0
