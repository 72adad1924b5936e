#include "learner/algorithms/analytic_atacom.h"

namespace datacom::learner {

ActingParameters AnalyticAtacom::GetActingParameters(int member) const {
  ActingParameters parameters = Sac::GetActingParameters(member);
  parameters.scalars = {{"atacom_gain", config_.members[member].atacom_gain},
                        {"slack_beta", config_.members[member].slack_beta}};
  return parameters;
}

}  // namespace datacom::learner
