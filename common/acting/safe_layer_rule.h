// Acting rule safe_layer (SafeLayerTD3, learner/algorithms/README.md 12): a deterministic policy with exploration
// noise, also in evaluation, projected after the policy by a linear model of the next cost.
//   stored: a = clip(tanh(actor(s)) half + centre + exploration_noise * noise, low, high), the action's box, float32
//   predicted: e = c + <g, a> with g = safety_model(s) and c the cost of the previous step, 0 after a reset
//   executed: a where e < projection_threshold, else a - (e - projection_threshold) g / (<g, g> + 1e-8), in float64,
//     rounded to float32 and not clipped, because the environment limits it
// Columns executed_action and prev_cost.
#ifndef DATACOM_COMMON_ACTING_SAFE_LAYER_RULE_H_
#define DATACOM_COMMON_ACTING_SAFE_LAYER_RULE_H_

#include <memory>
#include <string>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/acting/seen_part.h"
#include "common/nn/mlp.h"

namespace datacom::safe_layer {

// The projection. slope, action, projected: [n]; projected may be action.
void Project(int n, const double* slope, double cost, double threshold, const double* action, double* projected);

// Not thread-safe; owns nets and workspace; Load and Act neither allocate nor block.
class SafeLayerRule : public ActingRule {
 public:
  static absl::StatusOr<std::unique_ptr<ActingRule>> MakeRule(const Snapshot& snapshot, const TaskModel& model,
                                                              int max_batch);

  absl::Status Load(const Snapshot& snapshot) override;
  // Leaves diagnostics.constraint and cvar unchanged: the model predicts only the next step.
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override;
  int noise_dim() const override { return actor_.outputs(); }
  const float* executed() const override { return executed_.data(); }

 private:
  struct Scalars {
    double exploration_noise = 0, projection_threshold = 0;
  };
  static absl::StatusOr<Scalars> ReadScalars(const Snapshot& snapshot);
  SafeLayerRule(Mlp actor, Mlp model, const Scalars& scalars, const TaskSpec& spec, int max_batch);

  Mlp actor_, model_;
  Scalars scalars_;
  SeenPart seen_;
  std::vector<float> low_, high_;                   // [n]
  std::vector<float> slopes_, executed_;            // [max_batch, n]
  std::vector<double> slope_, action_, projected_;  // one row: [n]
};

}  // namespace datacom::safe_layer

#endif  // DATACOM_COMMON_ACTING_SAFE_LAYER_RULE_H_
