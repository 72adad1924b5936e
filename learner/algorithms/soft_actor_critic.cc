#include "learner/algorithms/soft_actor_critic.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace datacom::learner {
namespace {

constexpr int kPretrainPlan = -1;  // Update has plans >= 0
constexpr double kReach = 10;      // of normalised observations

std::vector<float>& ValuesOf(const std::string& name, std::vector<NamedArray>* arrays) {
  return std::find_if(arrays->begin(), arrays->end(), [&](const NamedArray& array) { return array.name == name; })
      ->values;
}

// Makes a layer of normalised inputs (x - mean) / std one of raw inputs x: W[i] / std[i], b - sum of mean[i] W[i] /
// std[i].
void FoldNormalisation(const std::vector<float>& mean, const std::vector<float>& std, const std::string& layer,
                       std::vector<NamedArray>* arrays) {
  std::vector<float>&weight = ValuesOf(layer + ".weight", arrays), &bias = ValuesOf(layer + ".bias", arrays);
  const size_t width = bias.size();
  for (size_t j = 0; j < width; ++j) {
    double shift = 0;
    for (size_t i = 0; i < mean.size(); ++i) {
      const double scaled = weight[i * width + j] / static_cast<double>(std[i]);
      shift += mean[i] * scaled;
      weight[i * width + j] = static_cast<float>(scaled);
    }
    bias[j] = static_cast<float>(bias[j] - shift);
  }
}

}  // namespace

SoftActorCritic::SoftActorCritic(const AlgorithmConfig& config)
    : BlockUpdate(config), batch_(BatchSize(config)), sac_kernels_(kernels_->Group<SacKernels>()) {}

void SoftActorCritic::Compute() {
  NormaliseObservations();
  EvaluateState();
  PolicyGradients();
  FreezeUnlessFinite();
  SaveForUndo(undo_);
  Step(first_optimizers_);
  ValueGradients();
  FreezeUnlessFinite();
  UndoWhereInactive(undo_);
  Step(policy_optimizers_);
  StepValues();
}

void SoftActorCritic::StepValues() {
  Step(value_optimizers_);
  PolyakTargets();
  if (config_.learner.normalise_observations()) {
    normaliser_.Add(parameters(), raw_, Block(active_), Block(normaliser_.statistics()));
  }
}

void SoftActorCritic::NormaliseObservations() {
  if (!config_.learner.normalise_observations()) return;
  const FloatView stored = input_.rows.Rows(batch_, batch_).Cols(0, config_.obs_dim);
  for (const FloatView& out : {Observation(), stored}) normaliser_.Normalise(parameters(), raw_, kNoLimit, out);
  normaliser_.Normalise(parameters(), NextObservation(), kNoLimit, NextObservation());  // a published net has none
}

void SoftActorCritic::Pretrain(const Batch& batch) {
  RunBlocks(batch, kPretrainPlan, [this] {
    NormaliseObservations();
    EvaluateState();
    EvaluateStored();
    ValueGradients();
    FreezeUnlessFinite();
    StepValues();
  });
}

void SoftActorCritic::DeclareActor() {
  const std::vector<int> widths = Widths(config_.obs_dim, config_.network.actor_hidden(), config_.action_dim);
  actor_first_ = acting_first_ = layout_.size();
  WeightInit spread;
  spread.last_bias = config_.network.initial_log_std();
  mean_ = layout_.AddMlp("actor.mean", widths, Activation::kRelu, {});
  log_std_ = layout_.AddMlp("actor.log_std", widths, Activation::kRelu, spread);
  actor_end_ = layout_.size();
  log_alpha_ = layout_.AddVector("log_alpha", 1, std::log(config_.learner.initial_alpha()));
  if (config_.learner.normalise_observations()) normaliser_.Declare(config_.obs_dim, &layout_);
}

void SoftActorCritic::MakeWorkspace() {
  actor_optimizer_ = NewOptimizer("actor", v1::MemberEpoch::kActorGradientNormFieldNumber, actor_first_,
                                  actor_end_ - actor_first_, &v1::Hyper::actor_lr);
  alpha_optimizer_ = NewOptimizer("alpha", /*gradient_norm_field=*/0, log_alpha_, 1, &v1::Hyper::alpha_lr);
  critic_optimizer_ = NewOptimizer("critic", v1::MemberEpoch::kCriticGradientNormFieldNumber, critics_.first(),
                                   critics_.size(), &v1::Hyper::critic_lr);
  ShowParameters(v1::MemberEpoch::kAlphaFieldNumber, log_alpha_, 1,
                 [](const double* log_alpha, int) { return std::exp(*log_alpha); });
  StepWithValues(critic_optimizer_);
  first_optimizers_ = {actor_optimizer_, alpha_optimizer_};
  undo_ = NewUndoRange(first_optimizers_);
  target_entropy_ = NewScalar(&v1::Hyper::target_entropy);
  critic_settings_ = CriticSettings::Make(config_, kernels_.get());
  entropy_ = NewStatistic(v1::MemberEpoch::kEntropyFieldNumber, /*sign=*/-1);
  mean_log_pi_ = entropy_.value;

  const int n = config_.action_dim, B = batch_;
  box_ = NewActionBox();
  const auto rows = [this, B](int cols) { return kernels_->NewFloats(block_, B, cols); };
  input_.Make(config_, block_, kernels_.get());
  if (config_.learner.normalise_observations()) {
    normaliser_.Make(members_, kReach, kernels_.get());
    RegisterStatistics(normaliser_.statistics());
    raw_ = rows(config_.obs_dim);
  }
  if (imitates()) command_ = rows(n), imitation_ = kernels_->NewDoubles(block_, 1, 1);
  y_ = rows(1);
  noise_now_ = rows(n), noise_next_ = rows(n), d_mean_ = rows(n), d_log_std_ = rows(n), d_action_ = rows(n);
  now_ = {NowAction(), rows(n), rows(1)};
  next_ = {NextAction(), rows(n), rows(1)};
  mean_tape_ = kernels_->NewTape(mean_, block_, B);
  log_std_tape_ = kernels_->NewTape(log_std_, block_, B);
  critics_.MakeWorkspace(config_, block_, kernels_.get());
}

void SoftActorCritic::LoadTransitions(const Batch& batch) {
  const int B = batch_, n = config_.action_dim;
  input_.Load(batch, config_, batch_member(), kernels_.get());
  if (config_.learner.normalise_observations()) kernels_->Upload(BlockOf(batch.observation, B * config_.obs_dim), raw_);
  kernels_->Upload(BlockOf(batch.action, B * n), input_.rows.Rows(B, B).Cols(config_.obs_dim, n));
  if (imitates()) {
    kernels_->Upload(BlockOf(batch.command, B * n), command_);
    kernels_->Upload(BlockOf(batch.imitation, 1), imitation_);
  }
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
  sac_kernels_->ActorLoss(critics_.ExecutedTwins(Block(critic_settings_)), now_.log_pi, LogAlpha(), critics_.d_out(0),
                          critics_.d_out(1), policy_loss_.value, mean_log_pi_);
  critics_.ActionGradient(parameters(), critics_.nets(), /*add=*/false, d_action_);
}

void SoftActorCritic::ActorGradient(const FloatView& d_u) {
  if (imitates()) sac_kernels_->Imitate(now_.u, command_, imitation_, box_, d_u, policy_loss_.value);
  CheckAndRecordLoss(policy_loss_);
  Record(entropy_);
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
  const CriticSettings settings = Block(critic_settings_);
  critic_kernels_->Target(settings.Step(input_, config_.learner.discount()), critics_.NextTwins(settings), next_.log_pi,
                          LogAlpha(), y_);
  critics_.Regress(parameters(), input_, y_, gradients(), critic_loss_.value);
  CheckAndRecordLoss(critic_loss_);
  RecordCritics(critics_.stored(), settings.reward_scale);
  CheckGradient(critic_optimizer_);
}

void SoftActorCritic::Publish(int /*member*/, const HostParameters& parameters, ActingParameters* out) const {
  parameters.AddNet("actor", out);
  if (!config_.learner.normalise_observations()) return;
  const std::vector<float> mean = parameters.Read("observation.mean"), std = parameters.Read("observation.std");
  for (const char* net : {"actor.mean.0", "actor.log_std.0"}) FoldNormalisation(mean, std, net, &out->arrays);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
