// The order in which a pass over the rows of an epoch visits them: a shuffle that depends only on the seeds of run and
// member, the epoch and the pass. Pure function.
#ifndef DATACOM_LEARNER_ALGORITHMS_MINIBATCH_ORDER_H_
#define DATACOM_LEARNER_ALGORITHMS_MINIBATCH_ORDER_H_

#include <cstdint>
#include <vector>

namespace datacom::learner {

// Fills *order, whose size is the number of rows, with a permutation of its indices.
void MinibatchOrder(uint64_t run_seed, uint64_t member_seed, uint64_t epoch, int pass, std::vector<int>* order);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_MINIBATCH_ORDER_H_
// SPDX-License-Identifier: Apache-2.0
