#include "learner/algorithms/sac.h"

#include "learner/algorithms/register_algorithm.h"

namespace datacom::learner {
namespace {

const RegisterAlgorithm<Sac> kRegistered("sac");

}  // namespace

Sac::Sac(const AlgorithmConfig& config, Unbuilt /*tag*/) : SoftActorCritic(config) {
  DeclareCritics();
  MirrorTargets(0, layout_.size());
  DeclareActor();
}

void Sac::Finish() {
  Build();
  MakeWorkspace();
  now_.u = NowAction();  // the sample is executed, so it is written into the critics' input
  next_.u = NextAction();
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

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
