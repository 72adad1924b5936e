// An ensemble of learned dynamics, evaluated from a snapshot (docs/algorithms.md 19.1): member i is the swish
// net "dynamics.<i>" of the standardised [s, a], (x - dynamics.input_mean) / dynamics.input_std. Its outputs are the
// mean and the log-variance of [reward, s' - s], the log-variance softly bounded to [-10, 0.5].
//
// Not thread-safe; owns nets and workspace; Set and Step neither allocate nor block.
#ifndef DATACOM_COMMON_ACTING_DYNAMICS_ENSEMBLE_H_
#define DATACOM_COMMON_ACTING_DYNAMICS_ENSEMBLE_H_

#include <vector>

#include "Eigen/Core"
#include "absl/status/statusor.h"
#include "common/acting/snapshot_form.h"
#include "common/nn/mlp.h"
#include "common/nn/snapshot.h"

namespace datacom {

class DynamicsEnsemble {
 public:
  // Declares as many members as `like` has nets, at least one.
  static void Declare(int obs_dim, int action_dim, const Snapshot& like, SnapshotForm* form);
  // Step needs a Set first.
  static absl::StatusOr<DynamicsEnsemble> Make(const Snapshot& snapshot, const SnapshotForm& form, int obs_dim,
                                               int action_dim, int max_batch);
  void Set(const Snapshot& snapshot);

  int members() const { return static_cast<int>(nets_.size()); }
  int normals_per_row() const { return obs_dim_ + 1; }
  // Draws reward and next state of each row from one member's distribution. actions: [batch, action]; normals: [batch,
  // normals_per_row()] standard normal; states: [batch, obs], replaced by the next states; rewards: [batch]. Next
  // states are clamped to +-100; numbers that are not finite become 0.
  void Step(int member, int batch, const float* actions, const float* normals, float* states, float* rewards);

 private:
  using Floats = Eigen::Array<float, Eigen::Dynamic, 1>;  // aligned to full vectors
  DynamicsEnsemble(int obs_dim, int action_dim, int max_batch);

  int obs_dim_, action_dim_;
  std::vector<Mlp> nets_;
  std::vector<float> input_mean_, input_scale_;  // [obs + action]
  std::vector<float> inputs_, outputs_;          // [max_batch, obs + action], [max_batch, 2 (obs + 1)]
  Floats deviations_;                            // [max_batch, obs + 1], rounded up to full vectors
};

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_DYNAMICS_ENSEMBLE_H_
// SPDX-License-Identifier: Apache-2.0
