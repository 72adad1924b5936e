#include "learner/process.h"

#include <algorithm>
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
#include "common/rows/row_schema.h"
#include "common/rpc/channel.h"
#include "learner/dataset_draws.h"
#include "learner/guard.h"
#include "learner/service.h"
#include "learner/setup.h"
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

// The newest checkpoint, or an empty one for a new run.
absl::StatusOr<Checkpoint> LoadCheckpoint(const ProcessOptions& options, const CheckpointStore& store) {
  std::vector<std::string> notes;
  absl::StatusOr<Checkpoint> checkpoint = store.LoadNewest(&notes);
  for (const std::string& note : notes) spdlog::warn("{}", note);
  if (checkpoint.ok() || !absl::IsNotFound(checkpoint.status())) return checkpoint;
  if (options.must_resume)
    return Annotate(absl::InvalidArgumentError(std::string(checkpoint.status().message())), "--resume");
  return Checkpoint{};
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
  RETURN_IF_ERROR(MakeFolders(options.run_dir + "/checkpoints"));
  ASSIGN_OR_RETURN(const std::unique_ptr<FolderLock> lock, FolderLock::Take(options.run_dir + "/checkpoints"));
  ASSIGN_OR_RETURN(const uint32_t incarnation, NextIncarnation(options.run_dir + "/checkpoints/incarnation"));
  CheckpointStore checkpoints(options.run_dir + "/checkpoints");
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, LoadCheckpoint(options, checkpoints));
  const bool resumed = !checkpoint.algorithm.empty();

  std::unique_ptr<Algorithm> algorithm;
  RETURN_IF_ERROR(Guard("making the algorithm", [&] { algorithm = seams.make_algorithm(config); }));
  ASSIGN_OR_RETURN(const RowSchema schema, ActingRuleSchema(algorithm->acting_rule(), task.spec));
  const std::vector<v1::FileOffset> offsets(checkpoint.learner.files().begin(), checkpoint.learner.files().end());
  ASSIGN_OR_RETURN(auto records, RunRecords::Open(options.run_dir, experiment, offsets));
  ASSIGN_OR_RETURN(auto ledger, Ledger::Open(options.run_dir, experiment, schema, offsets, seams.read_rows));
  ASSIGN_OR_RETURN(std::unique_ptr<Metrics> metrics, StartMetrics(options));
  LearnerMetrics learner_metrics(metrics.get(), experiment.members_size(), options.run_dir);

  const Schedule schedule = Schedule::Of(experiment);
  Board board(InitialInfo(experiment, options.run_id, incarnation, schedule.last_update()), &Clock::Real());
  SnapshotHub hub(experiment.members_size());
  Policies policies(options.run_dir + "/policies");
  Evaluations evaluations(EvaluationOptions(experiment, incarnation));

  Trainer trainer({options.run_id, incarnation, experiment, algorithm.get(), &hub, &evaluations, &policies,
                   records.get(), ledger.get(), &checkpoints, &learner_metrics, &board, &Clock::Real(),
                   seams.wait_for_stop});
  if (resumed) RETURN_IF_ERROR(trainer.Restore(checkpoint));  // refuses what another experiment left
  RETURN_IF_ERROR(WriteFileAtomically(options.run_dir + "/experiment.textproto", PrintExperiment(experiment)));
  const std::shared_ptr<const ControlAffine> dynamics = algorithm->needs_dynamics() ? task.dynamics : nullptr;
  ASSIGN_OR_RETURN(std::unique_ptr<Prefetch> pretraining,
                   OpenPretraining(experiment, schema, config, dynamics, known, trainer.pretrain_update()));

  LearnerService::Parts parts{options.run_id, &hub, &evaluations, &policies, &board};
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
