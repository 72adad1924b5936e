// Acting rule normalised_gaussian (PPOLag, RCPO; learner/algorithms/README.md 18): an unbounded Gaussian over
// normalised observations, whose standard deviation does not depend on the state.
//   x = clamp((s - observation.mean) / observation.std, -observation_limit, observation_limit)
//   stored: u = mean(x) + exp(actor.log_std) * noise, float32, and its log-density
//   executed: u * (high - low) / 2 + (high + low) / 2, float32, not clipped, because the environment limits it
// Columns executed_action and log_prob.
#ifndef DATACOM_COMMON_ACTING_NORMALISED_GAUSSIAN_H_
#define DATACOM_COMMON_ACTING_NORMALISED_GAUSSIAN_H_

#include <memory>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/acting/action_scale.h"
#include "common/acting/seen_part.h"
#include "common/nn/mlp.h"

namespace datacom::normalised_gaussian {

// Not thread-safe; owns net and workspace; Load and Act neither allocate nor block.
class NormalisedGaussian : public ActingRule {
 public:
  static absl::StatusOr<std::unique_ptr<ActingRule>> MakeRule(const Snapshot& snapshot, const TaskModel& model,
                                                              int max_batch);

  absl::Status Load(const Snapshot& snapshot) override;
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) override;
  int noise_dim() const override { return mean_.outputs(); }
  const float* executed() const override { return executed_.data(); }

 private:
  NormalisedGaussian(Mlp mean, const TaskSpec& spec, int max_batch);
  absl::Status Check(const Snapshot& snapshot) const;

  Mlp mean_;
  SeenPart seen_;
  ActionScale scale_;
  float limit_ = 0;
  std::vector<float> observation_mean_, observation_std_;  // [obs]
  std::vector<float> log_std_, std_;                       // [action]
  std::vector<float> inputs_;                              // [max_batch, obs]
  std::vector<float> executed_;                            // [max_batch, action]
};

}  // namespace datacom::normalised_gaussian

#endif  // DATACOM_COMMON_ACTING_NORMALISED_GAUSSIAN_H_
