// LagSAC (docs/algorithms.md 10): soft actor-critic whose actor loss includes the expected discounted cost,
// weighted by a learned Lagrange multiplier. A cost critic on [s, a] estimates that cost. The policy's action is
// executed unchanged.
//
// WCSAC (docs/algorithms.md 11): LagSAC whose cost critic is a Gaussian over the discounted cost of [s, a].
// Multiplier, damping and actor use its CVaR at the accepted risk instead of the expectation.
#include <string>
#include <vector>

#include "common/safety/risk.h"
#include "learner/algorithms/cost_kernels.h"
#include "learner/algorithms/register_algorithm.h"
#include "learner/algorithms/soft_actor_critic.h"

namespace datacom::learner {
namespace {

class LagSac : public SoftActorCritic {
 public:
  explicit LagSac(const AlgorithmConfig& config) : LagSac(config, {"cost_critic"}) {}

 protected:
  LagSac(const AlgorithmConfig& config, const std::vector<std::string>& cost_nets)
      : SoftActorCritic(config), cost_kernels_(kernels_->Group<CostKernels>()) {
    DeclareCritics();
    cost_critics_.Declare(cost_nets, CriticKind::kPlain, config_, &layout_);
    MirrorTargets();
    DeclareActor();
    multiplier_raw_ = layout_.AddScalar("multiplier_raw");
    Build();
    MakeWorkspace();
    cost_critics_.MakeWorkspace(config_, block_, kernels_.get());
    cost_optimizer_ = NewOptimizer("cost_critic", v1::MemberEpoch::kConstraintGradientNormFieldNumber,
                                   cost_critics_.first(), cost_critics_.size(), &v1::Hyper::constraint_lr);
    multiplier_optimizer_ =
        NewOptimizer("multiplier", /*gradient_norm_field=*/0, multiplier_raw_, 1, &v1::Hyper::multiplier_lr);
    ShowParameters(v1::MemberEpoch::kMultiplierFieldNumber, multiplier_raw_, 1,
                   [](const double* raw, int) { return Softplus(*raw); });
    StepWithPolicy(multiplier_optimizer_);
    StepWithValues(cost_optimizer_);
    cost_loss_ = NewStatistic(v1::MemberEpoch::kConstraintLossFieldNumber);
    mean_cost_ = NewStatistic(v1::MemberEpoch::kConstraintMeanFieldNumber);
    damping_ = NewScalar(&v1::Hyper::cost_damping);
    limit_ = NewScalar([this](const v1::Hyper& hyper) {
      return DiscountedBudget(hyper.cost_budget(), config_.horizon, config_.learner.discount());
    });
    price_ = kernels_->NewDoubles(block_, 1, 1);
    cost_ = kernels_->NewFloats(block_, batch_, 1);
    y_ = kernels_->NewFloats(block_, batch_, 1);
  }

  void LoadBatch(const Batch& batch) override {
    LoadTransitions(batch);
    kernels_->Upload(BlockOf(batch.cost, batch_), cost_);
  }

  // Price and gradient of the multiplier are computed before anything is stepped.
  void PolicyGradients() override {
    SampleNow();
    EvaluateActor();
    AddPricedCost();
    ActorGradient(action_gradient());
    TemperatureGradient();
    CheckGradient(multiplier_optimizer_);
  }

  void EvaluateStored() override {
    SoftActorCritic::EvaluateStored();
    cost_critics_.EvaluateStored(parameters(), critic_input());
    kernels_->RowMean(StoredCost(), mean_cost_.value);
  }

  void ValueGradients() override {
    SampleNext();
    CriticGradient();
    CostCriticGradient();
  }

  // The cost critic's estimates at [s, executed] and [s, stored], [block, B, 1]; here its one output.
  virtual FloatView ExecutedCost() { return cost_critics_.executed(0); }
  virtual FloatView StoredCost() { return cost_critics_.stored(0); }
  // d_out(0) holds the gradient for ExecutedCost(); fills the gradients of the other outputs.
  virtual void SpreadCostGradient() {}

  // Loss of the stored rows and the outputs' gradients; the targets are evaluated already.
  virtual void CostLoss(const FloatView& cost, const DoubleView& loss) {
    cost_kernels_->CostTarget(cost, critic_input().absorbing, cost_critics_.next(0), config_.learner.discount(), y_);
    critic_kernels_->SquaredLoss(cost_critics_.stored(), y_, cost_critics_.d_out(0).AsRow(), loss);
  }

  CostKernels* const cost_kernels_;
  CriticEnsemble cost_critics_;

 private:
  FloatView MultiplierRaw(const FloatView& block) const { return block.Cols(static_cast<int>(multiplier_raw_), 1); }

  void AddPricedCost() {
    cost_critics_.Evaluate(parameters(), critic_input());
    kernels_->RowMean(StoredCost(), mean_cost_.value);
    cost_kernels_->Multiplier(MultiplierRaw(parameters()), mean_cost_.value, Block(limit_), Block(damping_), price_,
                              MultiplierRaw(gradients()));
    critic_kernels_->WeightedMean(ExecutedCost(), price_, cost_critics_.d_out(0), policy_loss_.value);
    SpreadCostGradient();
    cost_critics_.ActionGradient(parameters(), cost_critics_.nets(), /*add=*/true, action_gradient());
  }

  void CostCriticGradient() {
    cost_critics_.EvaluateTargets(targets(), critic_input());
    CostLoss(cost_, cost_loss_.value);
    cost_critics_.ParameterGradient(parameters(), critic_input(), gradients());
    CheckAndRecordLoss(cost_loss_);
    Record(mean_cost_);
    CheckGradient(cost_optimizer_);
  }

  int64_t multiplier_raw_ = 0;
  Optimizer multiplier_optimizer_, cost_optimizer_;
  Statistic cost_loss_, mean_cost_;
  DoubleView limit_, damping_;  // [M, 1, 1]
  DoubleView price_;            // [block, 1, 1]
  FloatView cost_, y_;          // [block, B, 1]
};

const RegisterAlgorithm<LagSac> kLagSac("lag_sac");

constexpr int kMean = 0, kSpread = 1;

class Wcsac : public LagSac {
 public:
  explicit Wcsac(const AlgorithmConfig& config) : LagSac(config, {"cost_critic.mean", "cost_critic.std"}) {
    margin_ = NewFloatScalar(config_, kernels_.get(),
                             [](const v1::Hyper& hyper) { return GaussianRiskMargin(hyper.accepted_risk()); });
    executed_cvar_ = kernels_->NewFloats(block_, batch_, 1);
    stored_cvar_ = kernels_->NewFloats(block_, batch_, 1);
    row_weight_ = kernels_->NewFloats(block_, batch_, 1, 1.0f / static_cast<float>(batch_));
  }

 protected:
  FloatView ExecutedCost() override {
    cost_kernels_->CostRisk(cost_critics_.executed(kMean), cost_critics_.executed(kSpread), Block(margin_),
                            executed_cvar_);
    return executed_cvar_;
  }

  FloatView StoredCost() override {
    cost_kernels_->CostRisk(cost_critics_.stored(kMean), cost_critics_.stored(kSpread), Block(margin_), stored_cvar_);
    return stored_cvar_;
  }

  void SpreadCostGradient() override {  // the gradient for the mean is the gradient for the CVaR
    cost_kernels_->CostRiskGradient(cost_critics_.d_out(kMean), cost_critics_.executed(kSpread), Block(margin_),
                                    cost_critics_.d_out(kSpread));
  }

  void CostLoss(const FloatView& cost, const DoubleView& loss) override {
    const GaussianTarget target{
        GaussianHead::kCost, cost_critics_.next(kMean), cost_critics_.next(kSpread), cost, critic_input().absorbing,
        row_weight_,         config_.learner.discount()};
    cost_kernels_->GaussianLoss(cost_critics_.stored(kMean), cost_critics_.stored(kSpread), target,
                                cost_critics_.d_out(kMean), cost_critics_.d_out(kSpread), loss);
  }

 private:
  FloatView margin_;                       // [M, 1, 1]
  FloatView executed_cvar_, stored_cvar_;  // [block, B, 1]
  FloatView row_weight_;                   // [block, B, 1]: all rows count
};

const RegisterAlgorithm<Wcsac> kWcsac("wcsac");

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
