// datacom-actor: acts (run) and evaluates (evaluate) for a run; plays policies and actions offline (eval, rollout);
// writes policies for robots (export).
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "actor/actor_process.h"
#include "actor/play/eval_command.h"
#include "actor/play/export_command.h"
#include "actor/play/rollout_command.h"
#include "common/base/log.h"
#include "common/base/machine.h"
#include "common/base/stall.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/base/version.h"
#include "common/base/whole_number.h"
#include "common/records/best_epoch.h"
#include "common/rpc/address.h"
#include "common/rpc/channel.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "datacom/v1/task.pb.h"

namespace datacom {
namespace {

struct Flags {
  ProcessOptions process;
  EvalCommand eval;
  RolloutCommand rollout;
  ExportCommand exporting;
  std::string task_file, experiment_folder;
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

CLI::App* AddEval(CLI::App* app, Flags* flags) {
  EvalCommand& eval = flags->eval;
  CLI::App* command = app->add_subcommand("eval", "Play a policy and print the paper's metrics");
  command->add_option("what", eval.what, "Run folder; with --policy also a task's name")->required();
  command->add_option("--policy", eval.policy,
                      "zeros, random, scripted or the name of a scripted policy, instead of the run's");
  command->add_option("--member", eval.member, "Member; default: all")->check(WholeNumber<uint32_t>(0));
  command->add_option("--epoch", eval.epoch, "Epoch number, last or best (last)");
  command->add_option("--episodes", eval.episodes, "Episodes; default: as in the run")->check(WholeNumber<uint32_t>(1));
  command->add_option("--seed", eval.seed, "Seed of starts and noise; default: as in the run's evaluation")
      ->check(WholeNumber<uint64_t>(0));
  command->add_option("--set", eval.set, "Changes a task option, as in task_options.puck_region=adjusted; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--csv", eval.csv, "One row per episode, comma-separated, at full precision");
  command->footer(BestEpochRule());
  return command;
}

CLI::App* AddRollout(CLI::App* app, Flags* flags) {
  RolloutCommand& rollout = flags->rollout;
  CLI::App* command = app->add_subcommand("rollout", "Play recorded actions, or one episode of a policy, in a task");
  command->add_option("task", rollout.task, "Task name")->required();
  command->add_option("--actions", rollout.actions, "CSV file with action columns");
  command->add_option("--policy", rollout.policy, "zeros, random, scripted or the name of a scripted policy");
  command->add_option("--seed", rollout.seed, "Seed of the reset and of random actions")
      ->check(WholeNumber<uint64_t>(0));
  command->add_option("--init", rollout.init, "Start values, key=value,...");
  command->add_option("--set", rollout.set, "Changes a task option, as in task_options.horizon=500; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--csv", rollout.csv, "Comma-separated, at full precision");
  return command;
}

CLI::App* AddExport(CLI::App* app, Flags* flags) {
  ExportCommand& exporting = flags->exporting;
  CLI::App* command = app->add_subcommand("export", "Write a run's policy as one file for a robot");
  command->add_option("run_dir", exporting.run_dir, "Run folder")->required();
  command->add_option("--member", exporting.member, "Member")->capture_default_str()->check(WholeNumber<uint32_t>(0));
  command->add_option("--epoch", exporting.epoch, "Epoch number, last or best")->capture_default_str();
  command->add_option("--out", exporting.file, "File to write")->required();
  command->footer(BestEpochRule());
  return command;
}

// For the command, which links no MuJoCo: prints a TextTask in binary form, or else what is wrong with it.
CLI::App* AddLoadTask(CLI::App* app, Flags* flags) {
  CLI::App* command =
      app->add_subcommand("load-task", "Compile a task file and print it for other programs")->group("");
  command->add_option("file", flags->task_file, "task.textproto")->required();
  command->add_option("--folder", flags->experiment_folder, "Folder of the experiment that names the file");
  return command;
}

int LoadTask(const Flags& flags) {
  std::string task = flags.task_file;
  v1::TaskOptions options;
  const absl::Status status = text::LoadTaskOf(flags.experiment_folder, &task, &options);
  std::cout << (status.ok() ? options.GetExtension(v1::text_task).SerializeAsString() : std::string(status.message()));
  return ExitCode(status);
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

// Prints for people instead of logging. A missing file, task or epoch is wrong usage.
int FinishCommand(const absl::Status& status) {
  if (!status.ok()) std::cerr << "datacom-actor: " << status.message() << '\n';
  return absl::IsNotFound(status) ? kExitUsage : ExitCode(status);
}

int Main(int argc, char** argv) {
  std::string message;
  if (!CheckProcessor(&message)) {
    std::cerr << message << '\n';
    return kExitFailure;
  }
  Flags flags;
  // As it was called: `datacom` when that command carries out eval, rollout or export with this program.
  CLI::App app("Acts in environments for a run, evaluates its policies.",
               std::filesystem::path(argv[0]).filename().string());
  app.set_version_flag("--version", BuildName());
  app.require_subcommand(0, 1);
  AddProcessFlags(&app, &flags);
  app.add_subcommand("run", "Act until the run has all its rows (default)")->fallthrough();
  CLI::App* evaluate = app.add_subcommand("evaluate", "Play evaluations until the run is finished")->fallthrough();
  CLI::App* eval = AddEval(&app, &flags);
  CLI::App* rollout = AddRollout(&app, &flags);
  CLI::App* exporting = AddExport(&app, &flags);
  CLI::App* load_task = AddLoadTask(&app, &flags);
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
  if (load_task->parsed()) return LoadTask(flags);
  RaiseOpenFileLimit();
  InitLog(evaluating ? "evaluator" : "actor");
  Stop::InstallSignalHandlers();
  if (eval->parsed()) return FinishCommand(RunEvalCommand(flags.eval, &std::cout));
  if (rollout->parsed()) return FinishCommand(RunRolloutCommand(flags.rollout, &std::cout));
  if (exporting->parsed()) return FinishCommand(RunExportCommand(flags.exporting, &std::cout));
  return Finish(RunProcess(flags, evaluating));
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) { return datacom::Main(argc, argv); }
