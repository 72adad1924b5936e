#include "learner/served_state.h"

#include "common/base/version.h"
#include "common/config/experiment.h"
#include "learner/schedule.h"

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

// The state of a learner that has not started yet.
v1::LearnerInfo InitialInfo(const RunIdentity& run) {
  const v1::Experiment& resolved = run.experiment;
  v1::LearnerInfo info;
  info.set_run_id(run.run_id);
  info.set_build(BuildName());
  info.set_incarnation(run.incarnation);
  info.set_target_update(Schedule::Of(resolved).last_update());
  info.set_pretrain_target(resolved.pretrain().updates());
  info.set_phase("connecting");
  info.set_device(resolved.learner().device());
  for (int member = 0; member < resolved.members_size(); ++member) {
    v1::MemberProgress* progress = info.add_members();
    progress->set_member(member);
    progress->set_seed(resolved.members(member).seed());
    progress->set_status("ok");
  }
  return info;
}

}  // namespace

ServedState::ServedState(const RunIdentity& run, const std::string& run_dir, const Clock& clock)
    : snapshots(run.experiment.members_size()),
      policies(run_dir + "/policies"),
      evaluations(EvaluationOptions(run, clock)),
      status(InitialInfo(run), &clock) {}

}  // namespace datacom::learner
