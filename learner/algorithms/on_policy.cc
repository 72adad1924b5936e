#include "learner/algorithms/on_policy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "learner/algorithms/minibatch_order.h"

namespace datacom::learner {

CostMultiplier::CostMultiplier(const AlgorithmConfig& config)
    : members_(config.members.size()), proposed_(config.members.size()) {
  for (Member& member : members_) member.multiplier.value = kStart;
  for (const MemberConfig& member : config.members) {
    limits_.push_back(member.hyper.cost_budget());
    rates_.push_back(member.hyper.multiplier_lr());
  }
}

void CostMultiplier::AddEpisode(int member, int length, const float* costs) {
  double sum = 0;
  for (int i = 0; i < length; ++i) sum += costs[i] < 0 ? 0 : static_cast<double>(costs[i]);
  Member& state = members_[member];
  state.costs[static_cast<int>(std::fmod(state.episodes, kWindow))] = sum;
  state.episodes += 1;
}

// The loss is multiplier (limit - mean cost).
double CostMultiplier::Propose(int member) {
  const Member& state = members_[member];
  ScalarAdam& next = proposed_[member];
  next = state.multiplier;
  const int count = static_cast<int>(std::min<double>(state.episodes, kWindow));
  if (count == 0) return next.value;
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += state.costs[i];
  next.Step(limits_[member] - sum / count, rates_[member]);
  if (next.value < 0) next.value = 0;
  return next.value;
}

std::string CostMultiplier::Save() const {
  return std::string(reinterpret_cast<const char*>(members_.data()), sizeof(Member) * members_.size());
}

void CostMultiplier::Load(const std::string& bytes) { std::memcpy(members_.data(), bytes.data(), bytes.size()); }

namespace {

constexpr int kChunk = 256;              // rows: the activations of one net stay in the second-level cache
constexpr double kObservationLimit = 5;  // of normalised observations

double EntropyOf(const double* log_std, int size) {
  const double each = 0.5 * std::log(2 * std::acos(-1.0)) + 0.5;
  return std::accumulate(log_std, log_std + size, size * each);
}

int PositiveRows(const AlgorithmConfig& config) {
  if (config.epoch_rows < 1 || config.epochs < 1 || config.learner.passes() < 1) {
    throw std::invalid_argument(config.algorithm + " learns from whole epochs: epoch_rows, epochs and passes must be " +
                                "positive, not " + std::to_string(config.epoch_rows) + ", " +
                                std::to_string(config.epochs) + " and " + std::to_string(config.learner.passes()));
  }
  return config.epoch_rows;
}

}  // namespace

OnPolicy::OnPolicy(const AlgorithmConfig& config, bool keep_activations)
    : Population(config),
      rows_per_epoch_(PositiveRows(config)),
      batch_(std::min(BatchSize(config), rows_per_epoch_)),
      on_policy_kernels_(kernels_->Group<OnPolicyKernels>()),
      multiplier_(config) {
  const int obs = config_.obs_dim;
  mean_ = layout_.AddMlp("actor.mean", Widths(obs, config_.network.actor_hidden(), config_.action_dim),
                         Activation::kTanh, {});
  log_std_ = layout_.AddVector("actor.log_std", config_.action_dim, 0);
  actor_end_ = layout_.size();
  critic_ = NewCritic("critic");
  cost_critic_ = NewCritic("cost_critic");
  normaliser_.Declare(obs, &layout_);
  Build();
  actor_optimizer_ =
      NewOptimizer("actor", v1::MemberEpoch::kActorGradientNormFieldNumber, 0, actor_end_, &v1::Hyper::actor_lr);
  critic_.optimizer = NewOptimizer("critic", v1::MemberEpoch::kCriticGradientNormFieldNumber, critic_.first,
                                   critic_.size, &v1::Hyper::critic_lr);
  cost_critic_.optimizer = NewOptimizer("cost_critic", v1::MemberEpoch::kConstraintGradientNormFieldNumber,
                                        cost_critic_.first, cost_critic_.size, &v1::Hyper::constraint_lr);
  undo_ = NewUndoRange({actor_optimizer_, critic_.optimizer, cost_critic_.optimizer});
  cost_loss_ = NewStatistic(v1::MemberEpoch::kConstraintLossFieldNumber);
  mean_cost_value_ = NewStatistic(v1::MemberEpoch::kConstraintMeanFieldNumber);
  critic_.loss = &critic_loss_;
  cost_critic_.loss = &cost_loss_;
  normaliser_.Make(members_, kNoLimit, kernels_.get());
  RegisterStatistics(normaliser_.statistics());
  unit_ = kernels_->NewDoubles(members_, 1, 1, 1);
  gae_lambda_ = NewScalar(&v1::Hyper::gae_lambda);
  critic_decay_ = NewScalar(&v1::Hyper::critic_decay);
  clip_ = NewScalar(&v1::Hyper::gradient_clip);
  RegisterShared("updates", &updates_);
  Register(
      "multiplier", [this] { return multiplier_.Save(); },
      [this](const std::string& bytes) { multiplier_.Load(bytes); });
  ShowParameters(v1::MemberEpoch::kEntropyFieldNumber, log_std_, config_.action_dim, &EntropyOf);
  MakeWorkspace(keep_activations);
}

OnPolicy::Critic OnPolicy::NewCritic(const std::string& name) {
  Critic critic;
  critic.first = layout_.size();
  critic.net = layout_.AddMlp(name, Widths(config_.obs_dim, config_.network.critic_hidden(), 1), Activation::kTanh, {});
  critic.size = layout_.size() - critic.first;
  return critic;
}

void OnPolicy::MakeWorkspace(bool keep_activations) {
  const int N = rows_per_epoch_, obs = config_.obs_dim, n = config_.action_dim;
  const int chunk = std::min(kChunk, N), most = std::max(chunk, batch_);
  const auto rows = [this](int count, int cols) { return kernels_->NewFloats(block_, count, cols); };
  first_target_ = obs + n + 2;  // observation, action, log-density, advantage, targets
  rows_ = rows(N, first_target_ + 2);
  minibatch_ = rows(batch_, first_target_ + 2);
  raw_ = rows(N, obs), raw_next_ = rows(N, obs), next_ = rows(chunk, obs);
  for (FloatView* column : {&reward_, &cost_, &absorbing_, &path_end_, &value_, &next_value_, &cost_value_,
                            &next_cost_value_, &reward_advantage_, &cost_advantage_}) {
    *column = rows(N, 1);
  }
  acting_mean_ = rows(N, n);
  acting_log_std_ = rows(1, n);
  d_mean_ = rows(most, n);
  d_value_ = rows(batch_, 1);
  chunk_tape_ = kernels_->NewTape(mean_, block_, most);
  critic_tape_ = kernels_->NewTape(critic_.net, block_, most);
  MakeTapes(keep_activations);
  index_ = kernels_->NewDoubles(block_, batch_, 1);
  price_ = kernels_->NewDoubles(block_, 1, 1);
  stopped_ = kernels_->NewDoubles(block_, 1, 1);
  index_values_.resize(static_cast<size_t>(block_) * batch_);
  active_values_.resize(block_), prices_.resize(block_), rates_.resize(members_);
  order_.assign(block_, std::vector<int>(N));
  for (const MemberConfig& member : config_.members) actor_rates_.push_back(member.hyper.actor_lr());
}

// The chunks' tapes share all memory that the next chunk may overwrite.
void OnPolicy::MakeTapes(bool keep_activations) {
  for (int first = 0; first < rows_per_epoch_; first += kChunk) {
    MlpTape tape = chunk_tape_;
    if (keep_activations) {
      tape.hidden.clear();
      const int count = std::min(kChunk, rows_per_epoch_ - first);
      for (size_t i = 0; i + 1 < mean_.layers.size(); ++i) {
        tape.hidden.push_back(kernels_->NewFloats(block_, count, mean_.layers[i].out));
      }
    }
    tape.out = ChunkOf(acting_mean_, static_cast<int>(tapes_.size()));
    tapes_.push_back(tape);
  }
}

FloatView OnPolicy::ChunkOf(const FloatView& rows, int chunk) const {
  const int first = chunk * kChunk;
  return rows.Rows(first, std::min(kChunk, rows_per_epoch_ - first));
}

ActedRows OnPolicy::ActedOf(const FloatView& rows) const {
  const int obs = config_.obs_dim, n = config_.action_dim;
  return {rows.Cols(obs, n), rows.Cols(obs + n, 1), rows.Cols(obs + n + 1, 1)};
}

// The actor's rate decays linearly, from its full value in the first update.
void OnPolicy::Update(const Batch& batch) {
  const double left = std::max(0.0, 1 - static_cast<double>(updates_) / static_cast<double>(config_.epochs));
  for (int m = 0; m < members_; ++m) rates_[m] = actor_rates_[m] * left;
  kernels_->Upload(rates_.data(), actor_optimizer_.learning_rate);
  EachBlock([&] { UpdateBlock(batch); });
  ++updates_;
}

void OnPolicy::LoadBatch(const Batch& batch) {
  const int N = rows_per_epoch_, obs = config_.obs_dim, n = config_.action_dim;
  const ActedRows acted = ActedOf(rows_);
  kernels_->Upload(BlockOf(batch.observation, static_cast<int64_t>(N) * obs), raw_);
  kernels_->Upload(BlockOf(batch.next_observation, static_cast<int64_t>(N) * obs), raw_next_);
  kernels_->Upload(BlockOf(batch.action, static_cast<int64_t>(N) * n), acted.action);
  kernels_->Upload(BlockOf(batch.columns[0], N), acted.log_prob);
  kernels_->Upload(BlockOf(batch.reward, N), reward_);
  kernels_->Upload(BlockOf(batch.cost, N), cost_);
  kernels_->Upload(BlockOf(batch.absorbing, N), absorbing_);
  kernels_->Upload(BlockOf(batch.path_end, N), path_end_);
  for (int m = 0; m < block_; ++m) prices_[m] = multiplier_.Propose(first_member() + m);
  kernels_->Upload(prices_.data(), price_);
}

void OnPolicy::UpdateBlock(const Batch& batch) {
  kernels_->Run(
      kPrepare, [this, &batch] { LoadBatch(batch); }, [this] { Prepare(); });
  if (Learning()) Learn();
  kernels_->Run(kFinish, [this] { Finish(); });
  kernels_->Download(Block(active_), active_values_.data());
  for (int m = 0; m < block_; ++m) {
    if (active_values_[m] != 0) multiplier_.Keep(first_member() + m);
  }
}

bool OnPolicy::Learning() {
  kernels_->Download(Block(active_), active_values_.data());
  return std::any_of(active_values_.begin(), active_values_.end(), [](double active) { return active != 0; });
}

void OnPolicy::Normalise(const FloatView& raw, const FloatView& out) {
  normaliser_.Normalise(parameters(), raw, kObservationLimit, out);
}

void OnPolicy::Prepare() {
  SaveForUndo(undo_);
  Normalise(raw_, ObservationOf(rows_));
  EvaluateRows();
  EstimateAdvantages();
  on_policy_kernels_->PriceAdvantages(reward_advantage_, cost_advantage_, price_, ActedOf(rows_).advantage);
}

// Values, values of the next states, and what the policy was when it acted.
void OnPolicy::EvaluateRows() {
  kernels_->Copy(LogStd(parameters()), acting_log_std_);
  for (int i = 0; i < chunks(); ++i) {
    const FloatView now = ObservationOf(ChunkOf(rows_, i)), next = next_.Rows(0, now.rows);
    Normalise(ChunkOf(raw_next_, i), next);
    kernels_->Forward(parameters(), mean_, now, tapes_[i]);
    const auto evaluate = [&](const Critic& critic, const FloatView& x, const FloatView& value) {
      kernels_->Forward(parameters(), critic.net, x, critic_tape_);
      kernels_->Copy(critic_tape_.out.Rows(0, x.rows), ChunkOf(value, i));
    };
    evaluate(critic_, now, value_);
    evaluate(critic_, next, next_value_);
    evaluate(cost_critic_, now, cost_value_);
    evaluate(cost_critic_, next, next_cost_value_);
  }
  RecordCritics(value_.AsRow(), Block(unit_));
  kernels_->RowMean(cost_value_, mean_cost_value_.value);
  Record(mean_cost_value_);
}

void OnPolicy::EstimateAdvantages() {
  const DoubleView lambda = Block(gae_lambda_);
  constexpr double kAnything = -std::numeric_limits<double>::infinity();
  on_policy_kernels_->Advantages({reward_, absorbing_, path_end_, value_, next_value_}, kAnything,
                                 config_.learner.discount(), lambda, reward_advantage_, TargetOf(rows_));
  on_policy_kernels_->Advantages({cost_, absorbing_, path_end_, cost_value_, next_cost_value_}, /*least=*/0,
                                 config_.learner.discount(), lambda, cost_advantage_, CostTargetOf(rows_));
  on_policy_kernels_->Standardise(reward_advantage_);
  on_policy_kernels_->Centre(cost_advantage_);
}

void OnPolicy::Pass(int pass) {
  for (int m = 0; m < block_; ++m) {
    MinibatchOrder(config_.run_seed, config_.members[first_member() + m].seed, updates_, pass, &order_[m]);
  }
  for (int first = 0; first < rows_per_epoch_; first += batch_) {
    if (config_.alive) config_.alive();
    const int count = std::min(batch_, rows_per_epoch_ - first);
    for (int m = 0; m < block_; ++m) {
      for (int r = 0; r < count; ++r) index_values_[m * count + r] = order_[m][first + r];
    }
    kernels_->Run(
        count == batch_ ? kMinibatch : kRest,
        [this, count] { kernels_->Upload(index_values_.data(), index_.Rows(0, count)); },
        [this, count] { Minibatch(minibatch_.Rows(0, count)); });
  }
}

void OnPolicy::CriticSteps(const FloatView& rows) {
  on_policy_kernels_->Gather(rows_, index_.Rows(0, rows.rows), rows);
  CriticStep(critic_, rows, TargetOf(rows));
  CriticStep(cost_critic_, rows, CostTargetOf(rows));
}

void OnPolicy::CriticStep(const Critic& critic, const FloatView& rows, const FloatView& target) {
  const FloatView x = ObservationOf(rows), value = critic_tape_.out.Rows(0, rows.rows);
  const FloatView d_value = d_value_.Rows(0, rows.rows);
  const int first = static_cast<int>(critic.first), size = static_cast<int>(critic.size);
  const FloatView gradient = gradients().Cols(first, size);
  kernels_->Forward(parameters(), critic.net, x, critic_tape_);
  critic_kernels_->SquaredLoss(value.AsRow(), target, d_value.AsRow(), critic.loss->value);
  kernels_->Adjoint(parameters(), critic.net, d_value, critic_tape_);
  kernels_->ParameterGradient(critic.net, x, d_value, critic_tape_, gradients());
  on_policy_kernels_->AddSquares(parameters().Cols(first, size), Block(critic_decay_), gradient, critic.loss->value);
  CheckAndRecordLoss(*critic.loss);
  CheckGradient(critic.optimizer);
  on_policy_kernels_->Shorten(critic.optimizer.gradient_norm.value, Block(clip_), gradient);
  Step(critic.optimizer);
}

void OnPolicy::Finish() {
  on_policy_kernels_->Resume(stopped_, Block(active_));
  UndoWhereInactive(undo_);
  normaliser_.Add(parameters(), raw_, Block(active_), Block(normaliser_.statistics()));
}

void OnPolicy::ApplyEpisodes(const std::vector<EpisodeCosts>& episodes) {
  for (const EpisodeCosts& episode : episodes)
    multiplier_.AddEpisode(episode.member, episode.length, episode.costs + 1);
}

Stats OnPolicy::GetStats() const {
  Stats stats = Population::GetStats();
  for (int m = 0; m < members_; ++m) {
    stats[m].set_multiplier(multiplier_.value(m));
    stats[m].set_q_gap(std::numeric_limits<double>::quiet_NaN());  // there is one critic
  }
  return stats;
}

void OnPolicy::Publish(int /*member*/, const HostParameters& parameters, ActingParameters* out) const {
  parameters.AddNet("actor", out);
  parameters.AddNet("observation", out);
  out->scalars = {{"observation_limit", kObservationLimit}};
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
