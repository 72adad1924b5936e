// The loops' parts of critic_kernels.h: values and targets of one member, row by row, in float32.
#ifndef DATACOM_LEARNER_ALGORITHMS_TWIN_CPU_H_
#define DATACOM_LEARNER_ALGORITHMS_TWIN_CPU_H_

#include <cmath>

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

class MemberStep {
 public:
  MemberStep(const TargetStep& step, int member)
      : step_(step),
        member_(member),
        scale_(step.scale.at(member)),
        least_(step.least.at(member)),
        most_(step.most.at(member)),
        discount_(static_cast<float>(step.discount)) {}
  float At(int row, float next_value) const {
    const float left = discount_ * (1 - step_.absorbing.at(member_, row));
    const float y = std::fma(left, next_value, scale_ * step_.reward.at(member_, row));
    return y < least_ ? least_ : y > most_ ? most_ : y;
  }

 private:
  const TargetStep& step_;
  const int member_;
  float scale_, least_, most_, discount_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_TWIN_CPU_H_
// SPDX-License-Identifier: Apache-2.0
