#include "learner/algorithms/ppo_lag.h"

#include "learner/algorithms/register_algorithm.h"

namespace datacom::learner {
namespace {

const RegisterAlgorithm<PpoLag> kRegistered("ppo_lag");

}  // namespace

PpoLag::PpoLag(const AlgorithmConfig& config) : OnPolicy(config, /*keep_activations=*/false) {
  clip_ratio_ = NewScalar(&v1::Hyper::clip_ratio);
  target_kl_ = NewScalar(&v1::Hyper::target_kl);
  divergence_ = kernels_->NewDoubles(block_, 1, 1);
}

void PpoLag::Learn() {
  for (int pass = 0; pass < static_cast<int>(config_.learner.passes()) && Learning(); ++pass) {
    Pass(pass);
    kernels_->Run(kOwn, [this] { CheckDivergence(); });
  }
}

void PpoLag::Minibatch(const FloatView& rows) {
  CriticSteps(rows);
  PolicyStep(rows);
}

void PpoLag::PolicyStep(const FloatView& rows) {
  const FloatView x = ObservationOf(rows), mean = chunk_tape_.out.Rows(0, rows.rows);
  const FloatView d_mean = d_mean_.Rows(0, rows.rows);
  kernels_->Forward(parameters(), mean_, x, chunk_tape_);
  on_policy_kernels_->SurrogateLoss({mean, LogStd(parameters())}, ActedOf(rows), Block(clip_ratio_), 1.0 / rows.rows,
                                    /*add=*/false, d_mean, LogStd(gradients()), policy_loss_.value);
  kernels_->Adjoint(parameters(), mean_, d_mean, chunk_tape_);
  kernels_->ParameterGradient(mean_, x, d_mean, chunk_tape_, gradients());
  CheckAndRecordLoss(policy_loss_);
  CheckGradient(actor_optimizer_);
  on_policy_kernels_->Shorten(actor_optimizer_.gradient_norm.value, Block(clip_),
                              gradients().Cols(0, static_cast<int>(actor_end_)));
  Step(actor_optimizer_);
}

// Summed over the actions, mean over the rows.
void PpoLag::CheckDivergence() {
  kernels_->SetZero(divergence_);
  for (int i = 0; i < chunks(); ++i) {
    const FloatView x = ObservationOf(ChunkOf(rows_, i));
    kernels_->Forward(parameters(), mean_, x, chunk_tape_);
    on_policy_kernels_->AddDivergence({ChunkOf(acting_mean_, i), acting_log_std_},
                                      {chunk_tape_.out.Rows(0, x.rows), LogStd(parameters())}, 1.0 / rows_per_epoch_,
                                      divergence_);
  }
  on_policy_kernels_->StopBeyond(divergence_, Block(target_kl_), Block(active_), stopped_);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
