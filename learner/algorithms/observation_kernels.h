// Normalised observations (docs/algorithms.md 1.6 and 18.3).
#ifndef DATACOM_LEARNER_ALGORITHMS_OBSERVATION_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_OBSERVATION_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

// Statistics of all observations so far, per entry: mean, sum of squared deviations from it, and the largest deviation
// from the mean of its time.
struct ObservationStatistics {
  DoubleView count;                 // [members, 1, 1]
  DoubleView mean, squares, reach;  // [members, 1, observation]
  ObservationStatistics Members(int first, int members) const {
    return {count.Members(first, members), mean.Members(first, members), squares.Members(first, members),
            reach.Members(first, members)};
  }
};

// Lower bounds of a standard deviation: `least`, and the largest deviation divided by `reach`, so that no normalised
// observation was farther from 0 than this.
struct LeastDeviation {
  double least = 0, reach = 0;
};

inline constexpr double kNoLimit = 1e30;  // of normalised observations, and of their reach

class ObservationKernels : public KernelGroup {
 public:
  // out = clamp((raw - mean) / deviation, -limit, limit), NaN where raw is not finite. mean, deviation: [members, 1,
  // observation]. out may be raw.
  virtual void Normalise(const FloatView& raw, const FloatView& mean, const FloatView& deviation, double limit,
                         const FloatView& out) = 0;
  // Adds the rows to the statistics of active members, and sets mean and standard deviation to what they say. The
  // latter divides by count - 1 and has the bounds. Members with fewer than two observations keep both.
  virtual void AddObservations(const FloatView& raw, const DoubleView& active, const LeastDeviation& bounds,
                               const ObservationStatistics& statistics, const FloatView& mean,
                               const FloatView& deviation) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_OBSERVATION_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
