// "toy", an algorithm for tests only: SAC, a net that is fitted to the cost of a transition by a loss of its own,
// weighted by hyper.toy_weight, and an acting rule of its own that reads this net (toy_rule.cc).
#include "learner/algorithms/register_algorithm.h"
#include "learner/algorithms/sac.h"
#include "tests/learner/toy/toy_kernels.h"

namespace datacom::learner {
namespace {

class ToyAlgorithm : public Sac {
 public:
  explicit ToyAlgorithm(const AlgorithmConfig& config)
      : Sac(config, Unbuilt()), toy_kernels_(kernels_->Group<ToyKernels>()) {
    const int64_t first = layout_.size();
    cost_model_ = layout_.AddMlp("cost_model", Widths(config_.obs_dim, config_.network.constraint_hidden(), 1),
                                 Activation::kRelu, WeightInit());
    Finish();
    cost_optimizer_ = NewOptimizer("cost_model", v1::MemberEpoch::kConstraintGradientNormFieldNumber, first,
                                   layout_.size() - first, &v1::Hyper::constraint_lr);
    StepWithValues(cost_optimizer_);
    weight_ = NewScalar(&v1::Hyper::toy_weight);
    cost_loss_ = NewStatistic(v1::MemberEpoch::kConstraintLossFieldNumber);
    mean_prediction_ = NewStatistic(v1::MemberEpoch::kToyPredictionFieldNumber);
    tape_ = kernels_->NewTape(cost_model_, block_, batch_);
    cost_ = kernels_->NewFloats(block_, batch_, 1);
    d_prediction_ = kernels_->NewFloats(block_, batch_, 1);
  }

 protected:
  void Publish(int member, const HostParameters& parameters, ActingParameters* out) const override {
    Sac::Publish(member, parameters, out);
    parameters.AddNet("cost_model", out);
    out->scalars = {{"toy_weight", config_.members[member].hyper.toy_weight()}};
  }

  void LoadBatch(const Batch& batch) override {
    Sac::LoadBatch(batch);
    kernels_->Upload(BlockOf(batch.cost, batch_), cost_);
  }

  void EvaluateState() override {
    kernels_->Forward(parameters(), cost_model_, Observation(), tape_);
    toy_kernels_->CostLoss(tape_.out, cost_, Block(weight_), d_prediction_, cost_loss_.value);
    CheckAndRecordLoss(cost_loss_);
    kernels_->RowMean(tape_.out, mean_prediction_.value);
    Record(mean_prediction_);
    kernels_->Adjoint(parameters(), cost_model_, d_prediction_, tape_);
    kernels_->ParameterGradient(cost_model_, Observation(), d_prediction_, tape_, gradients());
    CheckGradient(cost_optimizer_);
  }

 private:
  FloatView Observation() const { return critic_input().rows.Rows(0, batch_).Cols(0, config_.obs_dim); }

  ToyKernels* const toy_kernels_;
  MlpLayout cost_model_;
  Optimizer cost_optimizer_;
  DoubleView weight_;
  Statistic cost_loss_, mean_prediction_;
  MlpTape tape_;
  FloatView cost_, d_prediction_;  // [block, B, 1]
};

const RegisterAlgorithm<ToyAlgorithm> kRegistered("toy");

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
