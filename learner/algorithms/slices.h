// An algorithm whose members are divided among the workers of a team. Each slice is an algorithm of its own with a part
// of the members, its own kernels and its own workspace. One worker constructs it and updates it, so its memory stays
// in the caches of one core and close to it.
//
// Nothing that a member computes depends on other members, so numbers and state are the same as with one algorithm for
// all members. Not thread-safe; a call blocks until all slices are done.
#ifndef DATACOM_LEARNER_ALGORITHMS_SLICES_H_
#define DATACOM_LEARNER_ALGORITHMS_SLICES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

class Slices : public Algorithm {
 public:
  using Maker = std::function<std::unique_ptr<Algorithm>(const AlgorithmConfig&)>;
  // config.team is not null. Throws what `make` throws.
  Slices(const AlgorithmConfig& config, const Maker& make);

  void Update(const Batch& batch) override;
  void Pretrain(const Batch& batch) override;
  void ApplyEpisodes(const std::vector<EpisodeCosts>& episodes) override;
  Stats GetStats() const override;
  void ResetStats() override;
  std::vector<ActingParameters> GetActingParameters() const override;
  State Save() const override;
  void Load(const State& state) override;
  std::vector<std::string> shared_entries() const override { return slices_.front().algorithm->shared_entries(); }

 private:
  friend class ArrayAccess;  // of tests
  struct Slice {
    int first = 0, count = 0;  // members
    std::unique_ptr<Algorithm> algorithm;
  };
  // Calls body(slice) for all slices, each on its worker.
  template <class Body>
  void Each(const Body& body) const {
    team_->OnWorkers(static_cast<int>(slices_.size()), [&](int i) { body(slices_[i]); });
  }

  const std::shared_ptr<Team> team_;
  const int members_;
  std::vector<Slice> slices_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SLICES_H_
// SPDX-License-Identifier: Apache-2.0
