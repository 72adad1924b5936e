#include "learner/algorithms/rcpo.h"

#include <limits>

#include "learner/algorithms/register_algorithm.h"

namespace datacom::learner {
namespace {

const RegisterAlgorithm<Rcpo> kRegistered("rcpo");

constexpr int kSolverSteps = 15;

}  // namespace

Rcpo::Rcpo(const AlgorithmConfig& config) : OnPolicy(config, /*keep_activations=*/true) {
  const int size = static_cast<int>(actor_end_);
  for (FloatView* vector : {&solve_.x, &solve_.residual, &solve_.direction, &solve_.product, &chunk_gradient_}) {
    *vector = kernels_->NewFloats(block_, 1, size);
  }
  solve_.squared_residual = kernels_->NewDoubles(block_, 1, 1);
  solve_.running = kernels_->NewDoubles(block_, 1, 1);
  tangent_ = kernels_->NewTape(mean_, block_, tape(0).out.rows);
  damping_ = NewScalar(&v1::Hyper::fisher_damping);
  step_length_ = NewScalar(&v1::Hyper::target_kl);
  unclipped_ = kernels_->NewDoubles(block_, 1, 1, std::numeric_limits<double>::infinity());
}

void Rcpo::Learn() {
  kernels_->Run(kOwn, [this] { NaturalStep(); });
  for (int pass = 0; pass < static_cast<int>(config_.learner.passes()) && Learning(); ++pass) Pass(pass);
}

void Rcpo::NaturalStep() {
  PolicyGradient();
  CheckAndRecordLoss(policy_loss_);
  CheckGradient(actor_optimizer_);
  Record(actor_optimizer_.gradient_norm);
  on_policy_kernels_->BeginSolve(gradients().Cols(0, static_cast<int>(actor_end_)), solve_);
  for (int i = 0; i < kSolverSteps; ++i) {
    FisherProduct(solve_.direction, solve_.product);
    on_policy_kernels_->ContinueSolve(solve_);
  }
  FisherProduct(solve_.x, solve_.product);
  on_policy_kernels_->NaturalStep(solve_.x, solve_.product, Block(step_length_), Block(active_),
                                  parameters().Cols(0, static_cast<int>(actor_end_)));
}

void Rcpo::PolicyGradient() {
  for (int i = 0; i < chunks(); ++i) {
    const FloatView d_mean = d_mean_.Rows(0, tape(i).out.rows);
    on_policy_kernels_->SurrogateLoss({tape(i).out, LogStd(parameters())}, ActedOf(ChunkOf(rows_, i)), unclipped_,
                                      1.0 / rows_per_epoch_, /*add=*/i > 0, d_mean, LogStd(gradients()),
                                      policy_loss_.value);
    CollectGradient(i, gradients());
  }
}

void Rcpo::FisherProduct(const FloatView& direction, const FloatView& out) {
  const int n = config_.action_dim;
  for (int i = 0; i < chunks(); ++i) {
    const int rows = tape(i).out.rows;
    kernels_->Tangent(parameters(), direction, mean_, ObservationOf(ChunkOf(rows_, i)), tape(i), tangent_);
    on_policy_kernels_->Curvature(tangent_.out.Rows(0, rows), LogStd(parameters()),
                                  1 / (static_cast<double>(rows_per_epoch_) * n), d_mean_.Rows(0, rows));
    CollectGradient(i, out);
  }
  on_policy_kernels_->FinishProduct(direction, static_cast<int>(log_std_), 2.0 / n, Block(damping_), out);
}

void Rcpo::CollectGradient(int chunk, const FloatView& to) {
  const FloatView d_mean = d_mean_.Rows(0, tape(chunk).out.rows);
  kernels_->Adjoint(parameters(), mean_, d_mean, tape(chunk));
  kernels_->ParameterGradient(mean_, ObservationOf(ChunkOf(rows_, chunk)), d_mean, tape(chunk), chunk_gradient_);
  on_policy_kernels_->Collect(MeanPart(chunk_gradient_), /*add=*/chunk > 0, MeanPart(to));
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
