#include "learner/algorithms/analytic_atacom.h"

#include "learner/algorithms/register_algorithm.h"

namespace datacom::learner {
namespace {

const RegisterAlgorithm<AnalyticAtacom> kInvariant("atacom_fi");
const RegisterAlgorithm<AnalyticAtacom> kNotInvariant("atacom_nfi");

}  // namespace

ActingParameters AnalyticAtacom::GetActingParameters(int member) const {
  ActingParameters parameters = Sac::GetActingParameters(member);
  parameters.scalars = {{"atacom_gain", config_.members[member].hyper.atacom_gain()},
                        {"slack_beta", config_.members[member].hyper.slack_beta()}};
  return parameters;
}

}  // namespace datacom::learner
