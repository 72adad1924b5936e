#include "learner/algorithms/minibatch_order.h"

#include <numeric>
#include <utility>

#include "learner/nn/named_stream.h"

namespace datacom::learner {

void MinibatchOrder(uint64_t run_seed, uint64_t member_seed, uint64_t epoch, int pass, std::vector<int>* order) {
  NamedStream stream(NamedKey("learner.minibatches", {run_seed, member_seed, epoch, static_cast<uint64_t>(pass)}));
  std::iota(order->begin(), order->end(), 0);
  for (size_t left = order->size(); left > 1; --left) {
    const size_t chosen = static_cast<size_t>(stream.Uniform() * static_cast<double>(left));
    std::swap((*order)[left - 1], (*order)[chosen]);
  }
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
