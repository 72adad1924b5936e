#include "learner/algorithms/datacom.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "common/safety/risk.h"
#include "common/safety/safe_map.h"
#include "learner/algorithms/episode_cost.h"
#include "learner/algorithms/joined_map_kernels.h"
#include "learner/algorithms/population.h"
#include "learner/algorithms/register_algorithm.h"
#include "learner/algorithms/safe_map_row.h"

namespace datacom::learner {
namespace {

constexpr int kRiskPlan = -2;        // of Kernels::Run, with n passes kRiskPlan - n; updates have others
constexpr int kMostRiskRows = 4096;  // of an episode that are evaluated at once, about

// So many passes that few numbers of them occur: each has a plan, which a device keeps.
int RiskPasses(int rows, int pass_rows) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>((rows + pass_rows - 1) / pass_rows)));
}

}  // namespace

void Feasibility::MakeWorkspace(const AlgorithmConfig& config, int block, Kernels* kernels) {
  kernels_ = kernels;
  batch_ = BatchSize(config), failures_ = FailureRows(config), z_dim_ = config.q_dim + config.x_dim;
  discount_ = config.learner.discount(), slice_first_ = config.slice_first;
  const int B = batch_, loss_rows = batch_ + failures_;
  z_ = kernels->NewFloats(block, B + loss_rows, z_dim_);
  next_z_ = kernels->NewFloats(block, loss_rows, z_dim_);
  cost_ = kernels->NewFloats(block, loss_rows, 1);
  absorbing_ = kernels->NewFloats(block, loss_rows, 1);
  row_weight_ = kernels->NewFloats(block, loss_rows, 1);
  no_delta_ = kernels->NewDoubles(block, 1, 1);
  ones_ = kernels->NewFloats(block, B + loss_rows, 1, 1);
  k_ = kernels->NewDoubles(block, 2 * B, 1), J_ = kernels->NewDoubles(block, 2 * B, z_dim_);
  const int risk_rows = RiskPasses(std::min(config.horizon + 1, kMostRiskRows), 2 * B) * 2 * B;
  risk_z_ = kernels->NewFloats(block, risk_rows, z_dim_), risk_k_ = kernels->NewDoubles(block, risk_rows, 1);
  host_z_.resize(static_cast<size_t>(block) * risk_rows * z_dim_);
  host_k_.resize(static_cast<size_t>(block) * risk_rows);
  host_weight_.resize(static_cast<size_t>(block) * loss_rows);
}

void Feasibility::LoadBatch(const Batch& batch, int batch_member) {
  member_ = batch_member - slice_first_;
  const int B = batch_, F = failures_, z = z_dim_;
  const auto rows = [batch_member](const auto& values, int64_t per_member) {
    return values.data() + batch_member * per_member;
  };
  kernels_->Upload(rows(batch.next.z, B * z), z_.Rows(0, B));
  kernels_->Upload(rows(batch.now.z, B * z), z_.Rows(B, B));
  kernels_->Upload(rows(batch.failure_z, F * z), z_.Rows(2 * B, F));
  kernels_->Upload(rows(batch.next.z, B * z), next_z_.Rows(0, B));
  kernels_->Upload(rows(batch.failure_next_z, F * z), next_z_.Rows(B, F));
  kernels_->Upload(rows(batch.cost, B), cost_.Rows(0, B));
  kernels_->Upload(rows(batch.failure_cost, F), cost_.Rows(B, F));
  kernels_->Upload(rows(batch.absorbing, B), absorbing_.Rows(0, B));
  kernels_->Upload(rows(batch.failure_absorbing, F), absorbing_.Rows(B, F));
  for (int m = 0; m < row_weight_.members; ++m) {
    const int count = batch.failure_weight[batch_member + m] > 0 ? B + F : B;
    float* const weights = &host_weight_[static_cast<size_t>(m) * (B + F)];
    std::fill_n(weights, count, 1.0f / static_cast<float>(count));
    std::fill_n(weights + count, B + F - count, 0.0f);
  }
  kernels_->Upload(host_weight_.data(), row_weight_);
}

void Feasibility::Risk(const FloatView& parameters, int first_member, const std::vector<float>* states,
                       std::vector<double>* values) {
  member_ = first_member;
  const int block = parameters.members, pass_rows = 2 * batch_;
  int longest = 0;
  for (int m = 0; m < block; ++m) {
    values[m].resize(states[m].size() / z_dim_);
    longest = std::max(longest, static_cast<int>(values[m].size()));
  }
  for (int first = 0; first < longest; first += risk_z_.rows) {
    const int passes = RiskPasses(std::min(longest - first, risk_z_.rows), pass_rows), rows = passes * pass_rows;
    const auto left = [&](int m) { return std::clamp(static_cast<int>(values[m].size()) - first, 0, rows); };
    for (int m = 0; m < block; ++m) {
      if (left(m) == 0) continue;
      std::copy_n(&states[m][static_cast<size_t>(first) * z_dim_], static_cast<size_t>(left(m)) * z_dim_,
                  &host_z_[static_cast<size_t>(m) * rows * z_dim_]);
    }
    kernels_->Run(
        kRiskPlan - passes, [&] { kernels_->Upload(host_z_.data(), risk_z_.Rows(0, rows)); },
        [&] {
          for (int row = 0; row < rows; row += pass_rows) {
            EvaluateRisk(parameters, risk_z_.Rows(row, pass_rows), risk_k_.Rows(row, pass_rows));
          }
        });
    kernels_->Download(risk_k_.Rows(0, rows), host_k_.data());
    for (int m = 0; m < block; ++m) {
      if (left(m) > 0) std::copy_n(&host_k_[static_cast<size_t>(m) * rows], left(m), &values[m][first]);
    }
  }
}

namespace {

// The Gaussian feasibility value function (docs/algorithms.md 3 and 4): two sigmoid perceptrons on the
// constraint state z give mean (through softplus) and log standard deviation of the discounted future violation. Its
// value is the CVaR at the accepted risk.
//
// The online nets are evaluated once per update. The hidden adjoints of a unit output give the Jacobian; multiplied by
// the loss gradient of their row they give the gradient of the loss.
class GaussianFeasibility : public Feasibility {
 public:
  // The nets "constraint.mean" and "constraint.log_std".
  void Declare(const AlgorithmConfig& config, ParameterLayout* layout) override {
    const std::vector<int> widths = Widths(config.q_dim + config.x_dim, config.network.constraint_hidden(), 1);
    first_ = layout->size();
    mean_.layout = layout->AddMlp("constraint.mean", widths, Activation::kSigmoid, {1.0});
    log_std_.layout = layout->AddMlp("constraint.log_std", widths, Activation::kSigmoid, {1.0});
    size_ = layout->size() - first_;
  }

  void MakeWorkspace(const AlgorithmConfig& config, int block, Kernels* kernels) override {
    Feasibility::MakeWorkspace(config, block, kernels);
    cost_kernels_ = kernels->Group<CostKernels>();
    margin_ = NewFloatScalar(config, kernels,
                             [](const v1::Hyper& hyper) { return GaussianRiskMargin(hyper.accepted_risk()); });
    const int B = batch_, loss_rows = batch_ + failures_;
    for (Net* net : {&mean_, &log_std_}) {
      net->tape = kernels->NewTape(net->layout, block, B + loss_rows);
      net->jacobian_rows = net->tape.Rows(0, 2 * B);
      net->loss_rows = net->tape.Rows(B, loss_rows);
      net->target_tape = kernels->NewTape(net->layout, block, loss_rows);
      net->jacobian = kernels->NewFloats(block, 2 * B, z_dim_);
      net->d_out = kernels->NewFloats(block, loss_rows, 1);
    }
  }

  void Evaluate(const FloatView& parameters, const DoubleView& delta) override {
    EachNet([&](const Net& net) {
      kernels_->Forward(parameters, net.layout, z_, net.tape);
      kernels_->Adjoint(parameters, net.layout, ones_, net.tape);
      kernels_->InputGradient(parameters, net.layout, net.jacobian_rows, 0, /*add=*/false, net.jacobian);
    });
    cost_kernels_->GaussianRisk(mean_.jacobian_rows.out, log_std_.jacobian_rows.out, mean_.jacobian, log_std_.jacobian,
                                margin_.Members(member_, parameters.members), delta, k_, J_);
  }

  void LossGradient(const FloatView& parameters, const FloatView& targets, const FloatView& gradients,
                    const DoubleView& loss) override {
    EachNet([&](const Net& net) { kernels_->Forward(targets, net.layout, next_z_, net.target_tape); });
    const GaussianTarget target{GaussianHead::kFeasibility,
                                mean_.target_tape.out,
                                log_std_.target_tape.out,
                                cost_,
                                absorbing_,
                                row_weight_,
                                discount_};
    cost_kernels_->GaussianLoss(mean_.loss_rows.out, log_std_.loss_rows.out, target, mean_.d_out, log_std_.d_out, loss);
    const FloatView z = z_.Rows(batch_, batch_ + failures_);
    EachNet([&](const Net& net) {
      kernels_->ScaleAdjoint(net.d_out, net.loss_rows);
      kernels_->ParameterGradient(net.layout, z, net.d_out, net.loss_rows, gradients);
    });
  }

  void Publish(const v1::Hyper& hyper, const HostParameters& parameters, ActingParameters* out) const override {
    parameters.AddNet("constraint", out);
    out->scalars["risk_margin"] = GaussianRiskMargin(hyper.accepted_risk());
  }

 protected:
  void EvaluateRisk(const FloatView& parameters, const FloatView& z, const DoubleView& k) override {
    EachNet([&](const Net& net) { kernels_->Forward(parameters, net.layout, z, net.jacobian_rows); });
    cost_kernels_->GaussianRisk(mean_.jacobian_rows.out, log_std_.jacobian_rows.out, mean_.jacobian, log_std_.jacobian,
                                margin_.Members(member_, parameters.members), no_delta_, k, J_);
  }

 private:
  struct Net {
    MlpLayout layout;
    MlpTape tape, jacobian_rows, loss_rows, target_tape;
    FloatView jacobian;  // [block, 2B, q + x]
    FloatView d_out;     // [block, B + F, 1]
  };
  // Calls body(net) for both nets, at the same time if a thread has nothing to do.
  template <class Body>
  void EachNet(const Body& body) const {
    kernels_->Together([&] { body(mean_); }, [&] { body(log_std_); });
  }

  CostKernels* cost_kernels_ = nullptr;
  Net mean_, log_std_;
  FloatView margin_;  // [M, 1, 1]
};

const RegisterAlgorithm<Datacom> kRegistered("datacom");

}  // namespace

Datacom::Datacom(const AlgorithmConfig& config) : Datacom(config, std::make_unique<GaussianFeasibility>()) {}

Datacom::Datacom(const AlgorithmConfig& config, std::unique_ptr<Feasibility> feasibility)
    : SoftActorCritic(config),
      map_kernels_(joins() ? static_cast<MapKernels*>(kernels_->Group<JoinedMapKernels>())
                           : kernels_->Group<SafeMapKernels>()),
      feasibility_(std::move(feasibility)),
      delta_(config),
      priced_(Multiplier::IsUsed(config)),
      multiplier_(config) {
  DeclareCritics();
  feasibility_->Declare(config_, &layout_);
  if (priced_) cost_critic_.Declare({"cost_critic"}, CriticKind::kPlain, config_, &layout_);
  MirrorTargets();
  DeclareActor();
  acting_first_ = feasibility_->first();
  Build();
  MakeWorkspace();
  feasibility_->MakeWorkspace(config_, block_, kernels_.get());
  constraint_optimizer_ = NewOptimizer("constraint", v1::MemberEpoch::kConstraintGradientNormFieldNumber,
                                       feasibility_->first(), feasibility_->size(), &v1::Hyper::constraint_lr);
  StepWithValues(constraint_optimizer_);
  if (priced_) {
    cost_kernels_ = kernels_->Group<CostKernels>();
    cost_critic_.MakeWorkspace(config_, block_, kernels_.get());
    cost_optimizer_ = NewOptimizer("cost_critic", /*gradient_norm_field=*/0, cost_critic_.first(), cost_critic_.size(),
                                   &v1::Hyper::critic_lr);
    StepWithValues(cost_optimizer_);
    cost_ = kernels_->NewFloats(block_, batch_, 1), cost_y_ = kernels_->NewFloats(block_, batch_, 1);
    d_cost_ = kernels_->NewFloats(block_, batch_, config_.action_dim);
    one_ = kernels_->NewDoubles(block_, 1, 1, 1), cost_loss_ = kernels_->NewDoubles(block_, 1, 1);
  }
  constraint_loss_ = NewStatistic(v1::MemberEpoch::kConstraintLossFieldNumber);
  constraint_mean_ = NewStatistic(v1::MemberEpoch::kConstraintMeanFieldNumber);
  infeasible_share_ = NewStatistic(v1::MemberEpoch::kInfeasibleShareFieldNumber);
  gain_ = NewScalar(&v1::Hyper::atacom_gain);
  slack_beta_ = NewScalar(&v1::Hyper::slack_beta);
  thresholds_ = kernels_->NewDoubles(members_, 2, 1);
  UploadThresholds();
  const auto saved = [this](const std::string& name, auto* part) {
    Register(
        name, [part] { return part->Save(); },
        [this, part](const std::string& bytes) {
          part->Load(bytes);
          UploadThresholds();
        });
  };
  saved("delta", &delta_);
  if (priced_) saved("multiplier", &multiplier_);
  episode_states_.resize(members_), episode_values_.resize(members_);
  const int n = config_.action_dim;
  now_.u = kernels_->NewFloats(block_, batch_, n), next_.u = kernels_->NewFloats(block_, batch_, n);
  const auto rows = [this](int cols) { return kernels_->NewDoubles(block_, 2 * batch_, cols); };
  dynamics_ = {rows(config_.q_dim), rows(config_.q_dim * n), rows(config_.x_dim), {}};
  if (joins()) dynamics_.known = rows(static_cast<int>(config_.known.size()) * JoinedRowSize(n));
  map_ = rows(joins() ? JoinedMapSize(n) : SafeMapSize(n));
  record_ = kernels_->NewDoubles(block_, batch_, 1);
  d_u_ = kernels_->NewFloats(block_, batch_, n);
}

Datacom::Dynamics Datacom::Dynamics::Rows(int first, int count) const {
  return {f.Rows(first, count), G.Rows(first, count), x_dot.Rows(first, count), known.Rows(first, count)};
}

void Datacom::UploadThresholds() {
  std::vector<double> values;
  for (int m = 0; m < members_; ++m) values.insert(values.end(), {delta_.value(m), multiplier_.value(m)});
  kernels_->Upload(values.data(), thresholds_);
}

void Datacom::LoadDynamics(const ControlAffineBatch& batch, const Dynamics& to) {
  kernels_->Upload(BlockOf(batch.f, batch_ * config_.q_dim), to.f);
  kernels_->Upload(BlockOf(batch.G, batch_ * config_.q_dim * config_.action_dim), to.G);
  kernels_->Upload(BlockOf(batch.x_dot, batch_ * config_.x_dim), to.x_dot);
  if (joins()) kernels_->Upload(BlockOf(batch.known, batch_ * to.known.cols), to.known);
}

void Datacom::LoadBatch(const Batch& batch) {
  LoadTransitions(batch);
  if (priced_) kernels_->Upload(BlockOf(batch.cost, batch_), cost_);
  LoadDynamics(batch.next, dynamics_.Rows(0, batch_));
  LoadDynamics(batch.now, dynamics_.Rows(batch_, batch_));
  feasibility_->LoadBatch(batch, batch_member());
}

// The parts of the maps that depend only on s' and s.
void Datacom::MapStates() {
  kernels_->Ranges(2 * batch_, [&](int first, int count) {
    const Dynamics at = dynamics_.Rows(first, count);
    const DoubleView k = feasibility_->k().Rows(first, count), J = feasibility_->J().Rows(first, count);
    map_kernels_->State({k, J, at.f, at.G, at.x_dot, Block(gain_), Block(slack_beta_), Block(target_entropy_), at.known,
                         config_.known_equalities},
                        map_.Rows(first, count));
  });
}

// Constraint values at s and s' use the online nets and delta from before this update.
void Datacom::EvaluateState() {
  feasibility_->Evaluate(parameters(), DeltaValue());
  MapStates();
  feasibility_->LossGradient(parameters(), targets(), gradients(), constraint_loss_.value);
  CheckAndRecordLoss(constraint_loss_);
  kernels_->RowMean(feasibility_->k_now(), constraint_mean_.value);
  Record(constraint_mean_);
  kernels_->RowShareAboveZero(feasibility_->k_now(), infeasible_share_.value);
  Record(infeasible_share_);
  CheckGradient(constraint_optimizer_);
}

void Datacom::PolicyGradients() {
  SampleNow();
  MapAction(MapNow(), now_, NowAction());
  EvaluateActor();
  if (priced_) AddPricedCost();
  map_kernels_->Gradient(MapNow(), record_, now_.u, action_gradient(), d_u_);
  ActorGradient(d_u_);
  TemperatureGradient();
}

void Datacom::AddPricedCost() {
  cost_critic_.Evaluate(parameters(), critic_input());
  kernels_->SetZero(cost_loss_);
  critic_kernels_->WeightedMean(cost_critic_.executed(0), one_, cost_critic_.d_out(0), cost_loss_);
  cost_critic_.ActionGradient(parameters(), cost_critic_.nets(), /*add=*/false, d_cost_);
  cost_kernels_->AddPriced(MultiplierValue(), d_cost_, action_gradient());
}

void Datacom::EvaluateStored() {
  SoftActorCritic::EvaluateStored();
  if (priced_) cost_critic_.EvaluateStored(parameters(), critic_input());
}

void Datacom::ValueGradients() {
  SampleNext();
  MapAction(MapNext(), next_, NextAction());
  CriticGradient();
  if (!priced_) return;
  cost_critic_.EvaluateTargets(targets(), critic_input());
  cost_kernels_->CostTarget(cost_, critic_input().absorbing, cost_critic_.next(0), config_.learner.discount(), cost_y_);
  cost_critic_.Regress(parameters(), critic_input(), cost_y_, gradients(), cost_loss_);
  CheckGradient(cost_optimizer_);
}

void Datacom::ApplyEpisodes(const std::vector<EpisodeCosts>& episodes) {
  std::vector<double> active = Values(active_);
  const int z_dim = config_.q_dim + config_.x_dim;
  for (std::vector<float>& states : episode_states_) states.clear();
  for (const EpisodeCosts& episode : episodes) {
    if (active[episode.member] == 0) continue;
    std::vector<float>& states = episode_states_[episode.member];
    states.insert(states.end(), episode.z, episode.z + static_cast<int64_t>(episode.length + 1) * z_dim);
  }
  EachBlock([&] {
    feasibility_->Risk(parameters(), first_member(), &episode_states_[first_member()],
                       &episode_values_[first_member()]);
  });
  bool failed = false;
  std::vector<const double*> values(members_);
  for (int m = 0; m < members_; ++m) values[m] = episode_values_[m].data();
  for (const EpisodeCosts& episode : episodes) {
    const int m = episode.member;
    if (active[m] == 0) continue;
    const double* const risk = std::exchange(values[m], values[m] + episode.length + 1);
    const double total = CostOfEpisode(episode.length, episode.costs);
    if ((priced_ && !std::isfinite(total)) || !delta_.ApplyEpisode(m, episode.length, episode.costs, risk)) {
      active[m] = 0, failed = true;
    } else if (priced_) {
      multiplier_.ApplyEpisode(m, episode.length, total);
    }
  }
  if (failed) kernels_->Upload(active.data(), active_);
  UploadThresholds();
}

Stats Datacom::GetStats() const {
  Stats stats = SoftActorCritic::GetStats();
  for (int m = 0; m < members_; ++m) {
    stats[m].set_delta(delta_.value(m));
    stats[m].set_delta_steps(delta_.steps(m));
    if (multiplier_.has(m)) stats[m].set_multiplier(multiplier_.value(m));
    if (const std::optional<double> cost = delta_.cost(m)) stats[m].set_delta_cost(*cost);
  }
  return stats;
}

void Datacom::Publish(int member, const HostParameters& parameters, ActingParameters* out) const {
  const v1::Hyper& hyper = config_.members[member].hyper;
  SoftActorCritic::Publish(member, parameters, out);
  out->scalars = {
      {"delta", delta_.value(member)}, {"atacom_gain", hyper.atacom_gain()}, {"slack_beta", hyper.slack_beta()}};
  for (const std::string& row : config_.known) out->scalars["known_constraint." + row] = 1;
  feasibility_->Publish(hyper, parameters, out);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
