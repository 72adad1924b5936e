// datacom-replay: serves the replay of one run folder until it is stopped.
#include <csignal>
#include <cstdio>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/machine.h"
#include "common/base/stall.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/base/version.h"
#include "common/config/experiment.h"
#include "common/metrics/metrics.h"
#include "common/rpc/address.h"
#include "common/rpc/channel.h"
#include "replay/replay_service.h"
#include "replay/run_experiment.h"

namespace datacom {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::milliseconds kDrainGrace{3000};
constexpr std::chrono::milliseconds kHealthDeadline{3000};

struct Flags {
  std::string experiment, run_id, folder, listen = "127.0.0.1:0", address_file;
  std::string health_listen, tls, metrics_listen, metrics_address_file, healthcheck;
  bool die_with_parent = false;
  double stall_minutes = kStallMinutes;
};

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const Flags& flags, const v1::Experiment& experiment) {
  ASSIGN_OR_RETURN(const RowSchema schema, SchemaOf(experiment));
  Store::Options options;
  options.experiment = experiment;
  options.experiment_text = PrintExperiment(experiment);
  for (int member = 0; member < experiment.members_size(); ++member)
    options.hyper.push_back(MemberHyper(experiment, member));
  const AlgorithmInfo* const algorithm = FindAlgorithm(experiment.algorithm());
  options.learns_delta = algorithm->learns_delta;
  options.new_rows = algorithm->new_rows;
  options.run_id = flags.run_id;
  options.folder = flags.folder;
  return Store::Open(schema, options);
}

// CANCELLED: stopped before the run was complete.
absl::Status Serve(const Flags& flags) {
  RaiseOpenFileLimit();
  if (!FileExists(flags.experiment))
    return absl::InvalidArgumentError(absl::StrCat("--experiment: no such file: ", flags.experiment));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadExperiment(flags.experiment));
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenStore(flags, experiment));
  ServerOptions server_options;
  ASSIGN_OR_RETURN(server_options.security, LoadSecurity(flags.tls));
  Metrics::Options metrics_options;
  metrics_options.role = "replay";
  metrics_options.run = flags.run_id;
  metrics_options.task = experiment.task();
  metrics_options.algorithm = experiment.algorithm();
  metrics_options.listen = flags.metrics_listen;
  metrics_options.tls = flags.tls;
  ASSIGN_OR_RETURN(const std::unique_ptr<Metrics> metrics, Metrics::Start(metrics_options));
  const Watchdog watchdog("the replay's store", Minutes(flags.stall_minutes));  // sees a hang of what follows, too
  ReplayService service(store.get(), metrics.get(), kTick);
  server_options.health_listen = flags.health_listen;
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::Start(flags.listen, {&service}, server_options));
  RETURN_IF_ERROR(WriteAddressFile(flags.metrics_address_file, metrics->address()));
  RETURN_IF_ERROR(WriteAddressFile(flags.address_file, server->address()));
  spdlog::info("replay serves address={} run={} folder={} members={}", server->address(), flags.run_id, flags.folder,
               experiment.members_size());
  // A store whose disk has failed accepts nothing more. The next process reads what is durable.
  // A hung commit leaves the mutex free, so health() alone would not notice it.
  uint64_t group = 0;
  while (store->health().ok() && !Stop::Process().WaitFor(kTick)) {
    const uint64_t former = std::exchange(group, store->GroupInProgress());
    if (group == 0 || group != former) watchdog.Mark();
  }
  watchdog.Mark();  // stopping has the whole limit, also when the loop made no step
  server->SetServing(false);
  service.Drain();
  server->Shutdown(kDrainGrace);
  RETURN_IF_ERROR(store->health());
  const bool complete = store->Complete();
  spdlog::info("replay stopped complete={}", complete);
  return complete ? absl::OkStatus() : absl::CancelledError("stopped before the run was complete");
}

int Main(int argc, char** argv) {
  ReturnLargeBlocks(/*threshold_bytes=*/128 << 10);
  std::string message;
  if (!CheckProcessor(&message)) {
    std::fprintf(stderr, "datacom-replay: %s\n", message.c_str());
    return kExitFailure;
  }
  Flags flags;
  CLI::App app("The replay service of one run: keeps transitions, grants credit, serves draws.", "datacom-replay");
  app.set_version_flag("--version", BuildName());
  app.add_option("--experiment", flags.experiment, "Resolved experiment, a .textproto file");
  app.add_option("--run-id", flags.run_id, "Id of the run; the folder and all peers must belong to it");
  app.add_option("--dir", flags.folder, "Folder of the stored rows");
  app.add_option("--listen", flags.listen, "Address to listen on; port 0 picks one")
      ->capture_default_str()
      ->check(Address(0));
  app.add_option("--address-file", flags.address_file, "File to write the bound address to");
  app.add_option("--health-listen", flags.health_listen,
                 "Additional address that answers health checks without TLS, for probes; default: none")
      ->check(Address(0));
  app.add_option("--tls", flags.tls,
                 "Folder with ca.crt, tls.crt, tls.key and token: use mutual TLS, also for /metrics, and send the "
                 "run's token in each call");
  app.add_option("--metrics-listen", flags.metrics_listen, "Address of /metrics; default: none")->check(Address(0));
  app.add_option("--metrics-address-file", flags.metrics_address_file, "File to write the address of /metrics to");
  app.add_option("--healthcheck", flags.healthcheck, "Check whether the server at this address serves, then exit")
      ->check(Address(1));
  app.add_flag("--die-with-parent", flags.die_with_parent, "Stop when the process that started this one dies");
  app.add_option("--stall-minutes", flags.stall_minutes, kStallHelp)->capture_default_str()->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  absl::Status status;
  if (!flags.healthcheck.empty()) {
    const absl::StatusOr<Security> security = LoadSecurity(flags.tls);
    status = security.ok() ? CheckHealth(flags.healthcheck, kHealthDeadline, *security) : security.status();
  } else if (flags.experiment.empty() || flags.run_id.empty() || flags.folder.empty()) {
    status = absl::InvalidArgumentError("--experiment, --run-id and --dir are required");
  } else {
    if (flags.die_with_parent) DieWithParent(SIGTERM);
    Stop::InstallSignalHandlers();
    InitLog("replay");
    status = Serve(flags);
  }
  if (!status.ok() && !absl::IsCancelled(status))
    std::fprintf(stderr, "datacom-replay: %s\n", std::string(status.message()).c_str());
  return ExitCode(status);
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) { return datacom::Main(argc, argv); }
