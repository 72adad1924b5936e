// datacom-actor: acts (run) and evaluates (evaluate) for a run. Both last until the run is finished, the process is
// asked to stop (Stop::Process()), or an error that a retry cannot resolve. Their health service serves once an actor
// has snapshots of all its members, or an evaluator has its first item.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "actor/actor_metrics.h"
#include "actor/actor_setup.h"
#include "actor/evaluator.h"
#include "actor/rollout.h"
#include "common/base/changes.h"
#include "common/base/files.h"
#include "common/base/flag_checks.h"
#include "common/base/log.h"
#include "common/base/machine.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/config/experiment.h"
#include "common/config/task_files.h"
#include "common/metrics/metrics.h"
#include "common/rpc/assignment.h"
#include "common/rpc/channel.h"
#include "common/rpc/insert_session.h"
#include "common/rpc/learner_client.h"
#include "common/rpc/replay_client.h"
#include "common/rpc/role_flags.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/task.pb.h"

namespace datacom::actor {
namespace {

struct ActorOptions : RoleFlags {  // `listen` serves gRPC health without TLS
  std::string replay;              // host:port; acting only
  std::string learner;             // host:port
  std::string name;                // the process keeps it over restarts
  uint32_t environments = 16;
  bool stay = false;  // acting only: when the run has all its rows, wait and look again instead of ending
};

constexpr std::chrono::milliseconds kDrainGrace{5000};
constexpr std::chrono::seconds kStay{30};  // between two questions whether there is work
constexpr std::chrono::milliseconds kAnswerDeadline{5000};

absl::StatusOr<std::unique_ptr<Server>> StartHealth(const ActorOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::Start(options.listen, {}));
  server->SetServing(false);
  RETURN_IF_ERROR(WriteAddressFile(options.address_file, server->address()));
  return server;
}

absl::StatusOr<std::unique_ptr<Metrics>> StartMetrics(const ActorOptions& options, const std::string& role,
                                                      const v1::Experiment& experiment) {
  return Metrics::Start({.role = role,
                         .run = options.run_id,
                         .task = experiment.task(),
                         .algorithm = experiment.algorithm(),
                         .listen = options.metrics_listen,
                         .tls = options.tls,
                         .address_file = options.metrics_address_file});
}

// Parses experiments with the large files of the run's task, which it reads from the learner, each once. Waits while
// the learner does not answer.
class TaskFiles {
 public:
  // `wait` sleeps, and returns true when a stop is requested.
  TaskFiles(std::shared_ptr<grpc::Channel> learner, std::string run_id,
            std::function<bool(std::chrono::milliseconds)> wait)
      : learner_(std::move(learner)), run_id_(std::move(run_id)), wait_(std::move(wait)) {}

  absl::StatusOr<v1::Experiment> Parse(const std::string& text, const std::string& source) {
    ASSIGN_OR_RETURN(v1::Experiment experiment, ParseExperiment(text, source));
    RETURN_IF_ERROR(
        AddTaskFiles([this](const v1::TaskFile& file) { return Read(file); }, experiment.mutable_task_options()));
    return experiment;
  }

 private:
  absl::StatusOr<std::string> Read(const v1::TaskFile& file) {
    const auto [known, is_new] = read_.try_emplace(file.sha256());
    if (!is_new) return known->second;
    v1::TaskFileRequest request;
    *request.mutable_hello() = MakeHello(run_id_, 0);
    request.set_sha256(file.sha256());
    Backoff backoff(StreamKey("task_file.backoff", {}));
    absl::StatusOr<std::string> content = FetchTaskFile(learner_, request);
    for (; IsTransient(content.status()); content = FetchTaskFile(learner_, request)) {
      spdlog::warn("reading the task's file {} failed, retrying: {}", file.name(), content.status().ToString());
      if (!wait_(backoff.Next())) continue;
      content = absl::CancelledError("stopping was requested");
      break;
    }
    if (content.ok()) {
      spdlog::info("read the task's file {}: {} bytes, compressed", file.name(), content->size());
      known->second = *content;
    } else {
      read_.erase(known);
    }
    return content;
  }

  const std::shared_ptr<grpc::Channel> learner_;
  const std::string run_id_;
  const std::function<bool(std::chrono::milliseconds)> wait_;
  std::map<std::string, std::string> read_;  // by SHA-256
};

// State of an acting process that outlives its sessions.
struct Acting {
  std::shared_ptr<grpc::Channel> replay, learner;
  std::unique_ptr<Server> health;
  std::unique_ptr<Metrics> metrics;
  std::optional<ActorMetrics> series;
  std::optional<TaskFiles> task_files;
};

// Runs one session from registration to its end. Sets *ended when the replay ended it: the actor may register again.
absl::Status ActOneSession(const ActorOptions& options, Acting* acting, bool* ended) {
  *ended = false;
  const Clock::Time before = Clock::Real().Now();
  const auto changes = std::make_shared<Changes>();
  InsertSession::Options session_options;
  session_options.changes = changes;
  session_options.channel = acting->replay;
  session_options.run_id = options.run_id;
  session_options.actor = options.name;
  session_options.incarnation = SystemRandomNumber();
  session_options.environments = options.environments;
  ASSIGN_OR_RETURN(const std::unique_ptr<InsertSession> session, InsertSession::Register(session_options));
  const v1::RegisterReply& registration = session->registration();
  Rollout::Parts parts;
  {
    ASSIGN_OR_RETURN(const v1::Experiment experiment,
                     acting->task_files->Parse(registration.experiment(), "the replay's registration"));
    ASSIGN_OR_RETURN(parts, MakeParts(experiment));
    if (acting->metrics == nullptr) {
      ASSIGN_OR_RETURN(acting->metrics, StartMetrics(options, "actor", experiment));
      acting->series.emplace(acting->metrics.get());
    }
  }
  const size_t members = parts.member_seeds.size();
  acting->series->wait_register.Increment(Seconds(Clock::Real().Now() - before));
  spdlog::info("registered session={} members=\"{}\" environments={} open_episodes={}", registration.session(),
               DescribeMembers(registration.assignment()), options.environments, registration.open_episodes_size());
  RETURN_IF_ERROR(session->Start(parts.schema.fingerprint()));

  SnapshotSubscriber::Options subscription;
  subscription.channel = acting->learner;
  subscription.run_id = options.run_id;
  subscription.backoff_seed = registration.session();
  subscription.changes = changes;
  const std::unique_ptr<SnapshotSubscriber> subscriber = SnapshotSubscriber::Start(subscription);
  const Watchdog watchdog("the actor's loop", Minutes(options.stall_minutes));
  Rollout::Options rollout_options;
  rollout_options.wait = [changes](std::chrono::nanoseconds timeout) { changes->Wait(timeout); };
  rollout_options.stop = [&watchdog] {  // asked before every step and after every wait for a peer
    watchdog.Mark();
    return Stop::Process().requested();
  };
  rollout_options.on_ready = [acting] { acting->health->SetServing(true); };
  ASSIGN_OR_RETURN(const std::unique_ptr<Rollout> rollout,
                   Rollout::Make(std::move(parts), session.get(), subscriber.get(), &*acting->series, rollout_options));
  absl::Status status = rollout->Run();
  *ended = absl::IsNotFound(status);
  if (absl::IsCancelled(status)) {
    const absl::Status flushed = session->Flush(kDrainGrace);
    if (!flushed.ok()) spdlog::warn("stopping with unacknowledged rows: {}", flushed.ToString());
  }
  uint64_t acknowledged = 0;
  for (uint32_t member = 0; member < members; ++member) acknowledged += session->acknowledged(member);
  spdlog::info("left session={} acknowledged_rows={}", registration.session(), acknowledged);
  return status;
}

// Asks the replay from time to time, and returns OK when a member may get rows again: a replay or learner that lost
// power may have lost some. CANCELLED when a stop is requested. A replay that has ended is no error.
absl::Status WaitForWork(const std::shared_ptr<grpc::Channel>& replay) {
  while (!Stop::Process().WaitFor(kStay)) {
    const auto info = GetReplayInfo(replay, kAnswerDeadline);
    if (info.ok() && std::any_of(info->members().begin(), info->members().end(),
                                 [](const v1::MemberInfo& member) { return member.inserted() < member.allowed(); })) {
      return absl::OkStatus();
    }
  }
  return absl::CancelledError("stopping was requested");
}

// OK: every member has all its rows. CANCELLED: stopped; all rows are acknowledged, or the grace period of 5 s ran out.
absl::Status RunActor(const ActorOptions& options) {
  Acting acting;
  ASSIGN_OR_RETURN(const Security security, LoadSecurity(options.tls));
  acting.replay = MakeChannel(options.replay, security);
  acting.learner = MakeChannel(options.learner, security);
  acting.task_files.emplace(acting.learner, options.run_id,
                            [](std::chrono::milliseconds time) { return Stop::Process().WaitFor(time); });
  ASSIGN_OR_RETURN(acting.health, StartHealth(options));
  while (true) {
    bool ended = false;
    const absl::Status status = ActOneSession(options, &acting, &ended);
    acting.health->SetServing(false);
    if (!ended) {
      if (!options.stay || !status.ok()) return status;
      spdlog::info("the run has all its rows; waiting");
      acting.health->SetServing(true);
      RETURN_IF_ERROR(WaitForWork(acting.replay));
      continue;
    }
    acting.series->abandoned_session.Increment(acting.series->environments.Value());  // each had an open episode
    acting.series->environments.Set(0);
    spdlog::warn("session ended, registering again: {}", status.ToString());
    if (Stop::Process().WaitFor(std::chrono::milliseconds(50))) return absl::CancelledError("stopping was requested");
  }
}

// OK: everything is evaluated. CANCELLED: stopped; another evaluator gets an unfinished item when its lease runs out.
absl::Status RunEvaluator(const ActorOptions& options) {
  ASSIGN_OR_RETURN(const Security security, LoadSecurity(options.tls));
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> health, StartHealth(options));
  const std::shared_ptr<grpc::Channel> learner = MakeChannel(options.learner, security);
  const std::unique_ptr<EvaluationSource> source = MakeEvaluationSource(learner, options.run_id, options.name);
  std::unique_ptr<Metrics> metrics;
  bool opened = false;  // whether the first item has come
  Evaluator::Options evaluator_options;
  const Watchdog watchdog("the evaluator's loop", Minutes(options.stall_minutes));
  evaluator_options.wait = [&watchdog](std::chrono::milliseconds timeout) {  // called at every step and every retry
    watchdog.Mark();
    return Stop::Process().WaitFor(timeout);
  };
  TaskFiles task_files(learner, options.run_id, evaluator_options.wait);
  evaluator_options.open_run = [&](const std::string& text) -> absl::StatusOr<EvaluatedRun> {
    ASSIGN_OR_RETURN(const v1::Experiment experiment, task_files.Parse(text, "the learner's lease"));
    EvaluatedRun run;
    run.seed = experiment.run().seed();
    run.make_player = [experiment](const Snapshot& snapshot, uint32_t batch) {
      return MakeEpisodePlayer(experiment, snapshot, batch);
    };
    if (opened) return run;
    opened = true;
    absl::StatusOr<std::unique_ptr<Metrics>> started = StartMetrics(options, "evaluator", experiment);
    if (!started.ok()) {  // evaluate without metrics: the run needs its evaluations
      spdlog::error("no metrics: {}", started.status().ToString());
    } else {
      metrics = *std::move(started);
    }
    health->SetServing(true);
    return run;
  };
  evaluator_options.on_item = [&](const char* result, uint32_t episodes) {
    if (metrics == nullptr) return;
    metrics->counter("datacom_evaluator_items_total", {{"result", result}}).Increment();
    metrics->counter("datacom_evaluator_episodes_total").Increment(episodes);
  };
  evaluator_options.on_abandoned = [&](uint32_t episodes) {
    if (metrics == nullptr) return;
    metrics->counter("datacom_actor_abandoned_episodes_total", {{"reason", "invalid"}}).Increment(episodes);
  };
  return Evaluator(source.get(), evaluator_options).Run();
}

constexpr char kEvaluate[] = "evaluate";

absl::Status Run(const ActorOptions& options, bool evaluate) {
  RETURN_IF_ERROR(RequireFlags({{"--learner", &options.learner}, {"--run-id", &options.run_id}}));
  if (evaluate) return RunEvaluator(options);
  RETURN_IF_ERROR(RequireFlags({{"--replay", &options.replay}}));
  return RunActor(options);
}

int Main(int argc, char** argv) {
  ActorOptions options;
  options.metrics_listen = "127.0.0.1:0";
  options.name = HostName();
  Role role;
  role.program = "datacom-actor";
  role.about = "Acts in environments for a run, evaluates its policies.";
  role.name = "actor";
  role.flags = &options;
  role.serves = false;
  role.own = [&options](CLI::App* app) {
    app->add_option("--replay", options.replay, "Replay service, host:port")->check(Address(1));
    app->add_option("--learner", options.learner, "Learner service, host:port")->check(Address(1));
    app->add_option("--name", options.name, "Name of this process, stable over restarts; default: the host name");
    app->add_option("--envs", options.environments, "Environments to step")
        ->capture_default_str()
        ->check(CLI::Range(1, 100000));
    app->add_flag(
        "--stay", options.stay,
        "Acting: when the run has all its rows, wait instead of ending, for a manager that restarts what ends");
  };
  role.commands = {{"run", "Act until the run has all its rows (default)"},
                   {kEvaluate, "Play evaluations until the run is finished", "evaluator"}};
  role.plugin_parts = {PluginPart::kSimulator};
  role.run = [&](const std::string& command) { return Run(options, command == kEvaluate); };
  return RunRole(argc, argv, role);
}

}  // namespace
}  // namespace datacom::actor

int main(int argc, char** argv) { return datacom::actor::Main(argc, argv); }
// SPDX-License-Identifier: Apache-2.0
