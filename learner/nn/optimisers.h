// Steps of optimisers, statistics of them, and copies that undo a step. Scalars per member, such as `active` (0 once
// the member has diverged), are [members, 1, 1].
#ifndef DATACOM_LEARNER_NN_OPTIMISERS_H_
#define DATACOM_LEARNER_NN_OPTIMISERS_H_

#include "learner/nn/view.h"

namespace datacom::learner {

// One optimiser, over a range of each member's block.
struct AdamRange {
  FloatView parameters, gradients, first_moment, second_moment;  // [members, 1, range]
  DoubleView learning_rate, steps, active;
};

class Optimisers {
 public:
  virtual ~Optimisers() = default;

  // A step of Adam (betas 0.9 and 0.999, eps 1e-8) for active members. Their gradients are finite (GradientNorm).
  virtual void Adam(const AdamRange& range) = 0;
  virtual void Polyak(const FloatView& source, double tau, const DoubleView& active, const FloatView& target) = 0;
  // Euclidean norm of a gradient [members, 1, n]. Sets active = 0 if an entry is not finite.
  virtual void GradientNorm(const FloatView& gradient, const DoubleView& norm, const DoubleView& active) = 0;
  virtual void DeactivateUnlessFinite(const DoubleView& value, const DoubleView& active) = 0;  // sets active = 0

  virtual void SetZero(const DoubleView& value) = 0;
  virtual void RowMean(const DoubleView& rows, const DoubleView& mean) = 0;  // [members, rows, 1] -> [members, 1, 1]
  virtual void RowMean(const FloatView& rows, const DoubleView& mean) = 0;
  virtual void Accumulate(const DoubleView& value, double sign, const DoubleView& active,
                          const DoubleView& sum) = 0;  // sum [members, 1, 2]: total, count
  // least [members, 1, 2]: the smallest value of an active member so far, and the number of values.
  virtual void AccumulateLeast(const DoubleView& value, const DoubleView& active, const DoubleView& least) = 0;
};

// Copies of what a step changes.
class Undo {
 public:
  virtual ~Undo() = default;

  virtual void Copy(const FloatView& from, const FloatView& to) = 0;
  virtual void Copy(const DoubleView& from, const DoubleView& to) = 0;
  // Copies the members that are not active.
  virtual void Restore(const FloatView& from, const DoubleView& active, const FloatView& to) = 0;
  virtual void Restore(const DoubleView& from, const DoubleView& active, const DoubleView& to) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_OPTIMISERS_H_
// SPDX-License-Identifier: Apache-2.0
