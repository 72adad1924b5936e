// A trainer with a fake replay and a fake algorithm, and with files in a temporary folder. Tests start, stop, kill and
// resume it at chosen updates. Evaluations are played when the trainer asks whether to stop, so they need no thread.
#ifndef DATACOM_TESTS_TESTING_FAKE_LEARNER_RUN_H_
#define DATACOM_TESTS_TESTING_FAKE_LEARNER_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/records/checkpoint.h"
#include "learner/checked_algorithm.h"
#include "learner/dataset_draws.h"
#include "learner/setup.h"
#include "learner/trainer.h"
#include "tests/testing/fake_learner_algorithm.h"
#include "tests/testing/fake_learner_draws.h"
#include "tests/testing/manual_clock.h"

namespace datacom::learner {

inline v1::Experiment FakeExperiment(int members = 2) {
  v1::Experiment experiment;
  experiment.set_name("fake");
  experiment.set_task("cartpole");
  experiment.set_algorithm("datacom");
  experiment.mutable_run()->set_env_steps(250);
  experiment.mutable_run()->set_steps_per_epoch(100);
  experiment.mutable_run()->set_eval_episodes(2);
  experiment.mutable_run()->set_checkpoint_updates(70);
  experiment.mutable_replay()->set_min_size(20);
  experiment.mutable_learner()->set_batch_size(4);
  experiment.mutable_learner()->set_failure_batch_size(2);
  experiment.mutable_hyper()->set_delta_warmup(64);
  for (int i = 0; i < members; ++i) experiment.add_members()->set_seed(100 + i);
  return ResolveExperiment(experiment);
}

// obs 2, action 1.
inline TaskModel FakeTaskModel() {
  TaskModel model;
  model.spec.name = "cartpole";
  model.spec.obs_dim = 2;
  model.spec.action_dim = 1;
  model.spec.action_low = {-1};
  model.spec.action_high = {1};
  model.spec.horizon = 10;
  model.dynamics = std::make_shared<FakeControlAffine>(2, 1);
  return model;
}

inline FakeReplay MakeFakeReplay(const v1::Experiment& experiment) {
  FakeReplay replay;
  replay.config = MakeAlgorithmConfig(experiment, FakeTaskModel()).value();
  replay.schema = RowSchema::For(2, 1);
  replay.schedule = MakeRunSettings(experiment).schedule;
  return replay;
}

struct RunOutcome {
  absl::Status status;
  uint64_t update = 0, pretrain_update = 0;
  bool published = false;  // a snapshot for actors
  v1::LearnerInfo info;
  std::vector<FakeAlgorithm::Applied> applied;
  uint64_t announced = 0;
  size_t most_asked = 0;          // most unanswered draws at once
  std::vector<double> abandoned;  // gauge of abandoned evaluation episodes, per member
  std::vector<double> runaway;    // gauge of runaway critics, per member
  double repeated_gauge = 0;      // of repeated updates
  absl::Status episodes;          // Trainer::CheckEpisodes
};

struct RunPlan {
  uint64_t stop_at_update = UINT64_MAX;  // like a SIGTERM at that update
  bool evaluate = true;
  uint64_t throw_at_update = 0;  // ends the run without a checkpoint, like a kill
  int ahead = 1;
  bool on_policy = false;  // RunSettings::on_policy
  uint64_t stop_at_pretrain_update = UINT64_MAX, throw_at_pretrain_update = 0;
  std::function<double(size_t member, uint64_t updates)> critic_loss = nullptr,
                                                         infeasible_share = nullptr;  // FakeAlgorithm's
  std::function<void()> on_dismissed = nullptr;  // called when an evaluator learns that the run is finished
  uint32_t episode_length = 10;
  uint64_t abandoned_every = 0;  // FakeReplay's
  // Replaces FakeReplay::ReadRows.
  std::function<absl::Status(const FakeReplay&, uint32_t, uint64_t, uint64_t,
                             const std::function<absl::Status(const v1::RowRange&)>&)>
      read_rows = nullptr;
};

// Reports all open evaluations, as one evaluator.
inline void PlayEvaluations(Evaluations* evaluations, const RunPlan& plan) {
  for (;;) {
    const v1::LeaseReply item = evaluations->Lease("fake");
    if (item.finished() && plan.on_dismissed) plan.on_dismissed();
    if (item.lease() == 0) return;
    v1::ReportRequest report;
    report.set_lease(item.lease());
    report.set_member(item.member());
    report.set_epoch(item.epoch());
    for (uint32_t i = 0; i < item.episodes(); ++i) {
      v1::EvaluationEpisode* episode = report.add_episodes();
      episode->set_return_(item.epoch() + 0.5 * i);
      episode->set_discounted_return(item.member() + 0.1 * item.epoch());
      episode->set_sum_cost(2);
      episode->set_length(10);
      episode->set_success(i == 0);
      episode->set_abandoned(item.member() == 1 && i > 0);
    }
    if (!evaluations->Report(report).value_or(false)) return;
  }
}

// Starts a learner on `folder`, from its newest checkpoint if there is one.
class FakeRun {
 public:
  FakeRun(const std::string& folder, const v1::Experiment& experiment, const RunPlan& plan)
      : folder_(folder), run_{"run", 1, Settings(experiment, plan)}, plan_(plan), replay_(MakeFakeReplay(experiment)) {
    replay_.episode_length = plan.episode_length;
    replay_.abandoned_every = plan.abandoned_every;
  }

  absl::Status Run() {
    FakeAlgorithm fake(replay_.config);
    fake.throw_at_update = plan_.throw_at_update;
    fake.throw_at_pretrain_update = plan_.throw_at_pretrain_update;
    fake.critic_loss = plan_.critic_loss;
    fake.infeasible_share = plan_.infeasible_share;
    std::vector<std::string> notes;
    const absl::StatusOr<Checkpoint> loaded = CheckpointStore(RunFiles::CheckpointFolder(folder_)).LoadNewest(&notes);
    if (loaded.ok()) {
      RETURN_IF_ERROR(CheckResume(loaded->learner, run_.run_id, run_.settings.fixed, run_.settings.schedule.updates()));
      RETURN_IF_ERROR(Checked("loading the algorithm's state", [&] { fake.Load(loaded->algorithm); }));
    }
    const v1::LearnerCheckpoint checkpoint = loaded.ok() ? loaded->learner : v1::LearnerCheckpoint();
    ASSIGN_OR_RETURN(const std::unique_ptr<RunFiles> files,
                     RunFiles::Open(folder_, run_.run_id, run_.settings, replay_.schema, checkpoint, Rows()));
    RETURN_IF_ERROR(files->Begin());
    Metrics::Options metrics_options;
    metrics_options.role = "learner";
    const auto metrics = *Metrics::Start(metrics_options);
    LearnerMetrics learner_metrics(metrics.get(), run_.settings.member_count(), run_.settings.resolved->algorithm(),
                                   ".");
    ManualClock clock;
    ServedState served(run_, folder_, clock);
    Trainer trainer(run_, fake, served, *files, learner_metrics, clock, [&](std::chrono::milliseconds timeout) {
      clock.Advance(timeout);
      if (plan_.evaluate) PlayEvaluations(&served.evaluations, plan_);
      const v1::LearnerInfo info = served.status.Info();
      return info.update() >= plan_.stop_at_update || info.pretrain_update() >= plan_.stop_at_pretrain_update;
    });
    if (loaded.ok()) trainer.Restore(checkpoint);
    const absl::Status status = Train(&trainer);
    outcome.update = trainer.update();
    outcome.episodes = trainer.CheckEpisodes();
    outcome.pretrain_update = trainer.pretrain_update();
    outcome.published = served.snapshots.Latest(0) != nullptr;
    outcome.info = served.status.Info();
    outcome.applied = fake.applied;
    outcome.repeated_gauge = metrics->gauge("datacom_learner_repeated_updates").Value();
    for (int m = 0; m < run_.settings.member_count(); ++m) {
      const Metrics::Labels member = {{"member", std::to_string(m)}};
      outcome.abandoned.push_back(metrics->gauge("datacom_member_eval_abandoned_episodes", member).Value());
      outcome.runaway.push_back(metrics->gauge("datacom_member_critic_runaway", member).Value());
    }
    return status;
  }

  RunOutcome outcome;  // of Run; without the status

 private:
  static RunSettings Settings(const v1::Experiment& experiment, const RunPlan& plan) {
    RunSettings settings = MakeRunSettings(experiment);
    settings.on_policy = plan.on_policy;
    return settings;
  }
  RowSource Rows() const {
    return [this](uint32_t member, uint64_t from, uint64_t to, const auto& consume) {
      if (plan_.read_rows != nullptr) return plan_.read_rows(replay_, member, from, to, consume);
      return replay_.ReadRows(member, from, to, consume);
    };
  }
  absl::Status Train(Trainer* trainer) {
    auto stream = std::make_unique<FakeDrawStream>(&replay_);
    const FakeDrawStream* draws = stream.get();
    Prefetch prefetch(std::move(stream),
                      BatchDecoder(replay_.config, replay_.schema, FakeTaskModel().dynamics, KnownRows()),
                      replay_.config, {trainer->update() + 1, replay_.schedule.last_update(), plan_.ahead});
    ASSIGN_OR_RETURN(auto pretraining,
                     OpenPretraining(run_.settings, replay_.schema, replay_.config, FakeTaskModel().dynamics,
                                     KnownRows(), trainer->pretrain_update()));
    absl::Status status = trainer->Pretrain(std::move(pretraining));
    if (status.ok()) status = trainer->Run(&prefetch);
    outcome.announced = draws->announced();
    outcome.most_asked = draws->most_asked();
    return status;
  }

  const std::string folder_;
  const RunIdentity run_;
  const RunPlan& plan_;
  FakeReplay replay_;
};

inline RunOutcome RunFake(const std::string& folder, const v1::Experiment& experiment, const RunPlan& plan = {}) {
  FakeRun run(folder, experiment, plan);
  const absl::Status status = run.Run();
  run.outcome.status = status;
  return run.outcome;
}

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_TESTING_FAKE_LEARNER_RUN_H_
// SPDX-License-Identifier: Apache-2.0
