// The parts that all soft actor-critic algorithms share (docs/algorithms.md 1.5): squashed-Gaussian actor,
// twin critics with targets, temperature. The algorithm decides which action the critics see: SAC's is the sample u
// itself, D-ATACOM's is the mapped u.
//
// One update, in the released code's order: first the policy's part, SampleNow -> (map) -> ActorGradient ->
// TemperatureGradient and their steps; then the values' part, SampleNext -> (map) -> CriticGradient and all other
// steps. Pre-training runs the values' part only.
#ifndef DATACOM_LEARNER_ALGORITHMS_SOFT_ACTOR_CRITIC_H_
#define DATACOM_LEARNER_ALGORITHMS_SOFT_ACTOR_CRITIC_H_

#include <vector>

#include "learner/algorithms/block_update.h"
#include "learner/algorithms/critic_ensemble.h"
#include "learner/algorithms/observation_normaliser.h"
#include "learner/algorithms/sac_kernels.h"

namespace datacom::learner {

class SoftActorCritic : public BlockUpdate {
 public:
  void Pretrain(const Batch& batch) final;

 protected:
  explicit SoftActorCritic(const AlgorithmConfig& config);
  void Publish(int member, const HostParameters& parameters, ActingParameters* out) const override;  // the actor

  // Building: critics first, so that their targets and the targets of the nets that the algorithm adds next are one
  // range. Call MakeWorkspace after Build.
  void DeclareCritics() {
    critics_.Declare({"critic.0", "critic.1"}, CriticKind::kPlain, config_, &layout_,
                     config_.network.critic_layer_norm());
  }
  void DeclareActor();
  void MakeWorkspace();
  void LoadTransitions(const Batch& batch);

  // Evaluates what both parts read of the nets before the update, and forms the gradients that need nothing else.
  virtual void EvaluateState() {}
  // The policy's part evaluates the critics at the stored actions, too; pre-training calls EvaluateStored instead.
  virtual void PolicyGradients() = 0;
  virtual void EvaluateStored() { critics_.EvaluateStored(parameters(), input_); }
  virtual void ValueGradients() = 0;  // actor and temperature are stepped already
  void Compute() final;
  // Adds an optimiser that is stepped at the end of every update, or of every update that is not pre-training.
  void StepWithValues(const Optimizer& optimizer) { value_optimizers_.push_back(optimizer); }
  void StepWithPolicy(const Optimizer& optimizer) { policy_optimizers_.push_back(optimizer); }

  // Fill now_ or next_ with a sample of the current actor. The algorithm may correct log_pi in place. u is NowAction or
  // NextAction, unless the algorithm gives it memory of its own, because it executes something else.
  void SampleNow() { Sample(Observation(), noise_now_, now_); }
  void SampleNext() { Sample(NextObservation(), noise_next_, next_); }
  // Columns of the critics' input; executed actions are written here before ActorGradient and CriticGradient.
  FloatView NowAction() const { return input_.rows.Rows(0, batch_).Cols(config_.obs_dim, config_.action_dim); }
  FloatView NextAction() const { return input_.next.Cols(config_.obs_dim, config_.action_dim); }
  const CriticInput& critic_input() const { return input_; }

  // Evaluates both critics on [s, executed] and [s, stored action] in one pass, and forms the actor's loss and the
  // gradient for the executed action. An algorithm whose actor minimises more adds to both.
  void EvaluateActor();
  const FloatView& action_gradient() const { return d_action_; }  // [block, B, action]
  void ActorGradient(const FloatView& d_u);  // given the gradient for u, to which it adds that of imitation
  void TemperatureGradient();
  void CriticGradient();

  const int batch_;
  ActionSample now_, next_;
  DoubleView target_entropy_;
  CriticSettings critic_settings_;

 private:
  FloatView Observation() const { return input_.rows.Rows(0, batch_).Cols(0, config_.obs_dim); }
  FloatView NextObservation() const { return input_.next.Cols(0, config_.obs_dim); }
  // Both halves of the critics' input, and the next observations, from the raw ones (docs/algorithms.md 1.6).
  void NormaliseObservations();
  bool imitates() const { return config_.imitation.controller != nullptr; }
  FloatView LogAlpha() const { return parameters().Cols(static_cast<int>(log_alpha_), 1); }
  void Sample(const FloatView& observation, const FloatView& noise, const ActionSample& out);
  void StepValues();

  SacKernels* const sac_kernels_;
  CriticEnsemble critics_;
  MlpLayout mean_, log_std_;
  int64_t log_alpha_ = 0, actor_first_ = 0, actor_end_ = 0;
  Optimizer actor_optimizer_, critic_optimizer_, alpha_optimizer_;
  std::vector<Optimizer> first_optimizers_;  // actor and temperature, which the values' part reads
  std::vector<Optimizer> value_optimizers_, policy_optimizers_;
  ObservationNormaliser normaliser_;
  FloatView raw_;   // [block, B, observation]; empty unless observations are normalised
  UndoRange undo_;  // of first_optimizers_
  Statistic entropy_;
  ActionBox box_;
  CriticInput input_;
  FloatView command_;  // [block, B, action]; empty unless a controller is imitated
  DoubleView imitation_;
  FloatView noise_now_, noise_next_, y_, d_mean_, d_log_std_, d_action_;
  MlpTape mean_tape_, log_std_tape_;
  DoubleView mean_log_pi_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SOFT_ACTOR_CRITIC_H_
// SPDX-License-Identifier: Apache-2.0
