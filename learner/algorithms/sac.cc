#include "learner/algorithms/sac.h"

#include "learner/algorithms/register_algorithm.h"

namespace datacom::learner {
namespace {

const RegisterAlgorithm<Sac> kRegistered("sac");

}  // namespace

Sac::Sac(const AlgorithmConfig& config, Unbuilt /*tag*/) : SoftActorCritic(config) {
  DeclareCritics();
  MirrorTargets();
  DeclareActor();
}

void Sac::Finish() {
  Build();
  MakeWorkspace();
}

void Sac::PolicyGradients() {
  SampleNow();
  EvaluateActor();
  ActorGradient(action_gradient());
  TemperatureGradient();
}

void Sac::ValueGradients() {
  SampleNext();
  CriticGradient();
}

namespace {

// ATACOM+FI and ATACOM+nFI (docs/algorithms.md 8): SAC on tangent actions. The acting rule of the same name
// maps them by the task's known constraints when it acts; the learner does not. The replay holds the policy's action u.
// Costs are ignored.
class AnalyticAtacom : public Sac {
 public:
  explicit AnalyticAtacom(const AlgorithmConfig& config) : Sac(config) {}

 protected:
  void Publish(int member, const HostParameters& parameters, ActingParameters* out) const override {
    Sac::Publish(member, parameters, out);
    out->scalars = {{"atacom_gain", config_.members[member].hyper.atacom_gain()},
                    {"slack_beta", config_.members[member].hyper.slack_beta()}};
  }
};

const RegisterAlgorithm<AnalyticAtacom> kInvariant("atacom_fi");
const RegisterAlgorithm<AnalyticAtacom> kNotInvariant("atacom_nfi");

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
