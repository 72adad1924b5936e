#include "learner/algorithms/soft_actor_critic.h"

#include <cmath>
#include <string>

namespace datacom::learner {
namespace {

std::vector<int> Widths(int in, const std::vector<int>& hidden, int out) {
  std::vector<int> widths{in};
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  widths.push_back(out);
  return widths;
}

}  // namespace

SoftActorCritic::SoftActorCritic(const AlgorithmConfig& config) : Population(config), batch_(config.batch_size) {}

void SoftActorCritic::DeclareCritics() {
  const std::vector<int> widths = Widths(config_.obs_dim + config_.action_dim, config_.critic_hidden, 1);
  for (int i = 0; i < 2; ++i) {
    critic_[i] = layout_.AddMlp("critic." + std::to_string(i), widths, Activation::kRelu, {std::sqrt(2.0)});
    target_critic_[i] = critic_[i];  // critics open the block, as their targets open the target block
  }
  critics_end_ = layout_.size();
}

void SoftActorCritic::DeclareActor() {
  const std::vector<int> widths = Widths(config_.obs_dim, config_.actor_hidden, config_.action_dim);
  actor_first_ = layout_.size();
  mean_ = layout_.AddMlp("actor.mean", widths, Activation::kRelu, {});
  log_std_ = layout_.AddMlp("actor.log_std", widths, Activation::kRelu, {});
  actor_end_ = layout_.size();
  log_alpha_ = layout_.AddScalar("log_alpha");
}

void SoftActorCritic::MakeWorkspace() {
  actor_optimizer_ = NewOptimizer("actor", actor_first_, actor_end_ - actor_first_, &MemberHyper::actor_lr);
  critic_optimizer_ = NewOptimizer("critic", 0, critics_end_, &MemberHyper::critic_lr);
  alpha_optimizer_ = NewOptimizer("alpha", log_alpha_, 1, &MemberHyper::alpha_lr);
  target_entropy_ = NewScalar(&MemberHyper::target_entropy);
  entropy_ = NewStatistic();
  Register("stats.entropy", entropy_.sum);
  mean_log_pi_ = entropy_.value;

  const int n = config_.action_dim, B = batch_;
  box_ = {kernels_->NewFloats(1, 1, n), kernels_->NewFloats(1, 1, n)};
  std::vector<float> half(n), centre(n);
  for (int i = 0; i < n; ++i) {
    half[i] = static_cast<float>((config_.action_high[i] - config_.action_low[i]) / 2);
    centre[i] = static_cast<float>((config_.action_high[i] + config_.action_low[i]) / 2);
  }
  kernels_->Upload(half.data(), box_.half);
  kernels_->Upload(centre.data(), box_.centre);
  const auto rows = [this, B](int cols) { return kernels_->NewFloats(block_, B, cols); };
  critic_input_ = kernels_->NewFloats(block_, 2 * B, config_.obs_dim + n);
  next_critic_input_ = rows(config_.obs_dim + n);
  reward_ = rows(1), absorbing_ = rows(1), y_ = rows(1);
  noise_now_ = rows(n), noise_next_ = rows(n), d_mean_ = rows(n), d_log_std_ = rows(n), d_action_ = rows(n);
  now_ = {rows(n), rows(n), rows(1)};
  next_ = {rows(n), rows(n), rows(1)};
  mean_tape_ = kernels_->NewTape(mean_, block_, B);
  log_std_tape_ = kernels_->NewTape(log_std_, block_, B);
  for (int i = 0; i < 2; ++i) {
    d_q_[i] = rows(1);
    critic_tape_[i] = kernels_->NewTape(critic_[i], block_, 2 * B);
    new_rows_[i] = critic_tape_[i].Rows(0, B);
    stored_rows_[i] = critic_tape_[i].Rows(B, B);
    target_tape_[i] = kernels_->NewTape(target_critic_[i], block_, B);
  }
}

void SoftActorCritic::LoadTransitions(const Batch& batch) {
  const int B = batch_, obs = config_.obs_dim, n = config_.action_dim;
  const float* observation = BlockOf(batch.observation, B * obs);
  kernels_->Upload(observation, critic_input_.Rows(0, B).Cols(0, obs));
  kernels_->Upload(observation, critic_input_.Rows(B, B).Cols(0, obs));
  kernels_->Upload(BlockOf(batch.action, B * n), critic_input_.Rows(B, B).Cols(obs, n));
  kernels_->Upload(BlockOf(batch.next_observation, B * obs), NextObservation());
  kernels_->Upload(BlockOf(batch.reward, B), reward_);
  kernels_->Upload(BlockOf(batch.absorbing, B), absorbing_);
  kernels_->Upload(BlockOf(batch.noise_actor, B * n), noise_now_);
  kernels_->Upload(BlockOf(batch.noise_next, B * n), noise_next_);
}

void SoftActorCritic::Sample(const FloatView& observation, const FloatView& noise, const ActionSample& out) {
  kernels_->Forward(parameters(), mean_, observation, mean_tape_);
  kernels_->Forward(parameters(), log_std_, observation, log_std_tape_);
  kernels_->SampleAction(mean_tape_.out, log_std_tape_.out, noise, box_, out);
}

void SoftActorCritic::EvaluateActor() {
  for (int i = 0; i < 2; ++i) kernels_->Forward(parameters(), critic_[i], critic_input_, critic_tape_[i]);
  kernels_->ActorLoss(new_rows_[0].out, new_rows_[1].out, now_.log_pi, LogAlpha(), d_q_[0], d_q_[1], policy_loss_.value,
                      mean_log_pi_);
  GuardAndRecord(policy_loss_);
  Record(entropy_, /*sign=*/-1);
  for (int i = 0; i < 2; ++i) {
    kernels_->Adjoint(parameters(), critic_[i], d_q_[i], new_rows_[i]);
    kernels_->InputGradient(parameters(), critic_[i], new_rows_[i], config_.obs_dim, /*add=*/i > 0, d_action_);
  }
}

void SoftActorCritic::ActorStep(const FloatView& d_u) {
  kernels_->SampleActionGradient(log_std_tape_.out, noise_now_, box_, now_, d_u, LogAlpha(), d_mean_, d_log_std_);
  kernels_->Adjoint(parameters(), mean_, d_mean_, mean_tape_);
  kernels_->ParameterGradient(mean_, Observation(), d_mean_, mean_tape_, gradients());
  kernels_->Adjoint(parameters(), log_std_, d_log_std_, log_std_tape_);
  kernels_->ParameterGradient(log_std_, Observation(), d_log_std_, log_std_tape_, gradients());
  Step(actor_optimizer_);
}

void SoftActorCritic::TemperatureStep() {
  const FloatView gradient = gradients().Cols(static_cast<int>(log_alpha_), 1);
  kernels_->TemperatureGradient(mean_log_pi_, Block(target_entropy_), LogAlpha(), gradient);
  Step(alpha_optimizer_);
}

void SoftActorCritic::CriticStep() {
  for (int i = 0; i < 2; ++i) kernels_->Forward(targets(), target_critic_[i], next_critic_input_, target_tape_[i]);
  kernels_->SoftTarget(reward_, absorbing_, target_tape_[0].out, target_tape_[1].out, next_.log_pi, LogAlpha(),
                       config_.discount, y_);
  kernels_->SetZero(critic_loss_.value);
  const FloatView stored = critic_input_.Rows(batch_, batch_);
  for (int i = 0; i < 2; ++i) {
    kernels_->SquaredLoss(stored_rows_[i].out, y_, 0.5, d_q_[i], critic_loss_.value);
    kernels_->Adjoint(parameters(), critic_[i], d_q_[i], stored_rows_[i]);
    kernels_->ParameterGradient(critic_[i], stored, d_q_[i], stored_rows_[i], gradients());
  }
  GuardAndRecord(critic_loss_);
  Step(critic_optimizer_);
}

Stats SoftActorCritic::GetStats() const {
  Stats stats = Population::GetStats();
  stats.entropy = Means(entropy_);
  for (int m = 0; m < members_; ++m) stats.alpha[m] = std::exp(static_cast<double>(ReadArray(m, "log_alpha")[0]));
  return stats;
}

}  // namespace datacom::learner
