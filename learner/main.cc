// datacom-learner: the learner of a run. `datacom train` and containers start it.
#include <csignal>
#include <cstdio>
#include <stdexcept>

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
#include "common/rpc/address.h"
#include "common/rpc/channel.h"
#include "common/rpc/replay_client.h"
#include "learner/algorithms/algorithm.h"
#include "learner/run_learner.h"
#include "learner/setup.h"

namespace datacom::learner {
namespace {

constexpr std::chrono::milliseconds kHealthDeadline{5000}, kReadDeadline{5000};

struct Flags {
  ProcessOptions process;
  std::string experiment, replay, device, tls, healthcheck;
  bool die_with_parent = false;
  double stall_minutes = kStallMinutes;
};

void Declare(CLI::App* app, Flags* flags) {
  app->add_option("--experiment", flags->experiment, "Resolved experiment, a .textproto file");
  app->add_option("--run-id", flags->process.run_id, "Id of the run; the folder and all peers must belong to it");
  app->add_option("--run-dir", flags->process.run_dir, "Folder for records, checkpoints and policies");
  app->add_option("--replay", flags->replay, "Address of the replay service, host:port")->check(Address(1));
  app->add_option("--listen", flags->process.listen, "Address to listen on; port 0 picks one")->check(Address(0));
  app->add_option("--address-file", flags->process.address_file, "File to write the bound address to");
  app->add_option("--health-listen", flags->process.server.health_listen,
                  "Additional address that answers health checks without TLS, for probes; default: none")
      ->check(Address(0));
  app->add_option("--tls", flags->tls,
                  "Folder with ca.crt, tls.crt, tls.key and token: use mutual TLS, also for /metrics, and send the "
                  "run's token in each call");
  app->add_option("--metrics-listen", flags->process.metrics_listen,
                  "Address of /metrics; port 0 picks one; default: none")
      ->check(Address(0));
  app->add_option("--metrics-address-file", flags->process.metrics_address_file,
                  "File to write the address of /metrics to");
  app->add_option("--device", flags->device, "cpu or cuda, instead of learner.device of the experiment");
  app->add_flag("--resume", flags->process.must_resume,
                "Fail if there is no checkpoint. A checkpoint is continued with and without this flag");
  app->add_option("--healthcheck", flags->healthcheck, "Check whether the server at this address serves, then exit")
      ->check(Address(1));
  app->add_flag("--die-with-parent", flags->die_with_parent, "Stop when the process that started this one dies");
  app->add_option("--stall-minutes", flags->stall_minutes, kStallHelp)
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app->set_version_flag("--version", absl::StrCat("datacom-learner ", BuildName()));
}

absl::Status Run(Flags flags) {
  const std::pair<const char*, const std::string*> required[] = {{"--experiment", &flags.experiment},
                                                                 {"--run-id", &flags.process.run_id},
                                                                 {"--run-dir", &flags.process.run_dir},
                                                                 {"--replay", &flags.replay}};
  for (const auto& [name, value] : required) {
    if (value->empty()) return absl::InvalidArgumentError(absl::StrCat(name, " is required"));
  }
  absl::StatusOr<std::string> text = ReadFile(flags.experiment);
  if (!text.ok())
    return absl::InvalidArgumentError(absl::StrCat("--experiment: ", std::string(text.status().message())));
  ASSIGN_OR_RETURN(v1::Experiment experiment, ParseExperiment(*text, flags.experiment));
  if (!flags.device.empty()) experiment.mutable_learner()->set_device(flags.device);
  experiment = ResolveExperiment(std::move(experiment));
  RETURN_IF_ERROR(ValidateExperiment(experiment, TaskNames(), datacom::AlgorithmNames()));
  ASSIGN_OR_RETURN(const TaskModel task, MakeTaskModel(experiment.task(), experiment.task_options()));
  flags.process.settings = MakeRunSettings(experiment);
  ASSIGN_OR_RETURN(flags.process.algorithm, MakeAlgorithmConfig(experiment, task));
  ASSIGN_OR_RETURN(flags.process.known, MakeKnownRows(experiment, task));
  ASSIGN_OR_RETURN(flags.process.server.security, LoadSecurity(flags.tls));
  flags.process.metrics_tls = flags.tls;

  ProcessSeams seams;
  seams.make_algorithm = [](const AlgorithmConfig& config) { return MakeAlgorithm(config); };
  const Watchdog watchdog("the training loop", Minutes(flags.stall_minutes));
  seams.wait_for_stop = [&watchdog](std::chrono::milliseconds timeout) {  // called at every update and every wait
    watchdog.Mark();
    return timeout.count() == 0 ? Stop::Process().requested() : Stop::Process().WaitFor(timeout);
  };
  seams.alive = [&watchdog] { watchdog.Mark(); };
  seams.open_draws = [&flags](uint64_t fingerprint, uint32_t incarnation) {
    return DrawStream::Open(
        {MakeChannel(flags.replay, flags.process.server.security), flags.process.run_id, fingerprint, incarnation});
  };
  const std::shared_ptr<grpc::Channel> replay = MakeChannel(flags.replay, flags.process.server.security);
  seams.read_rows = [&flags, replay](uint32_t member, uint64_t from, uint64_t to, const auto& consume) {
    v1::ReadRangeRequest request;
    *request.mutable_hello() = MakeHello(flags.process.run_id, 0);
    request.set_member(member);
    request.set_from(from);
    request.set_to(to);
    return ReadRange(replay, request, kReadDeadline, consume);
  };
  return RunLearner(flags.process, task, seams);
}

int Main(int argc, char** argv) {
  // More than an encoded snapshot of usual size, so that publishing does not map memory.
  ReturnLargeBlocks(/*threshold_bytes=*/1 << 20);
  std::string message;
  if (!CheckProcessor(&message)) {
    std::fprintf(stderr, "datacom-learner: %s\n", message.c_str());
    return kExitFailure;
  }
  Flags flags;
  CLI::App app("The learner of a datacom run: updates all members, serves their policies, writes the run's records.");
  Declare(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (!flags.healthcheck.empty()) {
    const absl::StatusOr<Security> security = LoadSecurity(flags.tls);
    const absl::Status health =
        security.ok() ? CheckHealth(flags.healthcheck, kHealthDeadline, *security) : security.status();
    if (!health.ok()) std::fprintf(stderr, "datacom-learner: %s\n", std::string(health.message()).c_str());
    return ExitCode(health);
  }
  std::string arithmetic;
  try {
    arithmetic = CpuArithmetic();
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "datacom-learner: %s\n", error.what());
    return kExitUsage;
  }
  RaiseOpenFileLimit();
  InitLog("learner");
  spdlog::info("arithmetic: {}", arithmetic);
  Stop::InstallSignalHandlers();
  if (flags.die_with_parent) DieWithParent(SIGTERM);
  const absl::Status status = Run(std::move(flags));
  if (status.ok()) {
    spdlog::info("the run is complete");
  } else if (!absl::IsCancelled(status)) {
    spdlog::error("{}", status.ToString());
  }
  return ExitCode(status);
}

}  // namespace
}  // namespace datacom::learner

int main(int argc, char** argv) { return datacom::learner::Main(argc, argv); }
