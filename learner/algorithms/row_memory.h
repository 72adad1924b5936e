// All rows of each member that an algorithm has been given, in host memory: for algorithms that learn from what they
// keep instead of from drawn batches. Once `capacity` rows are held, a new row replaces the oldest.
//
// Not thread-safe. Allocates in the constructor only.
#ifndef DATACOM_LEARNER_ALGORITHMS_ROW_MEMORY_H_
#define DATACOM_LEARNER_ALGORITHMS_ROW_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

class RowMemory {
 public:
  RowMemory(const AlgorithmConfig& config, int capacity);

  // The rows of one update, of all members.
  void Append(const Batch& batch);

  // The rows of a member that do not end an episode, oldest first; *rows has room for `capacity`.
  void Continuing(int member, std::vector<int>* rows) const;
  const float* observation(int member, int row) const { return Row(member, row); }
  const float* action(int member, int row) const { return Row(member, row) + obs_; }
  float reward(int member, int row) const { return Row(member, row)[obs_ + actions_]; }
  const float* next_observation(int member, int row) const { return Row(member, row) + obs_ + actions_ + 1; }

  // For a State: the rows of the members one after another. The size depends only on the capacity.
  std::string Save() const;
  void Load(const std::string& bytes, uint64_t appended);  // `appended`: rows of each member so far

 private:
  const float* Row(int member, int row) const {
    return rows_.data() + (static_cast<size_t>(member) * capacity_ + row) * width_;
  }

  const int members_, first_, obs_, actions_, per_update_, capacity_, width_;
  uint64_t appended_ = 0;    // rows of each member
  std::vector<float> rows_;  // [members, capacity, width]: s, a, r, s', whether it is the last of an episode
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_ROW_MEMORY_H_
// SPDX-License-Identifier: Apache-2.0
