// ATACOM+FI and ATACOM+nFI (learner/algorithms/README.md 8): SAC on tangent actions. The acting rule of the same name
// maps them by the task's known constraints when it acts; the learner does not. The replay holds the policy's action u.
// Costs are ignored.
#ifndef DATACOM_LEARNER_ALGORITHMS_ANALYTIC_ATACOM_H_
#define DATACOM_LEARNER_ALGORITHMS_ANALYTIC_ATACOM_H_

#include <string>

#include "learner/algorithms/sac.h"

namespace datacom::learner {

class AnalyticAtacom : public Sac {
 public:
  explicit AnalyticAtacom(const AlgorithmConfig& config) : Sac(config) {}
  ActingParameters GetActingParameters(int member) const override;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_ANALYTIC_ATACOM_H_
