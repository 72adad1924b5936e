#include "learner/served_state.h"

#include "common/base/version.h"
#include "learner/run_records.h"

namespace datacom::learner {
namespace {

// The state of a learner that has not started yet.
v1::LearnerInfo InitialInfo(const RunIdentity& run) {
  const RunSettings& settings = run.settings;
  v1::LearnerInfo info;
  info.set_run_id(run.run_id);
  info.set_build(BuildName());
  info.set_incarnation(run.incarnation);
  info.set_target_update(settings.schedule.last_update());
  info.set_pretrain_target(settings.resolved->pretrain().updates());
  info.set_phase("connecting");
  info.set_device(settings.resolved->learner().device());
  for (int member = 0; member < settings.member_count(); ++member) {
    v1::MemberProgress* progress = info.add_members();
    progress->set_member(member);
    progress->set_seed(settings.resolved->members(member).seed());
    progress->set_status(StatusOf(/*diverged=*/false, /*runaway=*/false, /*abandons=*/false, /*locked=*/false));
  }
  return info;
}

}  // namespace

void LearnerStatus::SetUpdate(uint64_t update) {
  MutexLock lock(&mutex_);
  info_.set_update(update);
  const double elapsed = Seconds(clock_->Now() - since_);
  if (elapsed < kRateSeconds) return;
  info_.set_updates_per_second((update - counted_) / elapsed);
  counted_ = update;
  since_ = clock_->Now();
}

void LearnerStatus::StartAt(uint64_t update, uint64_t pretrain_update) {
  MutexLock lock(&mutex_);
  info_.set_update(update);
  info_.set_pretrain_update(pretrain_update);
  counted_ = update;
  since_ = clock_->Now();
}

void LearnerStatus::SetPhase(const std::string& phase, const std::string& waiting_for) {
  MutexLock lock(&mutex_);
  info_.set_phase(phase);
  info_.set_waiting_for(waiting_for);
  if (phase != "learning") info_.set_updates_per_second(0);
}

void LearnerStatus::SetSignsOfLife(std::shared_ptr<const std::atomic<uint64_t>> signs) {
  MutexLock lock(&mutex_);
  signs_of_life_ = std::move(signs);
}

v1::LearnerInfo LearnerStatus::Info() const {
  MutexLock lock(&mutex_);
  v1::LearnerInfo info = info_;
  if (signs_of_life_ != nullptr) info.set_signs_of_life(*signs_of_life_);
  return info;
}

ServedState::ServedState(const RunIdentity& run, const std::string& run_dir, const Clock& clock)
    : snapshots(run.settings.member_count()),
      policies(run_dir),
      evaluations(Evaluations::Options{.clock = &clock,
                                       .episodes = run.settings.resolved->run().eval_episodes(),
                                       .incarnation = run.incarnation,
                                       .experiment = run.settings.experiment}),
      status(InitialInfo(run), &clock),
      task_options(run.settings.resolved, &run.settings.resolved->task_options()) {}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
