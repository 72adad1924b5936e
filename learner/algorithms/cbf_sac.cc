// CBF-SAC (docs/algorithms.md 13): SAC whose actions the acting rule filters by a learned control barrier
// function V(q), safe where V <= 0. V is fitted to be below -margin where the cost is not positive and above margin
// where it is, and so that filtering the stored actions does not relax the filter's constraint. The replay holds the
// policy's action before the filter.
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "learner/algorithms/barrier_kernels.h"
#include "learner/algorithms/register_algorithm.h"
#include "learner/algorithms/sac.h"

namespace datacom::learner {
namespace {

class CbfSac : public Sac {
 public:
  explicit CbfSac(const AlgorithmConfig& config)
      : Sac(config, Unbuilt()), barrier_kernels_(kernels_->Group<BarrierKernels>()) {
    if (config_.x_dim > 0) {
      throw std::invalid_argument("cbf_sac needs a constraint state that the action controls, but this task has " +
                                  std::to_string(config_.x_dim) + " uncontrolled entries (x_dim)");
    }
    const int64_t first = layout_.size();
    WeightInit init;
    init.xavier_gain = std::sqrt(2.0) / 5, init.last_bias = -1;
    barrier_ = layout_.AddMlp("barrier", Widths(config_.q_dim, config_.network.constraint_hidden(), 1),
                              Activation::kRelu, init);
    Finish();
    barrier_optimizer_ = NewOptimizer("barrier", v1::MemberEpoch::kConstraintGradientNormFieldNumber, first,
                                      layout_.size() - first, &v1::Hyper::constraint_lr);
    StepWithValues(barrier_optimizer_);
    barrier_loss_ = NewStatistic(v1::MemberEpoch::kConstraintLossFieldNumber);
    mean_barrier_ = NewStatistic(v1::MemberEpoch::kConstraintMeanFieldNumber);

    const int B = batch_, q = config_.q_dim, n = config_.action_dim;
    tape_ = kernels_->NewTape(barrier_, block_, B);
    tangent_ = kernels_->NewTape(barrier_, block_, B);
    const auto rows = [this, B](int cols) { return kernels_->NewFloats(block_, B, cols); };
    q_ = rows(q), slope_ = rows(q), d_value_ = rows(1), d_slope_ = rows(q);
    cost_ = rows(1), action_ = rows(n);
    f_ = kernels_->NewDoubles(block_, B, q), G_ = kernels_->NewDoubles(block_, B, q * n);
    ones_ = kernels_->NewFloats(block_, B, 1, 1);
    numbers_ = kernels_->NewDoubles(members_, 1, BarrierInput::kNumbers);
    std::vector<double> numbers;
    for (const MemberConfig& member : config_.members) {
      const v1::Hyper& hyper = member.hyper;
      numbers.insert(numbers.end(),
                     {hyper.barrier_margin(), hyper.barrier_safe_weight(), hyper.barrier_unsafe_weight(),
                      hyper.barrier_relaxation_weight(), hyper.relaxation_penalty(), hyper.barrier_decay()});
    }
    kernels_->Upload(numbers.data(), numbers_);
    box_ = NewActionBox();
  }

 protected:
  void LoadBatch(const Batch& batch) override {
    Sac::LoadBatch(batch);
    const int B = batch_, q = config_.q_dim, n = config_.action_dim;
    kernels_->Upload(BlockOf(batch.now.z, B * q), q_);
    kernels_->Upload(BlockOf(batch.now.f, B * q), f_);
    kernels_->Upload(BlockOf(batch.now.G, B * q * n), G_);
    kernels_->Upload(BlockOf(batch.cost, B), cost_);
    kernels_->Upload(BlockOf(batch.action, B * n), action_);
  }

  void Publish(int member, const HostParameters& parameters, ActingParameters* out) const override {
    Sac::Publish(member, parameters, out);
    parameters.AddNet("barrier", out);
    out->scalars = {{"barrier_decay", config_.members[member].hyper.barrier_decay()},
                    {"relaxation_penalty", config_.members[member].hyper.relaxation_penalty()}};
  }

  // The loss depends on V and dV/dq, so its gradient is of second order.
  void EvaluateState() override {
    kernels_->Forward(parameters(), barrier_, q_, tape_);
    kernels_->Adjoint(parameters(), barrier_, ones_, tape_);
    kernels_->InputGradient(parameters(), barrier_, tape_, 0, /*add=*/false, slope_);
    barrier_kernels_->BarrierLoss({tape_.out, slope_, f_, G_, action_, cost_, box_, Block(numbers_)}, d_value_,
                                  d_slope_, barrier_loss_.value);
    CheckAndRecordLoss(barrier_loss_);
    kernels_->RowMean(tape_.out, mean_barrier_.value);
    Record(mean_barrier_);
    kernels_->SlopeGradient(parameters(), barrier_, q_, d_value_, d_slope_, tape_, tangent_, gradients());
    CheckGradient(barrier_optimizer_);
  }

 private:
  BarrierKernels* const barrier_kernels_;
  MlpLayout barrier_;
  Optimizer barrier_optimizer_;
  Statistic barrier_loss_, mean_barrier_;
  MlpTape tape_, tangent_;
  FloatView q_;                                 // [block, B, q]
  FloatView slope_, ones_, d_value_, d_slope_;  // dV/dq; gradients of the loss for V and dV/dq
  FloatView cost_, action_;
  DoubleView f_, G_;
  DoubleView numbers_;  // [M, 1, BarrierInput::kNumbers]
  ActionBox box_;
};

const RegisterAlgorithm<CbfSac> kRegistered("cbf_sac");

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
