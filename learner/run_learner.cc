#include "learner/run_learner.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/acting/acting_rule.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/config/task_files.h"
#include "common/metrics/metrics.h"
#include "common/records/checkpoint.h"
#include "common/transitions/row_schema.h"
#include "learner/checked_algorithm.h"
#include "learner/dataset_draws.h"
#include "learner/learner_metrics.h"
#include "learner/learner_service.h"
#include "learner/run_files.h"
#include "learner/setup.h"

namespace datacom::learner {
namespace {

constexpr double kFarewellSeconds = 300;  // longer than a cluster takes to move the replay
constexpr std::chrono::milliseconds kFarewellPoll{500};

std::string CheckpointFolder(const ProcessOptions& options) { return RunFiles::CheckpointFolder(options.run_dir); }

absl::Status NothingToResume(const ProcessOptions& options) {
  return absl::InvalidArgumentError(absl::StrCat("--resume: ", CheckpointFolder(options), ": no checkpoint"));
}

absl::StatusOr<std::unique_ptr<FolderLock>> LockCheckpoints(const ProcessOptions& options) {
  if (options.must_resume && !FileExists(CheckpointFolder(options))) return NothingToResume(options);
  RETURN_IF_ERROR(MakeFolders(CheckpointFolder(options)));
  return FolderLock::Take(CheckpointFolder(options));
}

// The newest checkpoint, or an empty one for a new run.
absl::StatusOr<Checkpoint> LoadCheckpoint(const ProcessOptions& options) {
  std::vector<std::string> notes;
  absl::StatusOr<Checkpoint> checkpoint = CheckpointStore(CheckpointFolder(options)).LoadNewest(&notes);
  for (const std::string& note : notes) spdlog::warn("{}", note);
  if (checkpoint.ok() || !absl::IsNotFound(checkpoint.status())) return checkpoint;
  if (options.must_resume) return NothingToResume(options);
  return Checkpoint{};
}

// A run that may start. Its folder is locked; no record has changed.
struct AcceptedRun {
  std::unique_ptr<FolderLock> lock;
  Checkpoint checkpoint;  // empty: a new run
  AlgorithmConfig config;
  std::unique_ptr<Algorithm> algorithm;           // in the state of the checkpoint
  RowSchema schema;                               // rows as the acting rule stores them
  std::shared_ptr<const ControlAffine> dynamics;  // null: the algorithm needs none
  std::unique_ptr<Prefetch> pretraining;          // null: no pre-training updates are left
  std::unique_ptr<RunFiles> files;
  std::shared_ptr<std::atomic<uint64_t>> signs_of_life = std::make_shared<std::atomic<uint64_t>>(0);
  bool resumed() const { return !checkpoint.algorithm.empty(); }
};

absl::StatusOr<AcceptedRun> Accept(const ProcessOptions& options, const TaskModel& task, const ProcessSeams& seams) {
  AcceptedRun run;
  run.config = options.algorithm;
  run.config.alive = [signs = run.signs_of_life, alive = seams.alive] {
    ++*signs;
    if (alive) alive();
  };
  ASSIGN_OR_RETURN(run.lock, LockCheckpoints(options));
  ASSIGN_OR_RETURN(run.checkpoint, LoadCheckpoint(options));
  if (run.resumed()) {
    RETURN_IF_ERROR(CheckResume(run.checkpoint.learner, options.run_id, options.settings.fixed,
                                options.settings.schedule.updates()));
  }
  ASSIGN_OR_RETURN(run.algorithm, Checked("making the algorithm", [&] { return seams.make_algorithm(run.config); }));
  if (run.resumed()) {
    RETURN_IF_ERROR(Checked("loading the algorithm's state", [&] { run.algorithm->Load(run.checkpoint.algorithm); }));
  }
  ASSIGN_OR_RETURN(run.schema, ActingRuleSchema(options.settings.acting_rule, task.spec));
  if (options.settings.needs_dynamics) run.dynamics = task.dynamics;
  ASSIGN_OR_RETURN(run.pretraining, OpenPretraining(options.settings, run.schema, run.config, run.dynamics,
                                                    options.known, run.checkpoint.learner.pretrain_update()));
  ASSIGN_OR_RETURN(run.files, RunFiles::Open(options.run_dir, options.run_id, options.settings, run.schema,
                                             run.checkpoint.learner, seams.read_rows));
  return run;
}

absl::Status Train(AcceptedRun& accepted, const KnownRows& known, const RunIdentity& run, const ProcessSeams& seams,
                   Trainer* trainer) {
  Prefetch prefetch(
      seams.open_draws(accepted.schema.fingerprint(), run.incarnation, accepted.checkpoint.learner.replay_start()),
      BatchDecoder(accepted.config, accepted.schema, accepted.dynamics, known), accepted.config,
      {trainer->update() + 1, run.settings.schedule.last_update(), DrawsAhead(run.settings, accepted.schema),
       AnnouncedTogether(run.settings)});
  RETURN_IF_ERROR(trainer->Pretrain(std::move(accepted.pretraining)));
  return trainer->Run(&prefetch);
}

// Returns after kFarewellSeconds also when the replay has not answered: it may have been told by a former process of
// this learner, and have ended. Every record is written, so that no error of the replay matters to the run.
void FinishRun(const ProcessSeams& seams, uint64_t update, uint32_t incarnation, ServedState* served) {
  if (!seams.finish_run) return;
  const Clock::Time begin = Clock::Real().Now();
  absl::Status told;
  do {
    told = seams.finish_run(update, incarnation);
    if (!absl::IsUnavailable(told) && !absl::IsDeadlineExceeded(told)) break;
    served->status.SetPhase("finished", absl::StrCat("the replay does not know yet: ", std::string(told.message())));
  } while (Seconds(Clock::Real().Now() - begin) < kFarewellSeconds && !seams.wait_for_stop(kFarewellPoll));
  if (!told.ok()) spdlog::warn("the replay was not told that the run is finished: {}", std::string(told.message()));
}

}  // namespace

absl::Status RunLearner(const ProcessOptions& options, const TaskModel& task, const ProcessSeams& seams) {
  const RunSettings& settings = options.settings;
  ASSIGN_OR_RETURN(AcceptedRun accepted, Accept(options, task, seams));
  // All checks have passed. From here on the run's records change.
  ASSIGN_OR_RETURN(const uint32_t incarnation, NextIncarnation(CheckpointFolder(options) + "/incarnation"));
  const RunIdentity run{options.run_id, incarnation, settings};
  RETURN_IF_ERROR(accepted.files->Begin());
  ASSIGN_OR_RETURN(const std::unique_ptr<Metrics> metrics,
                   Metrics::Start({.role = "learner",
                                   .run = options.run_id,
                                   .task = settings.resolved->task(),
                                   .algorithm = settings.resolved->algorithm(),
                                   .listen = options.metrics_listen,
                                   .tls = options.tls,
                                   .address_file = options.metrics_address_file}));
  LearnerMetrics learner_metrics(metrics.get(), settings.member_count(), settings.resolved->algorithm(),
                                 options.run_dir, accepted.config.team);
  learner_metrics.NameCosts(accepted.schema.named_costs().names);
  learner_metrics.SetDevice(settings.resolved->learner().device());
  ServedState served(run, options.run_dir, Clock::Real());
  served.status.SetSignsOfLife(accepted.signs_of_life);
  Trainer trainer(run, *accepted.algorithm, served, *accepted.files, learner_metrics, Clock::Real(),
                  seams.wait_for_stop);
  if (accepted.resumed()) trainer.Restore(accepted.checkpoint.learner);
  RETURN_IF_ERROR(WriteTaskFiles(options.run_dir, settings.resolved->task_options()));
  RETURN_IF_ERROR(WriteFileAtomically(options.run_dir + "/experiment.textproto", settings.experiment));

  LearnerService service(run.run_id, served, [&](int subscribers) { learner_metrics.SetSubscribers(subscribers); });
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::Start(options.listen, {&service}, options.server));
  server->SetServing(true);
  RETURN_IF_ERROR(WriteAddressFile(options.address_file, server->address()));
  const int threads = accepted.config.team == nullptr ? 1 : accepted.config.team->threads();
  spdlog::info("listening address={} run={} incarnation={} update={} of {} members={} threads={}{}", server->address(),
               run.run_id, incarnation, trainer.update(), settings.schedule.last_update(), settings.member_count(),
               threads, accepted.resumed() ? " resumed" : "");
  const absl::Status status = Train(accepted, options.known, run, seams, &trainer);
  if (status.ok()) FinishRun(seams, trainer.update(), incarnation, &served);
  served.snapshots.Close();
  server->Shutdown(std::chrono::milliseconds(1000));
  return status.ok() ? trainer.CheckEpisodes() : status;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
