#include "learner/algorithms/feasibility.h"

#include <algorithm>
#include <vector>

namespace datacom::learner {

void Feasibility::MakeWorkspace(const AlgorithmConfig& config, int64_t target_first, int block, Kernels* kernels) {
  kernels_ = kernels;
  batch_ = config.batch_size, failures_ = config.failure_batch_size, z_dim_ = config.q_dim + config.x_dim;
  discount_ = config.discount, slice_first_ = config.slice_first;
  const int B = batch_, loss_rows = batch_ + failures_;
  z_ = kernels->NewFloats(block, B + loss_rows, z_dim_);
  next_z_ = kernels->NewFloats(block, loss_rows, z_dim_);
  cost_ = kernels->NewFloats(block, loss_rows, 1);
  absorbing_ = kernels->NewFloats(block, loss_rows, 1);
  failure_weight_ = kernels->NewDoubles(block, 1, 1);
  no_delta_ = kernels->NewDoubles(1, 1, 1);
  ones_ = kernels->NewFloats(block, B + loss_rows, 1);
  const std::vector<float> ones(static_cast<size_t>(block) * (B + loss_rows), 1.0f);
  kernels->Upload(ones.data(), ones_);
  k_ = kernels->NewDoubles(block, 2 * B, 1), J_ = kernels->NewDoubles(block, 2 * B, z_dim_);
  k_next_ = k_.Rows(0, B), J_next_ = J_.Rows(0, B), k_now_ = k_.Rows(B, B), J_now_ = J_.Rows(B, B);
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
  for (int m = 0; m < failure_weight_.members; ++m) {
    const double weight = batch.failure_weight[batch_member + m];
    kernels_->Upload(&weight, failure_weight_.Members(m, 1));
  }
}

void Feasibility::Risk(const FloatView& parameters, int member, const float* z, int rows, double* value) {
  const int chunk = 2 * batch_;
  for (int first = 0; first < rows; first += chunk) {
    const int count = std::min(chunk, rows - first);
    kernels_->Upload(z + static_cast<int64_t>(first) * z_dim_, z_.Members(0, 1).Rows(0, count));
    EvaluateRisk(parameters, member, count);
    kernels_->Download(k_.Members(0, 1).Rows(0, count), value + first);
  }
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
