// Draws from a recorded dataset instead of a replay: the data of pre-training.
//
// Every member draws from all rows of the dataset. The batch of a member is a pure function of run seed, member seed,
// pre-training update and dataset. Not thread-safe; blocks nowhere, except that OpenPretraining reads files.
#ifndef DATACOM_LEARNER_DATASET_DRAWS_H_
#define DATACOM_LEARNER_DATASET_DRAWS_H_

#include <deque>
#include <memory>

#include "common/rpc/replay_client.h"
#include "learner/algorithms/algorithm.h"
#include "learner/batch_decoder.h"
#include "learner/prefetch.h"
#include "learner/run_settings.h"

namespace datacom {
class Dataset;
}  // namespace datacom

namespace datacom::learner {

// Update u of the stream is pre-training update u. Next needs a request and never waits, so there is nothing to cancel.
class DatasetDraws : public DrawStream {
 public:
  DatasetDraws(std::shared_ptr<const Dataset> dataset, const AlgorithmConfig& config);
  void Request(uint64_t update) override { requests_.push_back(update); }
  void Announce(uint64_t) override {}
  absl::StatusOr<v1::DrawReply> Next(std::chrono::milliseconds timeout) override;
  void Cancel() override {}

 private:
  const std::shared_ptr<const Dataset> dataset_;
  const AlgorithmConfig config_;
  std::deque<uint64_t> requests_;
};

// The batches of a run's pre-training updates after the first `done` ones; null if there are none. Reads the
// dataset, with the errors of Dataset::Read. `dynamics` is null if the algorithm needs none.
absl::StatusOr<std::unique_ptr<Prefetch>> OpenPretraining(const RunSettings& settings, const RowSchema& schema,
                                                          const AlgorithmConfig& config,
                                                          std::shared_ptr<const ControlAffine> dynamics,
                                                          const KnownRows& known, uint64_t done);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_DATASET_DRAWS_H_
// SPDX-License-Identifier: Apache-2.0
