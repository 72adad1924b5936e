// Parts of the planner (planner_rule.cc): what it imagines, and how it fits its next plans to that.
#ifndef DATACOM_COMMON_ACTING_PLANNER_PARTS_H_
#define DATACOM_COMMON_ACTING_PLANNER_PARTS_H_

#include <vector>

#include "Eigen/Core"
#include "common/acting/snapshot_form.h"
#include "common/nn/mlp.h"
#include "common/nn/snapshot.h"

namespace datacom {

// An ensemble of learned dynamics, evaluated from a snapshot (docs/algorithms.md 19.1): member i is the swish
// net "dynamics.<i>" of the standardised [s, a], (x - dynamics.input_mean) / dynamics.input_std. Its outputs are the
// mean and the log-variance of [reward, s' - s], the log-variance softly bounded to [-10, 0.5].
//
// Not thread-safe; owns nets and workspace; Set and Step neither allocate nor block.
class DynamicsEnsemble {
 public:
  // Declares as many members as `like` has nets, at least one.
  static void Declare(int obs_dim, int action_dim, const Snapshot& like, SnapshotForm* form);
  // Step needs a Set first.
  DynamicsEnsemble(const Snapshot& snapshot, const SnapshotForm& form, int obs_dim, int action_dim, int max_batch);
  void Set(const Snapshot& snapshot);

  int members() const { return static_cast<int>(nets_.size()); }
  int normals_per_row() const { return obs_dim_ + 1; }
  // Draws reward and next state of each row from one member's distribution. actions: [batch, action]; normals: [batch,
  // normals_per_row()] standard normal; states: [batch, obs], replaced by the next states; rewards: [batch]. Next
  // states are clamped to +-100; numbers that are not finite become 0.
  void Step(int member, int batch, const float* actions, const float* normals, float* states, float* rewards);

 private:
  using Floats = Eigen::Array<float, Eigen::Dynamic, 1>;  // aligned to full vectors

  int obs_dim_, action_dim_;
  std::vector<Mlp> nets_;
  std::vector<float> input_mean_, input_scale_;  // [obs + action]
  std::vector<float> inputs_, outputs_;          // [max_batch, obs + action], [max_batch, 2 (obs + 1)]
  Floats deviations_;                            // [max_batch, obs + 1], rounded up to full vectors
};

// How a planner judges candidate plans and fits its next distribution to them (docs/algorithms.md 19.3).
//
// A plan is `horizon` actions. Each candidate is imagined by several particles; PlanScores adds up what they meet.
// RefitPlan weighs the candidates:
//   at least `min_feasible` of them cost at most cost_limit: only these count, exp(10 (return - largest return));
//   otherwise all count, exp(-100 (cost - smallest cost)).
// Returns and costs count 1000 steps at the plan's mean rate, undiscounted; costs are signed.
// Not thread-safe; allocates only in the constructor.
struct PlanSize {
  int horizon = 0, candidates = 0, action_dim = 0;
};

// Return and cost of every candidate.
class PlanScores {
 public:
  explicit PlanScores(const PlanSize& size);
  void Begin();
  // One particle of every candidate reaches step `step` of the plan: rewards, costs [candidates].
  void Add(int step, const float* rewards, const double* costs);
  // The same particle's value at the end of the plan, [candidates].
  void AddValues(const float* values);
  void Finish(int particles);  // for each candidate; the results below are valid after it

  const std::vector<double>& returns() const { return returns_; }  // mean over the particles
  const std::vector<double>& costs() const { return costs_; }      // sum over the steps of the worst particle's cost

 private:
  const PlanSize size_;
  std::vector<double> returns_, costs_;  // [candidates]
  std::vector<double> worst_;            // [horizon, candidates]
};

struct PlanWeighing {
  double cost_limit = 0;
  int min_feasible = 0;
  // The released code adds candidate 0 once more for every feasible candidate. Only for its recorded cases.
  bool repeat_first = false;
};

// actions: [horizon, candidates, action_dim]; weights: [candidates], workspace; mean, variance: [horizon, action_dim]
// of the weighted candidates, the variance at most 2. Returns the number of feasible candidates.
int RefitPlan(const PlanSize& size, const PlanWeighing& weighing, const float* actions, const PlanScores& scores,
              double* weights, double* mean, double* variance);

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_PLANNER_PARTS_H_
// SPDX-License-Identifier: Apache-2.0
