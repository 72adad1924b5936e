// Keeps the mean and standard deviation of each entry of the observations that updates have read, and normalises with
// them (docs/algorithms.md 1.6 and 18.3). Both are arrays of the member's block, "observation.mean" and
// "observation.std", so that they are saved with it. An update reads them as the updates before left them. The owner
// registers the statistics, which are saved too. Not thread-safe; on the CPU only Make allocates.
#ifndef DATACOM_LEARNER_ALGORITHMS_OBSERVATION_NORMALISER_H_
#define DATACOM_LEARNER_ALGORITHMS_OBSERVATION_NORMALISER_H_

#include "learner/algorithms/observation_kernels.h"
#include "learner/nn/parameter_layout.h"

namespace datacom::learner {

class ObservationNormaliser {
 public:
  // Before the layout is built.
  void Declare(int observation, ParameterLayout* layout) {
    observation_ = observation;
    mean_ = static_cast<int>(layout->AddVector("observation.mean", observation, 0));
    deviation_ = static_cast<int>(layout->AddVector("observation.std", observation, 1));
  }
  // reach: no normalised observation that was added is farther from 0; kNoLimit: no bound.
  void Make(int members, double reach, Kernels* kernels) {
    bounds_ = {kLeastDeviation, reach};
    kernels_ = kernels->Group<ObservationKernels>();
    statistics_ = {kernels->NewDoubles(members, 1, 1), kernels->NewDoubles(members, 1, observation_),
                   kernels->NewDoubles(members, 1, observation_), kernels->NewDoubles(members, 1, observation_)};
  }
  const ObservationStatistics& statistics() const { return statistics_; }  // [members]

  // parameters: the block of the current members. out may be raw.
  void Normalise(const FloatView& parameters, const FloatView& raw, double limit, const FloatView& out) const {
    kernels_->Normalise(raw, Mean(parameters), Deviation(parameters), limit, out);
  }

  // Adds the rows of active members; `statistics`, `active`: of the current members.
  void Add(const FloatView& parameters, const FloatView& raw, const DoubleView& active,
           const ObservationStatistics& statistics) const {
    kernels_->AddObservations(raw, active, bounds_, statistics, Mean(parameters), Deviation(parameters));
  }

 private:
  static constexpr double kLeastDeviation = 1e-2;  // of raw observations

  FloatView Mean(const FloatView& parameters) const { return parameters.Cols(mean_, observation_); }
  FloatView Deviation(const FloatView& parameters) const { return parameters.Cols(deviation_, observation_); }

  int observation_ = 0, mean_ = 0, deviation_ = 0;
  LeastDeviation bounds_;
  ObservationKernels* kernels_ = nullptr;
  ObservationStatistics statistics_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_OBSERVATION_NORMALISER_H_
// SPDX-License-Identifier: Apache-2.0
