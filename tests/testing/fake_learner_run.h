// A trainer whose surroundings are fakes or in a temporary folder: tests start, stop, kill and resume it at chosen
// updates. Evaluations are played when the trainer asks whether to stop, so everything happens in one thread.
#ifndef DATACOM_TESTS_TESTING_FAKE_LEARNER_RUN_H_
#define DATACOM_TESTS_TESTING_FAKE_LEARNER_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "common/config/experiment.h"
#include "learner/algorithm_setup.h"
#include "learner/dataset_draws.h"
#include "learner/trainer.h"
#include "tests/testing/fake_learner_algorithm.h"
#include "tests/testing/fake_learner_draws.h"

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
  replay.schedule = Schedule::Of(experiment);
  return replay;
}

struct RunOutcome {
  absl::Status status;
  uint64_t update = 0, pretrain_update = 0;
  bool published = false;  // a snapshot, for actors
  v1::LearnerInfo info;
  std::vector<FakeAlgorithm::Applied> applied;
  uint64_t announced = 0;
  size_t most_asked = 0;          // most unanswered draws at once
  std::vector<double> abandoned;  // gauge of abandoned evaluation episodes, per member
  std::vector<double> runaway;    // gauge of runaway critics, per member
};

struct RunPlan {
  uint64_t stop_at_update = UINT64_MAX;  // like a SIGTERM at that update
  bool evaluate = true;
  uint64_t throw_at_update = 0;  // ends the run without a checkpoint, like a kill
  int ahead = 1;
  uint64_t stop_at_pretrain_update = UINT64_MAX, throw_at_pretrain_update = 0;
  std::function<double(size_t member, uint64_t updates)> critic_loss = nullptr;  // FakeAlgorithm's
  std::function<void()> on_dismissed = nullptr;  // called when an evaluator learns that the run is finished
  // Replaces FakeReplay::ReadRows.
  std::function<absl::Status(const FakeReplay&, uint32_t, uint64_t, uint64_t,
                             const std::function<absl::Status(const v1::RowRange&)>&)>
      read_rows = nullptr;
};

// Starts a learner on `folder`, from its newest checkpoint if there is one.
inline RunOutcome RunFake(const std::string& folder, const v1::Experiment& experiment, const RunPlan& plan = {}) {
  RunOutcome outcome;
  const FakeReplay replay = MakeFakeReplay(experiment);
  FakeAlgorithm algorithm(replay.config);
  algorithm.throw_at_update = plan.throw_at_update;
  algorithm.throw_at_pretrain_update = plan.throw_at_pretrain_update;
  algorithm.critic_loss = plan.critic_loss;
  CheckpointStore checkpoints(folder + "/checkpoints");
  std::vector<std::string> notes;
  absl::StatusOr<Checkpoint> checkpoint = checkpoints.LoadNewest(&notes);
  const bool resumed = checkpoint.ok();
  std::vector<v1::FileOffset> offsets;
  if (resumed) {
    outcome.status = CheckResume(checkpoint->learner, "run", experiment);
    if (!outcome.status.ok()) return outcome;
    algorithm.Load(checkpoint->algorithm);
    offsets.assign(checkpoint->learner.files().begin(), checkpoint->learner.files().end());
  }
  auto records = RunRecords::Open(folder, experiment, offsets);
  if (!records.ok()) {
    outcome.status = records.status();
    return outcome;
  }
  const auto rows = [&](uint32_t member, uint64_t from, uint64_t to, const auto& consume) {
    if (plan.read_rows != nullptr) return plan.read_rows(replay, member, from, to, consume);
    return replay.ReadRows(member, from, to, consume);
  };
  auto ledger = LedgerRecorder::Open(folder, experiment, replay.schema, offsets, rows);
  if (!ledger.ok()) {
    outcome.status = ledger.status();
    return outcome;
  }
  Metrics::Options metrics_options;
  metrics_options.role = "learner";
  auto metrics = *Metrics::Start(metrics_options);
  LearnerMetrics learner_metrics(metrics.get(), experiment.members_size(), ".");
  SnapshotHub hub(experiment.members_size());
  EpochPolicies policies(folder + "/policies");
  ManualClock clock;
  Evaluations::Options evaluation_options;
  evaluation_options.clock = &clock;
  evaluation_options.episodes = experiment.run().eval_episodes();
  Evaluations evaluations(evaluation_options);
  LearnerStatus learner_status(InitialInfo(experiment, "run", 1), &clock);

  Trainer* running = nullptr;
  const auto wait_for_stop = [&](std::chrono::milliseconds timeout) {
    clock.Advance(timeout);
    while (plan.evaluate) {
      const v1::LeaseReply item = evaluations.Lease("fake");
      if (item.finished() && plan.on_dismissed) plan.on_dismissed();
      if (item.lease() == 0) break;
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
      if (!evaluations.Report(report).value_or(false)) break;
    }
    return running->update() >= plan.stop_at_update || running->pretrain_update() >= plan.stop_at_pretrain_update;
  };
  Trainer trainer({"run", 1, experiment, &algorithm, &hub, &evaluations, &policies, records->get(), ledger->get(),
                   &checkpoints, &learner_metrics, &learner_status, &clock, wait_for_stop});
  running = &trainer;
  if (resumed) trainer.Restore(checkpoint->learner);
  auto stream = std::make_unique<FakeDrawStream>(&replay);
  const FakeDrawStream* draws = stream.get();
  Prefetch prefetch(
      std::move(stream),
      BatchDecoder(replay.config, replay.schema, FakeTaskModel().dynamics, KnownRows(), DeltaWarmups(experiment)),
      replay.config, {trainer.update() + 1, replay.schedule.last_update(), plan.ahead});
  auto pretraining = OpenPretraining(experiment, replay.schema, replay.config, FakeTaskModel().dynamics, KnownRows(),
                                     trainer.pretrain_update());
  outcome.status = pretraining.status();
  if (outcome.status.ok()) outcome.status = trainer.Pretrain(*std::move(pretraining));
  if (outcome.status.ok()) outcome.status = trainer.Run(&prefetch);
  outcome.update = trainer.update();
  outcome.pretrain_update = trainer.pretrain_update();
  outcome.published = hub.Latest(0) != nullptr;
  outcome.info = learner_status.Info();
  outcome.applied = algorithm.applied;
  outcome.announced = draws->announced();
  outcome.most_asked = draws->most_asked();
  for (int m = 0; m < experiment.members_size(); ++m) {
    const std::string member = std::to_string(m);
    outcome.abandoned.push_back(metrics->gauge("datacom_member_eval_abandoned_episodes", {{"member", member}}).Value());
    outcome.runaway.push_back(metrics->gauge("datacom_member_critic_runaway", {{"member", member}}).Value());
  }
  return outcome;
}

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_TESTING_FAKE_LEARNER_RUN_H_
