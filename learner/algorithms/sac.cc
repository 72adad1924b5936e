#include "learner/algorithms/sac.h"

namespace datacom::learner {

Sac::Sac(const AlgorithmConfig& config, Unbuilt /*tag*/) : SoftActorCritic(config) {
  DeclareCritics();
  MirrorTargets(0, layout_.size());
  DeclareActor();
}

void Sac::Finish() {
  Build();
  MakeWorkspace();
  now_.u = NowAction();  // the sample is what is executed: it goes straight into the critics' input
  next_.u = NextAction();
}

void Sac::ImprovePolicy() {
  SampleNow();
  EvaluateActor();
  ActorStep(action_gradient());
  TemperatureStep();
}

void Sac::FitValues() {
  SampleNext();
  CriticStep();
  PolyakTargets();
}

ActingParameters Sac::GetActingParameters(int member) const {
  ActingParameters parameters;
  AddActingNet("actor", member, &parameters);
  return parameters;
}

}  // namespace datacom::learner
