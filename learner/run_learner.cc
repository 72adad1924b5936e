#include "learner/run_learner.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/acting/acting_rule.h"
#include "common/base/files.h"
#include "common/base/folder_lock.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "common/transitions/row_schema.h"
#include "learner/algorithm_setup.h"
#include "learner/dataset_draws.h"
#include "learner/guard.h"
#include "learner/learner_service.h"
#include "learner/trainer.h"

namespace datacom::learner {
namespace {

absl::StatusOr<std::unique_ptr<Metrics>> StartMetrics(const ProcessOptions& options) {
  Metrics::Options metrics;
  metrics.role = "learner";
  metrics.run = options.run_id;
  metrics.task = options.experiment.task();
  metrics.algorithm = options.experiment.algorithm();
  metrics.listen = options.metrics_listen;
  ASSIGN_OR_RETURN(std::unique_ptr<Metrics> started, Metrics::Start(metrics));
  RETURN_IF_ERROR(WriteAddressFile(options.metrics_address_file, started->address()));
  return started;
}

std::string CheckpointFolder(const ProcessOptions& options) { return options.run_dir + "/checkpoints"; }

absl::Status NothingToResume(const ProcessOptions& options) {
  return absl::InvalidArgumentError(absl::StrCat("--resume: ", CheckpointFolder(options), ": no checkpoint"));
}

absl::StatusOr<std::unique_ptr<FolderLock>> LockCheckpoints(const ProcessOptions& options) {
  if (options.must_resume && !std::filesystem::exists(CheckpointFolder(options))) return NothingToResume(options);
  RETURN_IF_ERROR(MakeFolders(CheckpointFolder(options)));
  return FolderLock::Take(CheckpointFolder(options));
}

// The newest checkpoint, or an empty one for a new run.
absl::StatusOr<Checkpoint> LoadCheckpoint(const ProcessOptions& options, const CheckpointStore& store) {
  std::vector<std::string> notes;
  absl::StatusOr<Checkpoint> checkpoint = store.LoadNewest(&notes);
  for (const std::string& note : notes) spdlog::warn("{}", note);
  if (checkpoint.ok() || !absl::IsNotFound(checkpoint.status())) return checkpoint;
  if (options.must_resume) return NothingToResume(options);
  return Checkpoint{};
}

// In the state of a checkpoint, or a new one.
absl::StatusOr<std::unique_ptr<Algorithm>> StartAlgorithm(const ProcessSeams& seams, const AlgorithmConfig& config,
                                                          const State& state) {
  std::unique_ptr<Algorithm> algorithm;
  RETURN_IF_ERROR(Guard("making the algorithm", [&] { algorithm = seams.make_algorithm(config); }));
  if (!state.empty()) RETURN_IF_ERROR(Guard("loading the algorithm's state", [&] { algorithm->Load(state); }));
  return algorithm;
}

Evaluations::Options EvaluationOptions(const v1::Experiment& experiment, uint32_t incarnation) {
  Evaluations::Options options;
  options.episodes = experiment.run().eval_episodes();
  options.incarnation = incarnation;
  options.experiment = PrintExperiment(experiment);
  return options;
}

}  // namespace

absl::Status RunLearner(const ProcessOptions& options, const TaskModel& task, const ProcessSeams& seams) {
  const v1::Experiment& experiment = options.experiment;
  ASSIGN_OR_RETURN(const AlgorithmConfig config, MakeAlgorithmConfig(experiment, task));
  ASSIGN_OR_RETURN(const KnownRows known, MakeKnownRows(experiment, task));
  ASSIGN_OR_RETURN(const std::unique_ptr<FolderLock> lock, LockCheckpoints(options));
  CheckpointStore checkpoints(CheckpointFolder(options));
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, LoadCheckpoint(options, checkpoints));
  const bool resumed = !checkpoint.algorithm.empty();
  if (resumed) RETURN_IF_ERROR(CheckResume(checkpoint.learner, options.run_id, experiment));

  ASSIGN_OR_RETURN(const std::unique_ptr<Algorithm> algorithm, StartAlgorithm(seams, config, checkpoint.algorithm));
  ASSIGN_OR_RETURN(const RowSchema schema, ActingRuleSchema(algorithm->acting_rule(), task.spec));
  const std::shared_ptr<const ControlAffine> dynamics = algorithm->needs_dynamics() ? task.dynamics : nullptr;
  ASSIGN_OR_RETURN(std::unique_ptr<Prefetch> pretraining,
                   OpenPretraining(experiment, schema, config, dynamics, known, checkpoint.learner.pretrain_update()));

  // What is refused was refused above: from here on the folder changes.
  ASSIGN_OR_RETURN(const uint32_t incarnation, NextIncarnation(CheckpointFolder(options) + "/incarnation"));
  const std::vector<v1::FileOffset> offsets(checkpoint.learner.files().begin(), checkpoint.learner.files().end());
  ASSIGN_OR_RETURN(auto records, RunRecords::Open(options.run_dir, experiment, offsets));
  ASSIGN_OR_RETURN(auto ledger, LedgerRecorder::Open(options.run_dir, experiment, schema, offsets, seams.read_rows));
  ASSIGN_OR_RETURN(std::unique_ptr<Metrics> metrics, StartMetrics(options));
  LearnerMetrics learner_metrics(metrics.get(), experiment.members_size(), options.run_dir);

  const Schedule schedule = Schedule::Of(experiment);
  LearnerStatus learner_status(InitialInfo(experiment, options.run_id, incarnation), &Clock::Real());
  SnapshotHub hub(experiment.members_size());
  EpochPolicies policies(options.run_dir + "/policies");
  Evaluations evaluations(EvaluationOptions(experiment, incarnation));

  Trainer trainer({options.run_id, incarnation, experiment, algorithm.get(), &hub, &evaluations, &policies,
                   records.get(), ledger.get(), &checkpoints, &learner_metrics, &learner_status, &Clock::Real(),
                   seams.wait_for_stop});
  if (resumed) trainer.Restore(checkpoint.learner);
  RETURN_IF_ERROR(WriteFileAtomically(options.run_dir + "/experiment.textproto", PrintExperiment(experiment)));

  LearnerService::Parts parts{options.run_id, &hub, &evaluations, &policies, &learner_status};
  LearnerService* counted = nullptr;
  parts.on_subscriber_change = [&] { learner_metrics.SetSubscribers(counted->subscribers()); };
  LearnerService service(std::move(parts));
  counted = &service;
  ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::Start(options.listen, {&service}, options.server));
  server->SetServing(true);
  RETURN_IF_ERROR(WriteAddressFile(options.address_file, server->address()));
  spdlog::info("listening address={} run={} incarnation={} update={} of {} members={}{}", server->address(),
               options.run_id, incarnation, trainer.update(), schedule.last_update(), experiment.members_size(),
               resumed ? " resumed" : "");

  absl::Status status;
  {
    Prefetch prefetch(seams.open_draws(schema.fingerprint()),
                      BatchDecoder(config, schema, dynamics, known, DeltaWarmups(experiment)), config,
                      {trainer.update() + 1, schedule.last_update(), DrawsAhead(experiment, schema)});
    status = trainer.Pretrain(std::move(pretraining));
    if (status.ok()) status = trainer.Run(&prefetch);
  }
  hub.Close();
  server->Shutdown(std::chrono::milliseconds(1000));
  return status;
}

}  // namespace datacom::learner
