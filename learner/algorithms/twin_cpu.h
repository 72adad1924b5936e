// The values of a pair of critics (critic_kernels.h) of one member, row by row, in float32.
#ifndef DATACOM_LEARNER_ALGORITHMS_TWIN_CPU_H_
#define DATACOM_LEARNER_ALGORITHMS_TWIN_CPU_H_

#include "learner/algorithms/critic_kernels.h"

namespace datacom::learner {

// The shares of the smaller and the larger critic in the value of a pair.
class TwinWeights {
 public:
  TwinWeights(const TwinValues& twins, int member) : larger_(twins.larger.at(member)), smaller_(1 - larger_) {}
  // Whether a counts as the smaller one. A NaN does.
  static bool FirstIsSmaller(float a, float b) { return !(b < a || b != b); }
  float Value(float a, float b) const {
    const bool first = FirstIsSmaller(a, b);
    const float least = first ? a : b;
    return larger_ == 0 ? least : least + larger_ * ((first ? b : a) - least);
  }
  float smaller() const { return smaller_; }
  float larger() const { return larger_; }

 private:
  float larger_, smaller_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_TWIN_CPU_H_
// SPDX-License-Identifier: Apache-2.0
