#include "learner/served_state.h"

#include "common/config/experiment.h"
#include "learner/algorithm_setup.h"

namespace datacom::learner {
namespace {

Evaluations::Options EvaluationOptions(const RunIdentity& run, const Clock& clock) {
  Evaluations::Options options;
  options.clock = &clock;
  options.episodes = run.experiment.run().eval_episodes();
  options.incarnation = run.incarnation;
  options.experiment = PrintExperiment(run.experiment);
  return options;
}

}  // namespace

ServedState::ServedState(const RunIdentity& run, const std::string& run_dir, const Clock& clock)
    : snapshots(run.experiment.members_size()),
      policies(run_dir + "/policies"),
      evaluations(EvaluationOptions(run, clock)),
      status(InitialInfo(run.experiment, run.run_id, run.incarnation), &clock) {}

}  // namespace datacom::learner
