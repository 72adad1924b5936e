// SafeLOOP's learner (docs/algorithms.md 19): an ensemble of dynamics and a soft actor-critic, by which the
// acting rule plans.
//
// One Update takes a few new rows of every member into a memory of the algorithm's own. In some updates the ensemble is
// trained on all of that memory, until it stops improving on rows that are held out, or the actor and the critics make
// a number of steps on batches drawn from it, or both. In the others nothing is computed.
//
// A member with a loss or gradient that is not finite is frozen, and its whole update is undone, except that the rows
// stay in the memory.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "learner/algorithms/critic_ensemble.h"
#include "learner/algorithms/dynamics_learner.h"
#include "learner/algorithms/register_algorithm.h"
#include "learner/algorithms/sac_kernels.h"
#include "learner/nn/named_stream.h"

namespace datacom::learner {
namespace {

constexpr double kStartTemperature = 0.2, kTemperatureDecay = 0.99;

const AlgorithmConfig& Checked(const AlgorithmConfig& config) {
  const v1::Planning& planning = config.planning;
  const int rows = config.epoch_rows;
  const auto period = [rows](uint32_t value) { return rows >= 1 && value > 0 && value % rows == 0; };
  if (!period(planning.policy_period()) || !period(planning.model_period())) {
    throw std::invalid_argument("safe_loop takes " + std::to_string(rows) + " rows an update; planning.policy_period " +
                                std::to_string(planning.policy_period()) + " and planning.model_period " +
                                std::to_string(planning.model_period()) + " must be multiples of it");
  }
  if (planning.ensemble() < 1 || planning.hidden().empty()) {
    throw std::invalid_argument("safe_loop: planning.ensemble must be positive, and planning.hidden not empty");
  }
  if (config.memory_rows < rows) {
    throw std::invalid_argument("replay.capacity: " + std::to_string(config.memory_rows) + " is below the " +
                                std::to_string(rows) + " rows that safe_loop takes an update");
  }
  return config;
}

class SafeLoop : public DynamicsLearner {
 public:
  explicit SafeLoop(const AlgorithmConfig& config)
      : DynamicsLearner(Checked(config)), sac_kernels_(kernels_->Group<SacKernels>()) {
    DeclareNets();
    Build();
    RegisterShared("policy_steps", &policy_steps_);
    actor_optimizer_ = NewOptimizer("actor", v1::MemberEpoch::kActorGradientNormFieldNumber, actor_first_,
                                    actor_end_ - actor_first_, &v1::Hyper::actor_lr);
    critic_optimizer_ = NewOptimizer("critic", v1::MemberEpoch::kCriticGradientNormFieldNumber, critics_.first(),
                                     critics_.size(), &v1::Hyper::critic_lr);
    MakeModelWorkspace();
    undo_ = NewUndoRange({actor_optimizer_, critic_optimizer_, model_optimizer_});
    kept_targets_ = kernels_->NewFloats(block_, 1, static_cast<int>(critics_.size()));
    entropy_ = NewStatistic(v1::MemberEpoch::kEntropyFieldNumber, /*sign=*/-1);
    MakePolicyWorkspace();
  }

  void Update(const Batch& batch) override {
    memory_.Append(batch);
    rows_ = (updates_ + 1) * config_.epoch_rows;
    EachBlock([&] { UpdateBlock(); });
    if (PolicyDue()) policy_steps_ += config_.planning.policy_updates();
    ++updates_;
  }

  Stats GetStats() const override {
    Stats stats = Population::GetStats();
    const double alpha = kStartTemperature * std::pow(kTemperatureDecay, static_cast<double>(policy_steps_));
    for (v1::MemberEpoch& member : stats) member.set_alpha(alpha);
    return stats;
  }

 protected:
  void Publish(int member, const HostParameters& parameters, ActingParameters* out) const override {
    const v1::Planning& planning = config_.planning;
    for (const char* net : {"actor", "critic.0", "dynamics"}) parameters.AddNet(net, out);
    const bool random = updates_ * config_.epoch_rows < planning.random_rows();
    out->scalars = {{"random_actions", random ? 1 : 0},
                    {"cost_limit", config_.members[member].hyper.cost_budget()},
                    {"plan_samples", planning.samples()},
                    {"plan_particles", planning.particles()},
                    {"plan_iterations", planning.iterations()}};
  }

 private:
  enum { kKeep = kOwn, kPolicy, kFinish };  // plans

  void DeclareNets() {
    const int obs = config_.obs_dim, n = config_.action_dim;
    critics_.Declare({"critic.0", "critic.1"}, CriticKind::kDefault, config_, &layout_);
    MirrorTargets();
    actor_first_ = layout_.size();
    actor_ = layout_.AddMlp("actor", Widths(obs, config_.network.actor_hidden(), 2 * n), Activation::kRelu, {});
    actor_end_ = layout_.size();
    DeclareEnsemble();
  }

  void UpdateBlock() {
    const bool model = Due(config_.planning.model_period()), policy = PolicyDue();
    if (!model && !policy) return;
    for (int m = 0; m < block_; ++m) memory_.Continuing(first_member() + m, &continuing_[m]);
    kernels_->Run(kKeep, [this] {
      SaveForUndo(undo_);
      kernels_->Copy(targets(), kept_targets_);
    });
    if (model) TrainModel();
    if (policy) PolicySteps();
    kernels_->Run(kFinish, [this] {
      kernels_->Restore(kept_targets_, Block(active_), targets());
      UndoWhereInactive(undo_);
    });
  }

  void MakePolicyWorkspace() {
    const int n = config_.action_dim, obs = config_.obs_dim, B = batch_;
    const auto rows = [this, B](int cols) { return kernels_->NewFloats(block_, B, cols); };
    mean_log_pi_ = entropy_.value;
    critic_settings_ = CriticSettings::Make(config_, kernels_.get());
    box_ = NewActionBox();
    input_.Make(config_, block_, kernels_.get());
    critics_.MakeWorkspace(config_, block_, kernels_.get());
    actor_tape_ = kernels_->NewTape(actor_, block_, B);
    noise_ = rows(n), no_noise_ = rows(n), y_ = rows(1), d_action_ = rows(n), d_policy_ = rows(2 * n);
    log_alpha_ = kernels_->NewFloats(block_, 1, 1);
    now_ = {input_.rows.Rows(0, B).Cols(obs, n), rows(n), rows(1)};
    next_ = {input_.next.Cols(obs, n), rows(n), rows(1)};
    const size_t count = static_cast<size_t>(block_) * B;
    drawn_.observation.resize(count * obs), drawn_.next_observation.resize(count * obs);
    drawn_.action.resize(count * n), drawn_.noise_next.resize(count * n);
    drawn_.reward.resize(count), drawn_.absorbing.resize(count), host_log_alpha_.resize(block_);
  }

  bool Due(uint32_t period) const { return rows_ % period == 0; }
  bool PolicyDue() const { return rows_ >= config_.planning.random_rows() && Due(config_.planning.policy_period()); }

  // The policy's part.
  void PolicySteps() {
    for (const std::vector<int>& rows : continuing_) {
      if (rows.empty()) return;
    }
    const int steps = static_cast<int>(config_.planning.policy_updates());
    for (int step = 0; step < steps; ++step) {
      kernels_->Run(
          kPolicy, [this, step] { DrawPolicyBatch(step); }, [this] { PolicyStep(); });
    }
  }

  void DrawPolicyBatch(int step) {
    const int obs = config_.obs_dim, n = config_.action_dim, B = batch_;
    const double decayed =
        std::log(kStartTemperature) + static_cast<double>(policy_steps_ + step) * std::log(kTemperatureDecay);
    std::fill(host_log_alpha_.begin(), host_log_alpha_.end(), static_cast<float>(std::max(decayed, -80.0)));
    for (int m = 0; m < block_; ++m) {
      const std::vector<int>& rows = continuing_[m];
      const int member = first_member() + m;
      NamedStream stream(
          NamedKey("learner.safe_loop.rows", {config_.run_seed, SeedOf(m), updates_, static_cast<uint64_t>(step)}));
      for (int r = 0; r < B; ++r) {
        const int row = rows[static_cast<size_t>(stream.Uniform() * static_cast<double>(rows.size()))];
        const size_t at = static_cast<size_t>(m) * B + r;
        std::copy_n(memory_.observation(member, row), obs, &drawn_.observation[at * obs]);
        std::copy_n(memory_.action(member, row), n, &drawn_.action[at * n]);
        std::copy_n(memory_.next_observation(member, row), obs, &drawn_.next_observation[at * obs]);
        drawn_.reward[at] = memory_.reward(member, row);
      }
      FillNormal(
          NamedKey("learner.safe_loop.noise", {config_.run_seed, SeedOf(m), updates_, static_cast<uint64_t>(step)}),
          &drawn_.noise_next[static_cast<size_t>(m) * B * n], static_cast<int64_t>(B) * n);
    }
    input_.Load(drawn_, config_, /*batch_member=*/0, kernels_.get());
    kernels_->Upload(drawn_.action.data(), input_.rows.Rows(B, B).Cols(obs, n));
    kernels_->Upload(drawn_.noise_next.data(), noise_);
    kernels_->Upload(host_log_alpha_.data(), log_alpha_);
  }

  void PolicyStep() {
    CriticPart();
    ActorPart();
    PolyakTargets();
  }

  void Sample(const FloatView& observation, const FloatView& noise, const ActionSample& out) {
    const int n = config_.action_dim;
    kernels_->Forward(parameters(), actor_, observation, actor_tape_);
    sac_kernels_->SampleAction(actor_tape_.out.Cols(0, n), actor_tape_.out.Cols(n, n), noise, box_, out);
  }

  // Rows that end an episode are in no batch, so nothing is absorbing.
  void CriticPart() {
    Sample(input_.next.Cols(0, config_.obs_dim), noise_, next_);
    critics_.EvaluateTargets(targets(), input_);
    const CriticSettings settings = Block(critic_settings_);
    critic_kernels_->Target(settings.Step(input_, config_.learner.discount()), critics_.NextTwins(settings),
                            next_.log_pi, log_alpha_, y_);
    critics_.EvaluateStored(parameters(), input_);
    critics_.Regress(parameters(), input_, y_, gradients(), critic_loss_.value);
    CheckAndRecordLoss(critic_loss_);
    RecordCritics(critics_.stored(), settings.reward_scale);
    CheckGradient(critic_optimizer_);
    Step(critic_optimizer_);
  }

  // The loss is taken at the policy's mean, as in the released code: the density's noise is 0.
  void ActorPart() {
    const int n = config_.action_dim;
    Sample(Observation(), no_noise_, now_);
    critics_.EvaluateExecuted(parameters(), input_, critics_.nets());
    sac_kernels_->ActorLoss(critics_.ExecutedTwins(Block(critic_settings_)), now_.log_pi, log_alpha_, critics_.d_out(0),
                            critics_.d_out(1), policy_loss_.value, mean_log_pi_);
    critics_.ActionGradient(parameters(), critics_.nets(), /*add=*/false, d_action_);
    CheckAndRecordLoss(policy_loss_);
    Record(entropy_);
    sac_kernels_->SampleActionGradient(actor_tape_.out.Cols(n, n), no_noise_, box_, now_, d_action_, log_alpha_,
                                       d_policy_.Cols(0, n), d_policy_.Cols(n, n));
    kernels_->Adjoint(parameters(), actor_, d_policy_, actor_tape_);
    kernels_->ParameterGradient(actor_, Observation(), d_policy_, actor_tape_, gradients());
    CheckGradient(actor_optimizer_);
    Step(actor_optimizer_);
  }

  FloatView Observation() const { return input_.rows.Rows(0, batch_).Cols(0, config_.obs_dim); }

  SacKernels* const sac_kernels_;
  uint64_t policy_steps_ = 0;  // steps due so far, for the temperature; a member without rows to draw from makes none
  uint64_t rows_ = 0;          // per member, as of this update

  CriticEnsemble critics_;
  CriticInput input_;
  MlpLayout actor_;
  int64_t actor_first_ = 0, actor_end_ = 0;
  Optimizer actor_optimizer_, critic_optimizer_;
  Statistic entropy_;
  DoubleView mean_log_pi_;
  CriticSettings critic_settings_;
  ActionBox box_;
  MlpTape actor_tape_;
  ActionSample now_, next_;
  FloatView noise_, no_noise_, y_, d_action_, d_policy_, log_alpha_;
  Batch drawn_;  // of the block: what a step reads of its rows, and noise
  std::vector<float> host_log_alpha_;

  UndoRange undo_;
  FloatView kept_targets_;
};

const RegisterAlgorithm<SafeLoop> kRegistered("safe_loop");

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
