#include "learner/algorithms/soft_actor_critic.h"

#include <cmath>
#include <string>

namespace datacom::learner {
namespace {

constexpr int kPretrainPlan = -1;  // Update has plans >= 0

}  // namespace

SoftActorCritic::SoftActorCritic(const AlgorithmConfig& config)
    : BlockUpdate(config), batch_(config.batch_size), sac_kernels_(kernels_->Group<SacKernels>()) {
  pretrain_ = [this] {
    EvaluateState();
    EvaluateStored();
    ValueGradients();
    StepValues();
  };
}

void SoftActorCritic::Compute() {
  EvaluateState();
  PolicyGradients();
  SaveForUndo(undo_);
  Step(actor_optimizer_);
  Step(alpha_optimizer_);
  ValueGradients();
  UndoWhereInactive(undo_);
  for (const Optimizer& optimizer : policy_optimizers_) Step(optimizer);
  StepValues();
}

void SoftActorCritic::StepValues() {
  kernels_->Each(static_cast<int>(value_optimizers_.size()), [&](int i) { Step(value_optimizers_[i]); });
  PolyakTargets();
}

void SoftActorCritic::Pretrain(const Batch& batch) { RunBlocks(batch, kPretrainPlan, pretrain_); }

void SoftActorCritic::DeclareActor() {
  const std::vector<int> widths = Widths(config_.obs_dim, config_.actor_hidden, config_.action_dim);
  actor_first_ = layout_.size();
  mean_ = layout_.AddMlp("actor.mean", widths, Activation::kRelu, {});
  log_std_ = layout_.AddMlp("actor.log_std", widths, Activation::kRelu, {});
  actor_end_ = layout_.size();
  log_alpha_ = layout_.AddScalar("log_alpha");
}

void SoftActorCritic::MakeWorkspace() {
  actor_optimizer_ = NewOptimizer("actor", v1::MemberEpoch::kActorGradientNormFieldNumber, actor_first_,
                                  actor_end_ - actor_first_, &v1::Hyper::actor_lr);
  critic_optimizer_ = NewOptimizer("critic", v1::MemberEpoch::kCriticGradientNormFieldNumber, critics_.first(),
                                   critics_.size(), &v1::Hyper::critic_lr);
  alpha_optimizer_ = NewOptimizer("alpha", /*gradient_norm_field=*/0, log_alpha_, 1, &v1::Hyper::alpha_lr);
  StepWithValues(critic_optimizer_);
  undo_ = NewUndoRange({actor_optimizer_, alpha_optimizer_});
  target_entropy_ = NewScalar(&v1::Hyper::target_entropy);
  return_floor_ = NewScalar(&v1::Hyper::return_floor);
  entropy_ = NewStatistic(v1::MemberEpoch::kEntropyFieldNumber);
  mean_log_pi_ = entropy_.value;

  const int n = config_.action_dim, B = batch_;
  box_ = NewActionBox();
  const auto rows = [this, B](int cols) { return kernels_->NewFloats(block_, B, cols); };
  input_.Make(config_, block_, kernels_.get());
  y_ = rows(1);
  noise_now_ = rows(n), noise_next_ = rows(n), d_mean_ = rows(n), d_log_std_ = rows(n), d_action_ = rows(n);
  now_ = {rows(n), rows(n), rows(1)};
  next_ = {rows(n), rows(n), rows(1)};
  mean_tape_ = kernels_->NewTape(mean_, block_, B);
  log_std_tape_ = kernels_->NewTape(log_std_, block_, B);
  critics_.MakeWorkspace(config_, /*target_first=*/0, block_, kernels_.get());
}

void SoftActorCritic::LoadTransitions(const Batch& batch) {
  const int B = batch_, n = config_.action_dim;
  input_.Load(batch, config_, batch_member(), kernels_.get());
  kernels_->Upload(BlockOf(batch.action, B * n), input_.rows.Rows(B, B).Cols(config_.obs_dim, n));
  kernels_->Upload(BlockOf(batch.noise_actor, B * n), noise_now_);
  kernels_->Upload(BlockOf(batch.noise_next, B * n), noise_next_);
}

void SoftActorCritic::Sample(const FloatView& observation, const FloatView& noise, const ActionSample& out) {
  kernels_->Together([&] { kernels_->Forward(parameters(), mean_, observation, mean_tape_); },
                     [&] { kernels_->Forward(parameters(), log_std_, observation, log_std_tape_); });
  sac_kernels_->SampleAction(mean_tape_.out, log_std_tape_.out, noise, box_, out);
}

void SoftActorCritic::EvaluateActor() {
  critics_.Evaluate(parameters(), input_);
  sac_kernels_->ActorLoss(critics_.executed(0), critics_.executed(1), now_.log_pi, LogAlpha(), critics_.d_out(0),
                          critics_.d_out(1), policy_loss_.value, mean_log_pi_);
  critics_.ActionGradient(parameters(), critics_.nets(), /*add=*/false, d_action_);
}

void SoftActorCritic::ActorGradient(const FloatView& d_u) {
  CheckAndRecordLoss(policy_loss_);
  Record(entropy_, /*sign=*/-1);
  sac_kernels_->SampleActionGradient(log_std_tape_.out, noise_now_, box_, now_, d_u, LogAlpha(), d_mean_, d_log_std_);
  const auto gradient = [&](const MlpLayout& net, const FloatView& d_out, const MlpTape& tape) {
    kernels_->Adjoint(parameters(), net, d_out, tape);
    kernels_->ParameterGradient(net, Observation(), d_out, tape, gradients());
  };
  kernels_->Together([&] { gradient(mean_, d_mean_, mean_tape_); },
                     [&] { gradient(log_std_, d_log_std_, log_std_tape_); });
  CheckGradient(actor_optimizer_);
}

void SoftActorCritic::TemperatureGradient() {
  const FloatView gradient = gradients().Cols(static_cast<int>(log_alpha_), 1);
  sac_kernels_->TemperatureGradient(mean_log_pi_, Block(target_entropy_), LogAlpha(), gradient);
  CheckGradient(alpha_optimizer_);
}

void SoftActorCritic::CriticGradient() {
  critics_.EvaluateTargets(targets(), input_);
  sac_kernels_->SoftTarget(input_.reward, input_.absorbing, critics_.next(0), critics_.next(1), next_.log_pi,
                           LogAlpha(), config_.discount, y_);
  critic_kernels_->Floor(Block(return_floor_), y_);
  critics_.Regress(parameters(), input_, y_, gradients(), critic_loss_.value);
  CheckAndRecordLoss(critic_loss_);
  RecordCritics(critics_.stored(0), critics_.stored(1));
  CheckGradient(critic_optimizer_);
}

Stats SoftActorCritic::GetStats() const {
  Stats stats = Population::GetStats();
  for (int m = 0; m < members_; ++m) stats[m].set_alpha(std::exp(static_cast<double>(ReadArray(m, "log_alpha")[0])));
  return stats;
}

ActingParameters SoftActorCritic::GetActingParameters(int member) const {
  ActingParameters parameters;
  AddActingNet("actor", member, &parameters);
  return parameters;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
