// The order in which a pass over the rows of an epoch visits them: a shuffle that depends only on the seeds of run and
// member, the epoch and the pass. Pure function.
#ifndef DATACOM_LEARNER_ALGORITHMS_MINIBATCH_ORDER_H_
#define DATACOM_LEARNER_ALGORITHMS_MINIBATCH_ORDER_H_

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "learner/nn/named_stream.h"

namespace datacom::learner {

// Fills *order, whose size is the number of rows, with a permutation of its indices.
inline void MinibatchOrder(uint64_t run_seed, uint64_t member_seed, uint64_t epoch, int pass, std::vector<int>* order) {
  NamedStream stream(NamedKey("learner.minibatches", {run_seed, member_seed, epoch, static_cast<uint64_t>(pass)}));
  std::iota(order->begin(), order->end(), 0);
  for (size_t left = order->size(); left > 1; --left) {
    const size_t chosen = static_cast<size_t>(stream.Uniform() * static_cast<double>(left));
    std::swap((*order)[left - 1], (*order)[chosen]);
  }
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_MINIBATCH_ORDER_H_
// SPDX-License-Identifier: Apache-2.0
