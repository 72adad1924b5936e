// Acting rule planner (SafeLOOP, learner/algorithms/README.md 19.3): plans by imagined episodes in a learned ensemble
// of dynamics and executes the first action of the plan.
//
// Nets: "actor" (ReLU; mean and log_std of a squashed Gaussian from one trunk), "critic.0" of [s, a] (ReLU),
// "dynamics.<i>" (dynamics_ensemble.h). Scalars: random_actions (not 0: uniform actions, no planning), cost_limit,
// plan_samples, plan_particles (of each ensemble member), plan_iterations.
//
// A decision: the mean starts as the previous plan, shifted by one step; the variance starts at 0.075. In each
// iteration plan_samples plans are drawn from that Gaussian and clipped, plan_samples / 20 copies of one imagined
// rollout of the actor are added, all are imagined by every particle of every ensemble member, and the Gaussian is
// fitted again (plan_refit.h). It ends after plan_iterations, or when no variance is above 1e-3. The cost of an
// imagined state is the task's known cost (TaskModel::cost).
//
// Memory: the plan, [kHorizon, action] in units of the half action range.
// Random numbers: two normals of the caller name the decision's streams, from which the rule draws all others.
//
// Not thread-safe; owns nets and workspace; Load and Act neither allocate nor block.
#ifndef DATACOM_COMMON_ACTING_PLANNER_RULE_H_
#define DATACOM_COMMON_ACTING_PLANNER_RULE_H_

#include <functional>
#include <memory>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/acting/action_scale.h"
#include "common/acting/dynamics_ensemble.h"
#include "common/acting/plan_refit.h"
#include "common/nn/mlp.h"

namespace datacom::planner {

inline constexpr int kHorizon = 7;  // actions of a plan

class PlannerRule : public ActingRule {
 public:
  // INVALID_ARGUMENT if the task has no known cost.
  static absl::StatusOr<std::unique_ptr<ActingRule>> MakeRule(const Snapshot& snapshot, const TaskModel& model);

  absl::Status Load(const Snapshot& snapshot) override;
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override;
  int noise_dim() const override { return 2; }
  int memory_dim() const override { return size_.horizon * size_.action_dim; }

 private:
  struct Scalars {
    bool random_actions = false;
    double cost_limit = 0;
    int samples = 0, particles = 0, iterations = 0;
    bool SameSizes(const Scalars& other) const;
  };
  struct Nets {
    Mlp actor, critic;
    DynamicsEnsemble dynamics;
  };
  static absl::StatusOr<Scalars> ReadScalars(const Snapshot& snapshot);
  PlannerRule(Nets nets, const Scalars& scalars, const TaskModel& model);

  // Replaces plan_ [horizon, action] by the next one.
  void Plan(uint64_t key, const float* observation);
  void ImagineActor(uint64_t key, const float* observation);
  void DrawCandidates(uint64_t key);
  // Scores all candidates.
  void Imagine(uint64_t key, const float* observation);
  void ImagineParticle(int member, uint64_t key, const float* observation);

  Nets nets_;
  Scalars scalars_;
  const std::function<double(const double*)> cost_;
  const int obs_dim_;
  const ActionScale scale_;
  PlanSize size_;
  PlanScores scores_;
  std::vector<double> plan_, variance_, fitted_variance_;  // [horizon, action]
  std::vector<double> weights_, costs_;                    // [candidates]
  std::vector<double> wide_state_;                         // [obs]
  std::vector<float> rollout_;                             // [horizon, action] of the actor
  std::vector<float> candidates_, executed_;  // [horizon, candidates, action], in half ranges and as executed
  std::vector<float> states_, rewards_;       // [candidates, obs], [candidates]
  std::vector<float> inputs_, values_;        // of the critic: [candidates, obs + action], [candidates]
  std::vector<float> policy_;                 // [2, action]: the actor's output
  std::vector<float> normals_;                // what one step of a particle or the candidates need
};

}  // namespace datacom::planner

#endif  // DATACOM_COMMON_ACTING_PLANNER_RULE_H_
