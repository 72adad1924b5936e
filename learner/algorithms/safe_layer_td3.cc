// SafeLayerTD3 (docs/algorithms.md 12): TD3 and a linear model of an action's effect on the cost,
//   cost(s') ~ cost(s) + <g(s), a>.
// The acting rule projects actions by this model; replay, critics and model see the policy's action before the
// projection. The model learns from the first update on, critics and actor after the warm-up, and the actor only at
// every policy_delay-th update of the critics.
#include <cmath>
#include <vector>

#include "learner/algorithms/block_update.h"
#include "learner/algorithms/critic_ensemble.h"
#include "learner/algorithms/register_algorithm.h"
#include "learner/algorithms/safe_layer_kernels.h"

namespace datacom::learner {
namespace {

class SafeLayerTd3 : public BlockUpdate {
 public:
  explicit SafeLayerTd3(const AlgorithmConfig& config)
      : BlockUpdate(config), batch_(BatchSize(config)), safe_layer_kernels_(kernels_->Group<SafeLayerKernels>()) {
    const int obs = config_.obs_dim, n = config_.action_dim, B = batch_;
    critics_.Declare({"critic.0", "critic.1"}, CriticKind::kActionTwice, config_, &layout_);
    WeightInit actor, model;
    actor.last_bound = 3e-3;
    model.xavier_gain = std::sqrt(2.0) / 5, model.last_bias = -1;
    const int64_t actor_first = layout_.size();
    actor_ = layout_.AddMlp("actor", Widths(obs, config_.network.actor_hidden(), n), Activation::kRelu, actor);
    const int64_t actor_end = layout_.size();
    MirrorTargets();
    model_ =
        layout_.AddMlp("safety_model", Widths(obs, config_.network.constraint_hidden(), n), Activation::kRelu, model);
    Build();
    critics_.MakeWorkspace(config_, block_, kernels_.get());
    critic_optimizer_ = NewOptimizer("critic", v1::MemberEpoch::kCriticGradientNormFieldNumber, critics_.first(),
                                     critics_.size(), &v1::Hyper::critic_lr);
    actor_optimizer_ = NewOptimizer("actor", v1::MemberEpoch::kActorGradientNormFieldNumber, actor_first,
                                    actor_end - actor_first, &v1::Hyper::actor_lr);
    model_optimizer_ = NewOptimizer("safety_model", v1::MemberEpoch::kConstraintGradientNormFieldNumber, actor_end,
                                    layout_.size() - actor_end, &v1::Hyper::constraint_lr);
    undo_critics_ = NewUndoRange({critic_optimizer_});
    model_loss_ = NewStatistic(v1::MemberEpoch::kConstraintLossFieldNumber);
    mean_prediction_ = NewStatistic(v1::MemberEpoch::kConstraintMeanFieldNumber);
    RegisterShared("updates", &updates_);

    box_ = NewActionBox();
    input_.Make(config_, block_, kernels_.get());
    const auto rows = [this, B](int cols) { return kernels_->NewFloats(block_, B, cols); };
    action_ = rows(n), previous_cost_ = rows(1), cost_ = rows(1), noise_ = rows(n);
    prediction_ = rows(1), d_slope_ = rows(n), y_ = rows(1);
    policy_action_ = rows(n), d_scaled_ = rows(n), d_raw_ = rows(n);
    actor_tape_ = kernels_->NewTape(actor_, block_, B);
    model_tape_ = kernels_->NewTape(model_, block_, B);
    noise_std_ = NewScalar(&v1::Hyper::target_noise);
    noise_clip_ = NewScalar(&v1::Hyper::target_noise_clip);
    critic_settings_ = CriticSettings::Make(config_, kernels_.get());
    minus_one_ = kernels_->NewDoubles(block_, 1, 1, -1);
  }

  static std::vector<RuleColumn> Columns(const AlgorithmConfig& /*config*/) { return {{"prev_cost"}}; }

  void Update(const Batch& batch) override {
    const bool warm = updates_ >= config_.policy_warmup;
    const bool due = warm && (updates_ - config_.policy_warmup) % config_.policy_delay == 0;
    plan_ = due ? kActor : warm ? kCritics : kModel;
    BlockUpdate::Update(batch);
    ++updates_;
  }

 protected:
  void LoadBatch(const Batch& batch) override {
    input_.Load(batch, config_, batch_member(), kernels_.get());
    kernels_->Upload(BlockOf(batch.action, batch_ * config_.action_dim), action_);
    kernels_->Upload(BlockOf(batch.noise_next, batch_ * config_.action_dim), noise_);
    kernels_->Upload(BlockOf(batch.columns[0], batch_), previous_cost_);
    kernels_->Upload(BlockOf(batch.cost, batch_), cost_);
  }

  void Publish(int member, const HostParameters& parameters, ActingParameters* out) const override {
    const v1::Hyper& hyper = config_.members[member].hyper;
    parameters.AddNet("actor", out);
    parameters.AddNet("safety_model", out);
    out->scalars = {{"exploration_noise", hyper.exploration_noise()},
                    {"projection_threshold", hyper.projection_threshold()}};
  }

  void Compute() override {
    ModelGradient();
    if (plan_ != kModel) CriticGradient();
    FreezeUnlessFinite();
    if (plan_ == kActor) {
      SaveForUndo(undo_critics_);
      Step(critic_optimizer_);
      ActorGradient();
      FreezeUnlessFinite();
      UndoWhereInactive(undo_critics_);
      Step(actor_optimizer_);
    } else if (plan_ == kCritics) {
      Step(critic_optimizer_);
    }
    Step(model_optimizer_);
    if (plan_ != kModel) PolyakTargets();
  }

  int Plan() const override { return plan_; }

 private:
  enum { kModel, kCritics, kActor };  // plans: steps the model; also the critics; also the actor
  FloatView Observation() const { return input_.rows.Rows(0, batch_).Cols(0, config_.obs_dim); }
  FloatView ActionColumns(const FloatView& rows) const { return rows.Cols(config_.obs_dim, config_.action_dim); }

  void ModelGradient() {
    kernels_->Forward(parameters(), model_, Observation(), model_tape_);
    safe_layer_kernels_->LinearCostLoss(model_tape_.out, action_, previous_cost_, cost_, prediction_, d_slope_,
                                        model_loss_.value);
    kernels_->Adjoint(parameters(), model_, d_slope_, model_tape_);
    kernels_->ParameterGradient(model_, Observation(), d_slope_, model_tape_, gradients());
    CheckAndRecordLoss(model_loss_);
    kernels_->RowMean(prediction_, mean_prediction_.value);
    Record(mean_prediction_);
    CheckGradient(model_optimizer_);
  }

  void CriticGradient() {
    kernels_->Forward(targets(), actor_, input_.next.Cols(0, config_.obs_dim), actor_tape_);
    safe_layer_kernels_->DeterministicAction(actor_tape_.out, box_, policy_action_);
    safe_layer_kernels_->SmoothAction(noise_, Block(noise_std_), Block(noise_clip_), box_, policy_action_);
    safe_layer_kernels_->ActionInHalfRanges(policy_action_, box_, ActionColumns(input_.next));
    critics_.EvaluateTargets(targets(), input_);
    const CriticSettings settings = Block(critic_settings_);
    critic_kernels_->Target(settings.Step(input_, config_.learner.discount()), critics_.NextTwins(settings), {}, {},
                            y_);

    safe_layer_kernels_->ActionInHalfRanges(action_, box_, ActionColumns(input_.rows.Rows(batch_, batch_)));
    critics_.EvaluateStored(parameters(), input_);
    critics_.Regress(parameters(), input_, y_, gradients(), critic_loss_.value);
    CheckAndRecordLoss(critic_loss_);
    RecordCritics(critics_.stored(), settings.reward_scale);
    CheckGradient(critic_optimizer_);
  }

  // Gradient ascent on the first of the critics that were just stepped.
  void ActorGradient() {
    kernels_->Forward(parameters(), actor_, Observation(), actor_tape_);
    safe_layer_kernels_->DeterministicAction(actor_tape_.out, box_, policy_action_);
    safe_layer_kernels_->ActionInHalfRanges(policy_action_, box_, ActionColumns(input_.rows.Rows(0, batch_)));
    critics_.EvaluateExecuted(parameters(), input_, /*nets=*/1);
    kernels_->SetZero(policy_loss_.value);
    critic_kernels_->WeightedMean(critics_.executed(0), minus_one_, critics_.d_out(0), policy_loss_.value);
    critics_.ActionGradient(parameters(), /*nets=*/1, /*add=*/false, d_scaled_);
    safe_layer_kernels_->DeterministicActionGradient(policy_action_, box_, d_scaled_, d_raw_);
    kernels_->Adjoint(parameters(), actor_, d_raw_, actor_tape_);
    kernels_->ParameterGradient(actor_, Observation(), d_raw_, actor_tape_, gradients());
    CheckAndRecordLoss(policy_loss_);
    CheckGradient(actor_optimizer_);
  }

  const int batch_;
  SafeLayerKernels* const safe_layer_kernels_;
  uint64_t updates_ = 0;  // so far
  int plan_ = kModel;
  CriticEnsemble critics_;
  MlpLayout actor_, model_;
  Optimizer critic_optimizer_, actor_optimizer_, model_optimizer_;
  UndoRange undo_critics_;
  Statistic model_loss_, mean_prediction_;
  ActionBox box_;
  CriticInput input_;                                // actions in half ranges
  FloatView action_, previous_cost_, cost_, noise_;  // [block, B, ...]; action_: stored
  FloatView prediction_, d_slope_, y_, policy_action_, d_scaled_, d_raw_;
  MlpTape actor_tape_, model_tape_;
  DoubleView noise_std_, noise_clip_;  // [M, 1, 1]
  CriticSettings critic_settings_;
  DoubleView minus_one_;  // [block, 1, 1]
};

const RegisterAlgorithm<SafeLayerTd3> kRegistered("safe_layer_td3");

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
