#include "learner/algorithms/block_update.h"

#include <algorithm>

namespace datacom::learner {

BlockUpdate::BlockUpdate(const AlgorithmConfig& config) : Population(config) { recorded_.reserve(kMostStatistics); }

void BlockUpdate::RunBlocks(const Batch& batch, int plan, const std::function<void()>& compute) {
  EachBlock([&] {
    kernels_->Run(
        plan, [this, &batch] { LoadBatch(batch); },
        [this, &compute] {
          kernels_->SetZero(values());  // they are of the update before, or of another block
          compute();
          CountRecorded();
        });
  });
}

// One kernel call counts adjacent rows; in these the smallest values come before sums.
void BlockUpdate::CountRecorded() {
  std::sort(recorded_.begin(), recorded_.end(), [](const Statistic& a, const Statistic& b) { return a.row < b.row; });
  const auto continues = [this](int i) {
    const Statistic &before = recorded_[i - 1], &own = recorded_[i];
    return own.row == before.row + 1 && (before.smallest || !own.smallest);
  };
  const int count = static_cast<int>(recorded_.size());
  for (int first = 0, end = 0; first < count; first = end) {
    int smallest = recorded_[first].smallest ? 1 : 0;
    for (end = first + 1; end < count && continues(end); ++end) smallest += recorded_[end].smallest ? 1 : 0;
    kernels_->Accumulate(RowsOf(recorded_[first].row, end - first, smallest), Block(active_));
  }
  recorded_.clear();
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
