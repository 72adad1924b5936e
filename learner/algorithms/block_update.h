// An update that copies each block's part of the batch into a workspace and then computes it by one sequence of kernel
// calls: SAC's family and TD3. Not thread-safe.
#ifndef DATACOM_LEARNER_ALGORITHMS_BLOCK_UPDATE_H_
#define DATACOM_LEARNER_ALGORITHMS_BLOCK_UPDATE_H_

#include <functional>

#include "learner/algorithms/population.h"

namespace datacom::learner {

class BlockUpdate : public Population {
 public:
  void Update(const Batch& batch) override { RunBlocks(batch, Plan(), compute_); }

 protected:
  explicit BlockUpdate(const AlgorithmConfig& config) : Population(config), compute_([this] { Compute(); }) {}

  virtual void LoadBatch(const Batch& batch) = 0;  // copies the block's rows of the batch into the workspace
  virtual void Compute() = 0;                      // the update of the block
  // Names the sequence of kernel calls that Compute will issue (Kernels::Run), for algorithms with several.
  virtual int Plan() const { return 0; }
  // Loads and computes each block in turn. One `plan` always issues the same kernel calls (Kernels::Run).
  void RunBlocks(const Batch& batch, int plan, const std::function<void()>& compute) {
    EachBlock([&] {
      kernels_->Run(
          plan, [this, &batch] { LoadBatch(batch); }, compute);
    });
  }

 private:
  const std::function<void()> compute_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_BLOCK_UPDATE_H_
// SPDX-License-Identifier: Apache-2.0
