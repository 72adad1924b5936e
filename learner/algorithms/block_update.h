// An update that copies each block's part of the batch into a workspace and then computes it by one sequence of kernel
// calls: SAC's family and TD3. Not thread-safe.
//
// Losses and gradients are checked together, by FreezeUnlessFinite, and statistics are counted together at the end. So
// a member that an update freezes does not count that update.
#ifndef DATACOM_LEARNER_ALGORITHMS_BLOCK_UPDATE_H_
#define DATACOM_LEARNER_ALGORITHMS_BLOCK_UPDATE_H_

#include <functional>
#include <vector>

#include "learner/algorithms/population.h"

namespace datacom::learner {

class BlockUpdate : public Population {
 public:
  void Update(const Batch& batch) override {
    RunBlocks(batch, Plan(), [this] { Compute(); });
  }

 protected:
  explicit BlockUpdate(const AlgorithmConfig& config);

  virtual void LoadBatch(const Batch& batch) = 0;  // copies the block's rows of the batch into the workspace
  // The update of the block. Calls FreezeUnlessFinite before the first Step and before UndoWhereInactive.
  virtual void Compute() = 0;
  // Names the sequence of kernel calls that Compute will issue (Kernels::Run), for algorithms with several.
  virtual int Plan() const { return 0; }
  // Loads and computes each block in turn. One `plan` always issues the same kernel calls (Kernels::Run).
  void RunBlocks(const Batch& batch, int plan, const std::function<void()>& compute);

  void Check(const Statistic& /*statistic*/) final {}  // FreezeUnlessFinite does
  void Record(const Statistic& statistic) final { recorded_.push_back(statistic); }
  // Makes members inactive if a value that this update has computed is not finite.
  void FreezeUnlessFinite() { kernels_->DeactivateUnlessFinite(values(), Block(active_)); }

 private:
  void CountRecorded();

  std::vector<Statistic> recorded_;  // by this update of the block
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_BLOCK_UPDATE_H_
// SPDX-License-Identifier: Apache-2.0
