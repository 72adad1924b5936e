// The algorithm, which the learner loads: SAC on the reward minus the cost above 0.
#include <algorithm>

#include "learner/algorithms/register_algorithm.h"
#include "learner/algorithms/sac.h"

namespace pendulum {
namespace {

class BrakedSac : public datacom::learner::Sac {
 public:
  using Sac::Sac;

 protected:
  void LoadBatch(const datacom::learner::Batch& batch) override {
    priced_ = batch;
    for (size_t i = 0; i < priced_.reward.size(); ++i) priced_.reward[i] -= std::max(0.0f, priced_.cost[i]);
    Sac::LoadBatch(priced_);
  }

 private:
  datacom::learner::Batch priced_;
};

const datacom::learner::RegisterAlgorithm<BrakedSac> kRegistered("braked_sac");

}  // namespace
}  // namespace pendulum
// SPDX-License-Identifier: Apache-2.0
