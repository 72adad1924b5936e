// datacom-render: films and pictures of episodes, feasibility maps, simulation of recorded violations, and the making
// and checking of task files (`task`), which ends with a picture.
#include <filesystem>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "actor/play/check_task.h"
#include "actor/play/new_task.h"
#include "actor/play/violation.h"
#include "actor/render/render_command.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/base/version.h"
#include "common/base/whole_number.h"
#include "common/records/best_epoch.h"

namespace datacom {
namespace {

void AddOptions(CLI::App* app, RenderCommand* command) {
  PlaybackOptions& playback = command->playback;
  app->add_option("what", playback.what, "Run folder, or task name");
  app->add_option("--out", command->out, "FILE.mp4 or FILE.png; for a map FILE.png, .json or .csv");
  app->add_option("--member", playback.member, "Member of the run (0)")->check(WholeNumber<uint32_t>(0));
  app->add_option("--epoch", playback.epoch, "Epoch of the run, last or best; for a map several: 0,2,last, or all");
  app->footer(BestEpochRule());
  app->add_option("--episode", playback.episode, "Episode of the run's evaluation, or of eval with more --episodes (0)")
      ->check(WholeNumber<uint32_t>(0));
  app->add_option("--seed", playback.seed, "Seed of start and actions; default: the run's, for a task 0")
      ->check(WholeNumber<uint64_t>(0));
  app->add_option("--actions", playback.actions, "For a task: a CSV file, zero or random (random)");
  app->add_option("--init", playback.init, "For a task: start values, key=value,...");
  app->add_option("--set", playback.set, "Changes a task option, as in task_options.horizon=100; repeatable")
      ->allow_extra_args(false);
  app->add_option("--camera", command->camera, "Name of a camera of the model; default: the first fixed one");
  app->add_option("--width", command->width, "Frame width in pixels (960; in a sheet 480)")->check(WholeNumber<int>(1));
  app->add_option("--height", command->height, "Frame height in pixels (540; in a sheet 270)")
      ->check(WholeNumber<int>(1));
  app->add_option("--fps", command->fps, "Frames per second of a film, which plays in real time")
      ->capture_default_str();
  app->add_option("--frames", command->frames, "For a PNG: frames in a sheet, evenly spaced (1: only the last)")
      ->check(WholeNumber<int>(1));
  app->add_option("--step", command->step, "The last step to show; default: the episode's last")
      ->check(WholeNumber<uint32_t>(0));
  app->add_flag("--map", command->map, "Draw a map of the feasibility value function instead");
  app->add_option("--slice", command->slice, "For a map: name of a slice of the task; default: its first");
  app->add_option("--resolution", command->resolution, "For a map: points per side")
      ->check(WholeNumber<int>(1))
      ->capture_default_str();
}

struct ReplayFlags {
  ViolationCommand violation;
  RenderCommand picture;
};

CLI::App* AddReplay(CLI::App* app, ReplayFlags* flags) {
  RenderCommand& picture = flags->picture;
  CLI::App* command =
      app->add_subcommand("replay-violation", "Simulate a violation of training again and compare it with the ledger");
  command->add_option("run_dir", flags->violation.run_dir, "Run folder")->required();
  command->add_option("id", flags->violation.id, "Id in the run's ledger/violations.csv")
      ->required()
      ->check(WholeNumber<uint64_t>(0));
  command->add_option("--out", picture.out, "FILE.mp4: film of the episode; FILE.png: picture of the violation");
  command->add_option("--camera", picture.camera, "Name of a camera of the model; default: the first fixed one");
  command->add_option("--frames", picture.frames, "For a PNG: frames in a sheet of the whole episode")
      ->check(WholeNumber<int>(1));
  command->add_flag("--csv", flags->violation.csv, "Print the episode's states, comma-separated, at full precision");
  command->footer("");  // not the rule of --epoch best: a violation names its policy
  return command;
}

// Compares with the ledger first, then draws.
absl::Status RunReplay(ReplayFlags flags) {
  RETURN_IF_ERROR(RunViolationCommand(flags.violation, &std::cout, &std::cerr));
  RenderCommand& picture = flags.picture;
  if (picture.out.empty()) return absl::OkStatus();
  picture.playback.what = flags.violation.run_dir;
  picture.playback.violation = flags.violation.id;
  return RunRenderCommand(picture, flags.violation.csv ? &std::cerr : &std::cout);
}

struct TaskFlags {
  NewTaskCommand making;
  CheckTaskCommand check;
  std::string picture;
  CLI::App *task = nullptr, *new_command = nullptr, *check_command = nullptr;
};

void AddTask(CLI::App* app, TaskFlags* flags) {
  flags->task = app->add_subcommand("task", "Make a task of a MuJoCo model, or check one");
  flags->task->require_subcommand(1);
  flags->task->footer("");
  CLI::App* making = flags->task->add_subcommand("new", "Make a folder with a copy of a model and a task file to edit");
  making->add_option("name", flags->making.folder, "Folder to make; its name is the task's")->required();
  making->add_option("--model", flags->making.model, "MJCF file")->required();
  CLI::App* check = flags->task->add_subcommand("check", "Play random actions in a task and print what happens");
  check->add_option("file", flags->check.file, "task.textproto")->required();
  check->add_option("--steps", flags->check.steps, "Control steps to play")
      ->capture_default_str()
      ->check(WholeNumber<uint32_t>(1));
  check->add_option("--seed", flags->check.seed, "Seed of starts and actions")
      ->capture_default_str()
      ->check(WholeNumber<uint64_t>(0));
  check->add_option("--picture", flags->picture, "PNG of the start; default: start.png beside the file");
  flags->new_command = making, flags->check_command = check;
}

// The picture comes before the verdict: it shows why a task fails. Without OpenGL there is none, which is no error.
absl::Status RunTask(TaskFlags flags) {
  if (flags.new_command->parsed()) return RunNewTaskCommand(flags.making, &std::cout);
  const absl::Status checked = RunCheckTaskCommand(flags.check, &std::cout);
  if (!checked.ok() && !absl::IsInternal(checked)) return checked;
  RenderCommand picture;
  picture.playback.what = flags.check.file;
  picture.playback.actions = "zero";
  picture.playback.seed = flags.check.seed;
  picture.step = 0;
  picture.out = flags.picture;
  if (picture.out.empty()) picture.out = (std::filesystem::path(flags.check.file).parent_path() / "start.png").string();
  if (const absl::Status drawn = RunRenderCommand(picture, &std::cout); !drawn.ok()) {
    if (!absl::IsUnavailable(drawn) && checked.ok()) return drawn;
    std::cout << "no picture: " << drawn.message() << '\n';
  }
  return checked;
}

int Main(int argc, char** argv) {
  std::string message;
  if (!CheckProcessor(&message)) {
    std::cerr << message << '\n';
    return kExitFailure;
  }
  RenderCommand command;
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  CLI::App app("Films and pictures of an episode, maps of the feasibility value function.", name);
  app.set_version_flag("--version", BuildName());
  AddOptions(&app, &command);
  ReplayFlags replay;
  CLI::App* const replaying = AddReplay(&app, &replay);
  TaskFlags task;
  AddTask(&app, &task);
  if (name == "datacom render") {  // the others are verbs of `datacom` itself
    for (CLI::App* other : {replaying, task.task}) other->disabled()->group("");
  }
  try {
    app.parse(argc, argv);
    const bool rendering = !replaying->parsed() && !task.task->parsed();
    if (rendering && command.playback.what.empty()) throw CLI::RequiredError("what");
    if (rendering && command.out.empty()) throw CLI::RequiredError("--out");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  InitLog("render");
  Stop::InstallSignalHandlers();
  const absl::Status status = replaying->parsed()   ? RunReplay(replay)
                              : task.task->parsed() ? RunTask(task)
                                                    : RunRenderCommand(command, &std::cout);
  if (status.ok()) return kExitOk;
  std::cerr << "datacom-render: " << status.message() << '\n';
  // A missing run, task, epoch or folder is wrong usage.
  return absl::IsNotFound(status) ? kExitUsage : ExitCode(status);
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) { return datacom::Main(argc, argv); }
