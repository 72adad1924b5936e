// datacom-actor: acts (run) and evaluates (evaluate) for a run.
#include <unistd.h>

#include <array>
#include <csignal>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "actor/actor_process.h"
#include "common/base/log.h"
#include "common/base/machine.h"
#include "common/base/stall.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/base/version.h"
#include "common/rpc/address.h"
#include "common/rpc/channel.h"

namespace datacom {
namespace {

struct Flags {
  ProcessOptions process;
  std::string healthcheck;
  bool evaluate = false;
  bool die_with_parent = false;
};

void AddProcessFlags(CLI::App* app, Flags* flags) {
  ProcessOptions& process = flags->process;
  app->add_option("--replay", process.replay, "Replay service, host:port")->check(Address(1));
  app->add_option("--learner", process.learner, "Learner service, host:port")->check(Address(1));
  app->add_option("--tls", process.tls,
                  "Folder with ca.crt, tls.crt, tls.key and token: use mutual TLS, also for /metrics, and send the "
                  "run's token in each call");
  app->add_option("--run-id", process.run_id, "Id of the run");
  app->add_option("--name", process.name, "Name of this process, stable over restarts; default: the host name");
  app->add_option("--envs", process.environments, "Environments to step")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app->add_option("--listen", process.listen, "Address of the health service")
      ->capture_default_str()
      ->check(Address(0));
  app->add_option("--address-file", process.address_file, "File to write the bound health address to");
  app->add_option("--metrics-listen", process.metrics_listen, "Address of /metrics; empty: none")
      ->capture_default_str()
      ->check(Address(0));
  app->add_option("--metrics-address-file", process.metrics_address_file, "File to write the bound metrics address to");
  app->add_flag("--evaluate", flags->evaluate, "Same as the command evaluate");
  app->add_flag("--die-with-parent", flags->die_with_parent, "Stop when the process that started this one dies");
  app->add_option("--stall-minutes", process.stall_minutes, kStallHelp)
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app->add_option("--healthcheck", flags->healthcheck, "Check whether the server at this address serves, then exit")
      ->check(Address(1));
}

absl::Status Missing(const std::string& flag) {
  return absl::InvalidArgumentError(flag + " is missing; `datacom-actor --help` lists the options");
}

// In a container or pod this is its own name.
std::string HostName() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "actor";
}

absl::Status RunProcess(const Flags& flags, bool evaluate) {
  if (flags.process.learner.empty()) return Missing("--learner HOST:PORT");
  if (flags.process.run_id.empty()) return Missing("--run-id");
  if (evaluate) return RunEvaluator(flags.process);
  if (flags.process.replay.empty()) return Missing("--replay HOST:PORT");
  return RunActor(flags.process);
}

int Finish(const absl::Status& status) {
  if (absl::IsCancelled(status)) {
    spdlog::info("stopped: {}", std::string(status.message()));
  } else if (!status.ok()) {
    spdlog::error("{}", status.ToString());
  }
  return ExitCode(status);
}

int Main(int argc, char** argv) {
  std::string message;
  if (!CheckProcessor(&message)) {
    std::cerr << message << '\n';
    return kExitFailure;
  }
  Flags flags;
  CLI::App app("Acts in environments for a run, evaluates its policies.", "datacom-actor");
  app.set_version_flag("--version", BuildName());
  app.require_subcommand(0, 1);
  AddProcessFlags(&app, &flags);
  app.add_subcommand("run", "Act until the run has all its rows (default)")->fallthrough();
  CLI::App* evaluate = app.add_subcommand("evaluate", "Play evaluations until the run is finished")->fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (flags.die_with_parent) DieWithParent(SIGTERM);
  if (!flags.healthcheck.empty()) {
    const absl::Status health = CheckHealth(flags.healthcheck, std::chrono::seconds(3));
    if (!health.ok()) std::cerr << health.ToString() << '\n';
    return health.ok() ? kExitOk : kExitFailure;
  }
  const bool evaluating = flags.evaluate || evaluate->parsed();
  if (flags.process.name.empty()) flags.process.name = HostName();
  RaiseOpenFileLimit();
  InitLog(evaluating ? "evaluator" : "actor");
  Stop::InstallSignalHandlers();
  return Finish(RunProcess(flags, evaluating));
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) { return datacom::Main(argc, argv); }
