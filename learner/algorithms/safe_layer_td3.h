// SafeLayerTD3 (learner/algorithms/README.md 12): TD3 and a linear model of an action's effect on the cost,
//   cost(s') ~ cost(s) + <g(s), a>.
// The acting rule projects actions by this model; replay, critics and model see the policy's action before the
// projection. The model learns from the first update on, critics and actor after the warm-up, and the actor only at
// every policy_delay-th update of the critics.
#ifndef DATACOM_LEARNER_ALGORITHMS_SAFE_LAYER_TD3_H_
#define DATACOM_LEARNER_ALGORITHMS_SAFE_LAYER_TD3_H_

#include <string>

#include "learner/algorithms/critic_ensemble.h"
#include "learner/algorithms/population.h"
#include "learner/algorithms/safe_layer_kernels.h"

namespace datacom::learner {

class SafeLayerTd3 : public Population {
 public:
  explicit SafeLayerTd3(const AlgorithmConfig& config);
  void Update(const Batch& batch) override;
  Stats GetStats() const override;
  ActingParameters GetActingParameters(int member) const override;

 protected:
  void LoadBatch(const Batch& batch) override;
  void Compute() override;
  int Plan() const override { return plan_; }

 private:
  enum { kModel, kCritics, kActor };  // plans: steps the model; also the critics; also the actor
  FloatView Observation() const { return input_.rows.Rows(0, batch_).Cols(0, config_.obs_dim); }
  FloatView ActionColumns(const FloatView& rows) const { return rows.Cols(config_.obs_dim, config_.action_dim); }
  void ModelGradient();
  void CriticGradient();
  void ActorGradient();

  const int batch_;
  SafeLayerKernels* const safe_layer_kernels_;
  uint64_t updates_ = 0;  // so far
  int plan_ = kModel;
  CriticEnsemble critics_;
  MlpLayout actor_, model_;  // actor_ has the same offsets in the block of targets
  Optimizer critic_optimizer_, actor_optimizer_, model_optimizer_;
  UndoRange undo_critics_;
  Statistic model_loss_, mean_prediction_;
  ActionBox box_;
  CriticInput input_;                                // actions in half ranges
  FloatView action_, previous_cost_, cost_, noise_;  // [block, B, ...]; action_: stored
  FloatView prediction_, d_slope_, y_, policy_action_, d_scaled_, d_raw_;
  MlpTape actor_tape_, model_tape_;
  DoubleView noise_std_, noise_clip_, return_floor_;  // [M, 1, 1]
  DoubleView minus_one_;                              // [block, 1, 1]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SAFE_LAYER_TD3_H_
