#include "learner/algorithms/datacom.h"

#include <stdexcept>

#include "common/safety/risk.h"
#include "common/safety/safe_map.h"
#include "learner/algorithms/gaussian_feasibility.h"
#include "learner/algorithms/register_algorithm.h"
#include "learner/algorithms/safe_map_row.h"

namespace datacom::learner {
namespace {

const RegisterAlgorithm<Datacom> kRegistered("datacom");

}  // namespace

Datacom::Datacom(const AlgorithmConfig& config) : Datacom(config, std::make_unique<GaussianFeasibility>()) {}

Datacom::Datacom(const AlgorithmConfig& config, std::unique_ptr<Feasibility> feasibility)
    : SoftActorCritic(config),
      safe_map_kernels_(kernels_->Group<SafeMapKernels>()),
      joined_map_kernels_(kernels_->Group<JoinedMapKernels>()),
      feasibility_(std::move(feasibility)),
      delta_(config) {
  DeclareCritics();
  feasibility_->Declare(config_, &layout_);
  MirrorTargets(0, layout_.size());
  DeclareActor();
  Build();
  MakeWorkspace();
  feasibility_->MakeWorkspace(config_, /*target_first=*/0, block_, kernels_.get());
  constraint_optimizer_ = NewOptimizer("constraint", v1::MemberEpoch::kConstraintGradientNormFieldNumber,
                                       feasibility_->first(), feasibility_->size(), &v1::Hyper::constraint_lr);
  StepWithValues(constraint_optimizer_);
  constraint_loss_ = NewStatistic(v1::MemberEpoch::kConstraintLossFieldNumber);
  constraint_mean_ = NewStatistic(v1::MemberEpoch::kConstraintMeanFieldNumber);
  gain_ = NewScalar(&v1::Hyper::atacom_gain);
  slack_beta_ = NewScalar(&v1::Hyper::slack_beta);
  delta_value_ = NewScalar();
  for (int m = 0; m < members_; ++m) UploadDelta(m);
  const int n = config_.action_dim;
  const auto rows = [this](int cols) { return kernels_->NewDoubles(block_, 2 * batch_, cols); };
  dynamics_ = {rows(config_.q_dim), rows(config_.q_dim * n), rows(config_.x_dim), {}};
  if (joins()) {
    dynamics_.known = rows(static_cast<int>(config_.known.size()) * JoinedRowSize(n));
    map_ = rows(JoinedMapSize(n));
  }
  record_ = kernels_->NewDoubles(block_, batch_, joins() ? 1 : SafeMapRecordSize(n));
  d_u_ = kernels_->NewFloats(block_, batch_, n);
}

Datacom::Dynamics Datacom::Dynamics::Rows(int first, int count) const {
  return {f.Rows(first, count), G.Rows(first, count), x_dot.Rows(first, count), known.Rows(first, count)};
}

void Datacom::UploadDelta(int member) {
  const double value = delta_.value(member);
  kernels_->Upload(&value, delta_value_.Members(member, 1));
}

void Datacom::LoadDynamics(const ControlAffineBatch& batch, const Dynamics& to) {
  kernels_->Upload(BlockOf(batch.f, batch_ * config_.q_dim), to.f);
  kernels_->Upload(BlockOf(batch.G, batch_ * config_.q_dim * config_.action_dim), to.G);
  kernels_->Upload(BlockOf(batch.x_dot, batch_ * config_.x_dim), to.x_dot);
  if (joins()) kernels_->Upload(BlockOf(batch.known, batch_ * to.known.cols), to.known);
}

void Datacom::LoadBatch(const Batch& batch) {
  LoadTransitions(batch);
  LoadDynamics(batch.next, dynamics_.Rows(0, batch_));
  LoadDynamics(batch.now, dynamics_.Rows(batch_, batch_));
  feasibility_->LoadBatch(batch, batch_member());
}

SafeMapInput Datacom::MapInput(const Dynamics& dynamics, const DoubleView& k, const DoubleView& J) const {
  return {k, J, dynamics.f, dynamics.G, dynamics.x_dot, Block(gain_), Block(slack_beta_), Block(target_entropy_)};
}

void Datacom::JoinMaps() {
  kernels_->Ranges(2 * batch_, [&](int first, int count) {
    const Dynamics dynamics = dynamics_.Rows(first, count);
    const DoubleView k = feasibility_->k().Rows(first, count), J = feasibility_->J().Rows(first, count);
    joined_map_kernels_->JoinMap({MapInput(dynamics, k, J), dynamics.known, config_.known_equalities},
                                 map_.Rows(first, count));
  });
}

void Datacom::MapNow() {
  const SafeMapOutput out{NowAction(), now_.log_pi, record_};
  if (joins()) {
    joined_map_kernels_->JoinedMap(map_.Rows(batch_, batch_), Block(target_entropy_), now_.u, out);
  } else {
    const Dynamics now = dynamics_.Rows(batch_, batch_);
    safe_map_kernels_->SafeMap(MapInput(now, feasibility_->k_now(), feasibility_->J_now()), now_.u, out);
  }
}

void Datacom::MapNext() {
  const SafeMapOutput out{NextAction(), next_.log_pi, record_};
  if (joins()) {
    joined_map_kernels_->JoinedMap(map_.Rows(0, batch_), Block(target_entropy_), next_.u, out);
  } else {
    const Dynamics next = dynamics_.Rows(0, batch_);
    safe_map_kernels_->SafeMap(MapInput(next, feasibility_->k_next(), feasibility_->J_next()), next_.u, out);
  }
}

void Datacom::MapNowGradient() {
  if (joins()) {
    joined_map_kernels_->JoinedMapGradient(map_.Rows(batch_, batch_), record_, now_.u, action_gradient(), d_u_);
  } else {
    safe_map_kernels_->SafeMapGradient(record_, now_.u, action_gradient(), d_u_);
  }
}

// Constraint values at s and s' use the online nets and delta from before this update.
void Datacom::EvaluateState() {
  feasibility_->Evaluate(parameters(), Block(delta_value_));
  if (joins()) JoinMaps();
  feasibility_->LossGradient(parameters(), targets(), gradients(), constraint_loss_.value);
  CheckAndRecordLoss(constraint_loss_);
  kernels_->RowMean(feasibility_->k_now(), constraint_mean_.value);
  Record(constraint_mean_);
  CheckGradient(constraint_optimizer_);
}

void Datacom::PolicyGradients() {
  SampleNow();
  MapNow();
  EvaluateActor();
  MapNowGradient();
  ActorGradient(d_u_);
  TemperatureGradient();
}

void Datacom::ValueGradients() {
  SampleNext();
  MapNext();
  CriticGradient();
}

void Datacom::ApplyEpisode(int member, int length, const float* z, const float* costs) {
  if (MemberValue(active_, member) == 0) return;
  risk_.resize(static_cast<size_t>(length) + 1);
  feasibility_->Risk(ParametersOf(member), member, z, length + 1, risk_.data());
  if (!delta_.ApplyEpisode(member, length, costs, risk_.data())) {
    const double inactive = 0;
    kernels_->Upload(&inactive, active_.Members(member, 1));
  }
  UploadDelta(member);
}

Stats Datacom::GetStats() const {
  Stats stats = SoftActorCritic::GetStats();
  for (int m = 0; m < members_; ++m) {
    stats[m].set_delta(delta_.value(m));
    stats[m].set_delta_steps(delta_.steps(m));
    if (const DeltaControl* const control = delta_.control(m)) {
      if (control->state().weight > 0) stats[m].set_delta_cost(control->state().cost);
      stats[m].set_delta_kappa(control->state().integral);
      stats[m].set_delta_calibration(control->state().calibration);
    }
  }
  return stats;
}

ActingParameters Datacom::GetActingParameters(int member) const {
  const v1::Hyper& hyper = config_.members[member].hyper;
  ActingParameters parameters = SoftActorCritic::GetActingParameters(member);
  parameters.scalars = {
      {"delta", delta_.value(member)}, {"atacom_gain", hyper.atacom_gain()}, {"slack_beta", hyper.slack_beta()}};
  for (const std::string& row : config_.known) parameters.scalars["known_constraint." + row] = 1;
  AddConstraint(member, &parameters);
  return parameters;
}

void Datacom::AddConstraint(int member, ActingParameters* out) const {
  AddActingNet("constraint", member, out);
  out->scalars["risk_margin"] = GaussianRiskMargin(config_.members[member].hyper.accepted_risk());
}

State Datacom::Save() const {
  State state = SoftActorCritic::Save();
  state["delta"] = delta_.Save();
  return state;
}

void Datacom::Load(const State& state) {
  SoftActorCritic::Load(state);  // checks all entries, including this one's size: it compares with Save
  delta_.Load(state.at("delta"));
  for (int m = 0; m < members_; ++m) UploadDelta(m);
}

std::vector<float> Datacom::ReadArray(int member, const std::string& name) const {
  if (name == "delta_raw") return {static_cast<float>(delta_.raw(member))};
  if (name == "grad.delta_raw") return {static_cast<float>(delta_.gradient(member))};
  return SoftActorCritic::ReadArray(member, name);
}

void Datacom::WriteArray(int member, const std::string& name, const std::vector<float>& values) {
  if (name != "delta_raw") return SoftActorCritic::WriteArray(member, name, values);
  if (values.size() != 1) throw std::invalid_argument("array 'delta_raw' has 1 value");
  delta_.set_raw(member, values[0]);
  UploadDelta(member);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
