// datacom-learner: the learner of a run. `datacom train` and containers start it.
#include <filesystem>
#include <stdexcept>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/flag_checks.h"
#include "common/base/log.h"
#include "common/base/machine.h"
#include "common/base/stall.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/config/task_files.h"
#include "common/rpc/channel.h"
#include "common/rpc/replay_client.h"
#include "learner/algorithms/algorithm.h"
#include "learner/run_learner.h"
#include "learner/setup.h"

namespace datacom::learner {
namespace {

constexpr std::chrono::milliseconds kReadDeadline{5000};

struct Flags {
  ProcessOptions process;
  std::string replay, device;
};

absl::Status Run(Flags flags) {
  RETURN_IF_ERROR(RequireFlags({{"--experiment", &flags.process.experiment_file},
                                {"--run-id", &flags.process.run_id},
                                {"--run-dir", &flags.process.run_dir},
                                {"--replay", &flags.replay}}));
  if (!FileExists(flags.process.experiment_file)) {
    return absl::InvalidArgumentError(absl::StrCat("--experiment: there is no file ", flags.process.experiment_file));
  }
  ASSIGN_OR_RETURN(v1::Experiment experiment, LoadExperiment(flags.process.experiment_file, ""));
  const std::string folder = std::filesystem::path(flags.process.experiment_file).parent_path().string();
  RETURN_IF_ERROR(CheckTaskFiles(folder, experiment.task_options()));
  if (!flags.device.empty()) experiment.mutable_learner()->set_device(flags.device);
  experiment = ResolveExperiment(std::move(experiment));
  RETURN_IF_ERROR(ValidateExperiment(experiment, TaskNames(), AlgorithmNames()));
  ASSIGN_OR_RETURN(const TaskModel task, MakeTaskModel(experiment.task(), experiment.task_options()));
  flags.process.settings = MakeRunSettings(experiment);
  ASSIGN_OR_RETURN(flags.process.algorithm, MakeAlgorithmConfig(experiment, task));
  ASSIGN_OR_RETURN(flags.process.known, MakeKnownRows(experiment, task));
  ASSIGN_OR_RETURN(flags.process.server.security, LoadSecurity(flags.process.tls));
  flags.process.server.health_listen = flags.process.health_listen;

  ProcessSeams seams;
  seams.make_algorithm = &MakeAlgorithm;
  const Watchdog watchdog("the training loop", Minutes(flags.process.stall_minutes));
  seams.wait_for_stop = [&watchdog](std::chrono::milliseconds timeout) {  // called at every update and every wait
    watchdog.Mark();
    return timeout.count() == 0 ? Stop::Process().requested() : Stop::Process().WaitFor(timeout);
  };
  seams.alive = [&watchdog] { watchdog.Mark(); };
  seams.open_draws = [&flags](uint64_t fingerprint, uint32_t incarnation, uint64_t replay_start) {
    return DrawStream::Open({MakeChannel(flags.replay, flags.process.server.security), flags.process.run_id,
                             fingerprint, incarnation, replay_start});
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
  seams.finish_run = [&flags, replay](uint64_t completed_update, uint32_t incarnation) {
    v1::FinishRequest request;
    *request.mutable_hello() = MakeHello(flags.process.run_id, 0);
    request.set_completed_update(completed_update);
    request.set_incarnation(incarnation);
    return FinishRun(replay, request, kReadDeadline);
  };
  return RunLearner(flags.process, task, seams);
}

int Main(int argc, char** argv) {
  // More than an encoded snapshot of usual size, so that publishing does not map memory.
  ReturnLargeBlocks(/*threshold_bytes=*/1 << 20);
  Flags flags;
  Role role;
  role.program = "datacom-learner";
  role.about = "The learner of a datacom run: updates all members, serves their policies, writes the run's records.";
  role.name = "learner";
  role.flags = &flags.process;
  role.own = [&flags](CLI::App* app) {
    app->add_option("--run-dir", flags.process.run_dir, "Folder for records, checkpoints and policies");
    app->add_option("--replay", flags.replay, "Address of the replay service, host:port")->check(Address(1));
    app->add_option("--device", flags.device, "cpu or cuda, instead of learner.device of the experiment");
    app->add_flag("--resume", flags.process.must_resume,
                  "Fail if there is no checkpoint. A checkpoint is continued with and without this flag");
  };
  role.plugin_parts = {PluginPart::kLearner};
  role.run = [&flags](const std::string&) {
    try {
      spdlog::info("arithmetic: {}", CpuArithmetic());
    } catch (const std::invalid_argument& error) {
      return absl::InvalidArgumentError(error.what());
    }
    absl::Status status = Run(std::move(flags));
    if (status.ok()) spdlog::info("the run is complete");
    return status;
  };
  return RunRole(argc, argv, role);
}

}  // namespace
}  // namespace datacom::learner

int main(int argc, char** argv) { return datacom::learner::Main(argc, argv); }
// SPDX-License-Identifier: Apache-2.0
