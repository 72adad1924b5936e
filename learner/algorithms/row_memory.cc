#include "learner/algorithms/row_memory.h"

#include <algorithm>
#include <cstring>

namespace datacom::learner {

RowMemory::RowMemory(const AlgorithmConfig& config, int capacity)
    : members_(static_cast<int>(config.members.size())),
      first_(config.slice_first),
      obs_(config.obs_dim),
      actions_(config.action_dim),
      per_update_(BatchRows(config)),
      capacity_(capacity),
      width_(2 * obs_ + actions_ + 2),
      rows_(static_cast<size_t>(members_) * capacity * width_) {}

void RowMemory::Append(const Batch& batch) {
  for (int m = 0; m < members_; ++m) {
    for (int i = 0; i < per_update_; ++i) {
      const size_t from = static_cast<size_t>(first_ + m) * per_update_ + i;
      float* to = const_cast<float*>(Row(m, static_cast<int>((appended_ + i) % capacity_)));
      to = std::copy_n(&batch.observation[from * obs_], obs_, to);
      to = std::copy_n(&batch.action[from * actions_], actions_, to);
      *to++ = batch.reward[from];
      to = std::copy_n(&batch.next_observation[from * obs_], obs_, to);
      *to = batch.last[from];
    }
  }
  appended_ += per_update_;
}

void RowMemory::Continuing(int member, std::vector<int>* rows) const {
  const auto held = static_cast<int>(std::min<uint64_t>(appended_, capacity_));
  const int oldest = appended_ > static_cast<uint64_t>(capacity_) ? static_cast<int>(appended_ % capacity_) : 0;
  rows->clear();
  for (int i = 0; i < held; ++i) {
    const int row = (oldest + i) % capacity_;
    if (Row(member, row)[width_ - 1] == 0) rows->push_back(row);
  }
}

std::string RowMemory::Save() const {
  return std::string(reinterpret_cast<const char*>(rows_.data()), rows_.size() * sizeof(float));
}

void RowMemory::Load(const std::string& bytes, uint64_t appended) {
  std::memcpy(rows_.data(), bytes.data(), rows_.size() * sizeof(float));
  appended_ = appended;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
