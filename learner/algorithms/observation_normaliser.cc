#include "learner/algorithms/observation_normaliser.h"

namespace datacom::learner {
namespace {

constexpr double kLeastDeviation = 1e-2;  // of raw observations

}  // namespace

void ObservationNormaliser::Declare(int observation, ParameterLayout* layout) {
  observation_ = observation;
  mean_ = static_cast<int>(layout->AddVector("observation.mean", observation, 0));
  deviation_ = static_cast<int>(layout->AddVector("observation.std", observation, 1));
}

void ObservationNormaliser::Make(int members, double reach, Kernels* kernels) {
  bounds_ = {kLeastDeviation, reach};
  kernels_ = kernels->Group<ObservationKernels>();
  statistics_ = {kernels->NewDoubles(members, 1, 1), kernels->NewDoubles(members, 1, observation_),
                 kernels->NewDoubles(members, 1, observation_), kernels->NewDoubles(members, 1, observation_)};
}

void ObservationNormaliser::Normalise(const FloatView& parameters, const FloatView& raw, double limit,
                                      const FloatView& out) const {
  kernels_->Normalise(raw, Mean(parameters), Deviation(parameters), limit, out);
}

void ObservationNormaliser::Add(const FloatView& parameters, const FloatView& raw, const DoubleView& active,
                                const ObservationStatistics& statistics) const {
  kernels_->AddObservations(raw, active, bounds_, statistics, Mean(parameters), Deviation(parameters));
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
