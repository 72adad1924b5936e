#include "tests/learner/toy/toy_algorithm.h"

#include "learner/algorithms/register_algorithm.h"

namespace datacom::learner {
namespace {

const RegisterAlgorithm<ToyAlgorithm> kRegistered("toy");

}  // namespace

ToyAlgorithm::ToyAlgorithm(const AlgorithmConfig& config)
    : Sac(config, Unbuilt()), toy_kernels_(kernels_->Group<ToyKernels>()) {
  const int64_t first = layout_.size();
  cost_model_ = layout_.AddMlp("cost_model", Widths(config_.obs_dim, config_.constraint_hidden, 1), Activation::kRelu,
                               WeightInit());
  Finish();
  cost_optimizer_ =
      NewOptimizer("cost_model", NetGroup::kConstraint, first, layout_.size() - first, &v1::Hyper::constraint_lr);
  StepWithValues(cost_optimizer_);
  cost_loss_ = NewStatistic();
  Register("stats.constraint_loss", cost_loss_.sum);
  tape_ = kernels_->NewTape(cost_model_, block_, batch_);
  cost_ = kernels_->NewFloats(block_, batch_, 1);
  d_prediction_ = kernels_->NewFloats(block_, batch_, 1);
}

void ToyAlgorithm::LoadBatch(const Batch& batch) {
  Sac::LoadBatch(batch);
  kernels_->Upload(BlockOf(batch.cost, batch_), cost_);
}

void ToyAlgorithm::EvaluateState() {
  kernels_->Forward(parameters(), cost_model_, Observation(), tape_);
  toy_kernels_->CostLoss(tape_.out, cost_, d_prediction_, cost_loss_.value);
  CheckAndRecordLoss(cost_loss_);
  kernels_->Adjoint(parameters(), cost_model_, d_prediction_, tape_);
  kernels_->ParameterGradient(cost_model_, Observation(), d_prediction_, tape_, gradients());
  CheckGradient(cost_optimizer_);
}

Stats ToyAlgorithm::GetStats() const {
  Stats stats = Sac::GetStats();
  stats.constraint_loss = Means(cost_loss_);
  return stats;
}

}  // namespace datacom::learner
