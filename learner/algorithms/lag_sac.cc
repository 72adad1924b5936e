#include "learner/algorithms/lag_sac.h"

#include "common/safety/risk.h"
#include "learner/algorithms/register_algorithm.h"

namespace datacom::learner {
namespace {

const RegisterAlgorithm<LagSac> kRegistered("lag_sac");

}  // namespace

LagSac::LagSac(const AlgorithmConfig& config, const std::vector<std::string>& cost_nets)
    : SoftActorCritic(config), cost_kernels_(kernels_->Group<CostKernels>()) {
  DeclareCritics();
  cost_critics_.Declare(cost_nets, CriticKind::kPlain, config_, &layout_);
  MirrorTargets(0, layout_.size());
  DeclareActor();
  multiplier_raw_ = layout_.AddScalar("multiplier_raw");
  Build();
  MakeWorkspace();
  now_.u = NowAction();  // the sample is executed, so it is written into the critics' input
  next_.u = NextAction();
  cost_critics_.MakeWorkspace(config_, /*target_first=*/0, block_, kernels_.get());
  multiplier_optimizer_ =
      NewOptimizer("multiplier", /*gradient_norm_field=*/0, multiplier_raw_, 1, &v1::Hyper::multiplier_lr);
  cost_optimizer_ = NewOptimizer("cost_critic", v1::MemberEpoch::kConstraintGradientNormFieldNumber,
                                 cost_critics_.first(), cost_critics_.size(), &v1::Hyper::constraint_lr);
  StepWithPolicy(multiplier_optimizer_);
  StepWithValues(cost_optimizer_);
  cost_loss_ = NewStatistic(v1::MemberEpoch::kConstraintLossFieldNumber);
  mean_cost_ = NewStatistic(v1::MemberEpoch::kConstraintMeanFieldNumber);
  damping_ = NewScalar(&v1::Hyper::cost_damping);
  limit_ = NewScalar([this](const v1::Hyper& hyper) {
    return DiscountedBudget(hyper.cost_budget(), config_.horizon, config_.discount);
  });
  price_ = kernels_->NewDoubles(block_, 1, 1);
  cost_ = kernels_->NewFloats(block_, batch_, 1);
  y_ = kernels_->NewFloats(block_, batch_, 1);
}

void LagSac::LoadBatch(const Batch& batch) {
  LoadTransitions(batch);
  kernels_->Upload(BlockOf(batch.cost, batch_), cost_);
}

// Price and gradient of the multiplier are computed before anything is stepped.
void LagSac::PolicyGradients() {
  SampleNow();
  EvaluateActor();
  AddPricedCost();
  ActorGradient(action_gradient());
  TemperatureGradient();
  CheckGradient(multiplier_optimizer_);
}

void LagSac::EvaluateStored() {
  SoftActorCritic::EvaluateStored();
  cost_critics_.EvaluateStored(parameters(), critic_input());
  kernels_->RowMean(StoredCost(), mean_cost_.value);
}

void LagSac::ValueGradients() {
  SampleNext();
  CriticGradient();
  CostCriticGradient();
}

void LagSac::AddPricedCost() {
  cost_critics_.Evaluate(parameters(), critic_input());
  kernels_->RowMean(StoredCost(), mean_cost_.value);
  cost_kernels_->Multiplier(MultiplierRaw(parameters()), mean_cost_.value, Block(limit_), Block(damping_), price_,
                            MultiplierRaw(gradients()));
  critic_kernels_->WeightedMean(ExecutedCost(), price_, cost_critics_.d_out(0), policy_loss_.value);
  SpreadCostGradient();
  cost_critics_.ActionGradient(parameters(), cost_critics_.nets(), /*add=*/true, action_gradient());
}

void LagSac::CostCriticGradient() {
  cost_critics_.EvaluateTargets(targets(), critic_input());
  CostLoss(cost_, cost_loss_.value);
  cost_critics_.ParameterGradient(parameters(), critic_input(), gradients());
  CheckAndRecordLoss(cost_loss_);
  Record(mean_cost_);
  CheckGradient(cost_optimizer_);
}

void LagSac::CostLoss(const FloatView& cost, const DoubleView& loss) {
  cost_kernels_->CostTarget(cost, critic_input().absorbing, cost_critics_.next(0), config_.discount, y_);
  kernels_->SetZero(loss);
  critic_kernels_->SquaredLoss(cost_critics_.stored(0), y_, 1, cost_critics_.d_out(0), loss);
}

Stats LagSac::GetStats() const {
  Stats stats = SoftActorCritic::GetStats();
  for (int m = 0; m < members_; ++m) stats[m].set_multiplier(Softplus(ReadArray(m, "multiplier_raw")[0]));
  return stats;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
