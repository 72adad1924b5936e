// datacom-render: pictures of what a run or a task does.
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
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
  app->add_option("--out", command->out, "FILE.mp4 or FILE.png; of a map FILE.png, .json or .csv");
  app->add_option("--member", playback.member, "Member of the run (0)")->check(WholeNumber<uint32_t>(0));
  app->add_option("--epoch", playback.epoch, "Epoch of the run, last or best; of a map several: 0,2,last, or all");
  app->footer(kBestEpochRule);
  app->add_option("--episode", playback.episode, "Episode of the run's evaluation, or of a longer eval --episodes (0)")
      ->check(WholeNumber<uint32_t>(0));
  app->add_option("--seed", playback.seed, "Of start and actions; default: the run's own, of a task 0")
      ->check(WholeNumber<uint64_t>(0));
  app->add_option("--actions", playback.actions, "Of a task: a CSV file, zero or random (random)");
  app->add_option("--init", playback.init, "Of a task: start values, key=value,...");
  app->add_option("--set", playback.set, "path=value, changes the experiment (task options)")->allow_extra_args(false);
  app->add_option("--camera", command->camera, "One of the model's cameras; default: its first fixed one");
  app->add_option("--width", command->width, "Of a frame, pixels (960; in a sheet 480)")->check(WholeNumber<int>(1));
  app->add_option("--height", command->height, "Of a frame, pixels (540; in a sheet 270)")->check(WholeNumber<int>(1));
  app->add_option("--fps", command->fps, "Frames a second of a film, which is real time")->capture_default_str();
  app->add_option("--frames", command->frames, "Of a PNG: a sheet of so many, evenly spaced (1: the last alone)")
      ->check(WholeNumber<int>(1));
  app->add_option("--step", command->step, "The last step to show; default: the episode's")
      ->check(WholeNumber<uint32_t>(0));
  app->add_flag("--map", command->map, "A map of the feasibility value function instead");
  app->add_option("--slice", command->slice, "Of a map: the task's slice; default: its first");
  app->add_option("--resolution", command->resolution, "Of a map: points a side")
      ->check(WholeNumber<int>(1))
      ->capture_default_str();
}

struct ReplayFlags {
  ViolationCommand violation;
  RenderCommand picture;
};

CLI::App* AddReplay(CLI::App* app, ReplayFlags* flags) {
  RenderCommand& picture = flags->picture;
  CLI::App* command = app->add_subcommand("replay-violation", "Simulate a violation of training again, and check it");
  command->add_option("run_dir", flags->violation.run_dir, "Run folder")->required();
  command->add_option("id", flags->violation.id, "Of the run's ledger/violations.csv")
      ->required()
      ->check(WholeNumber<uint64_t>(0));
  command->add_option("--out", picture.out, "FILE.mp4: its episode; FILE.png: the violation");
  command->add_option("--camera", picture.camera, "One of the model's cameras; default: its first fixed one");
  command->add_option("--frames", picture.frames, "Of a PNG: a sheet of so many frames of the whole episode")
      ->check(WholeNumber<int>(1));
  command->add_flag("--csv", flags->violation.csv, "The episode's states on standard output, 17 digits");
  return command;
}

// Checks first, then draws.
absl::Status RunReplay(ReplayFlags flags) {
  RETURN_IF_ERROR(RunViolationCommand(flags.violation, &std::cout, &std::cerr));
  RenderCommand& picture = flags.picture;
  if (picture.out.empty()) return absl::OkStatus();
  picture.playback.what = flags.violation.run_dir;
  picture.playback.violation = flags.violation.id;
  return RunRenderCommand(picture, flags.violation.csv ? &std::cerr : &std::cout);
}

int Main(int argc, char** argv) {
  std::string message;
  if (!CheckProcessor(&message)) {
    std::cerr << message << '\n';
    return kExitFailure;
  }
  RenderCommand command;
  CLI::App app("datacom-render: films and pictures of an episode, maps of the feasibility value function");
  app.set_version_flag("--version", Version() + " " + Revision());
  AddOptions(&app, &command);
  ReplayFlags replay;
  const CLI::App* const replaying = AddReplay(&app, &replay);
  try {
    app.parse(argc, argv);
    if (!replaying->parsed() && command.playback.what.empty()) throw CLI::RequiredError("what");
    if (!replaying->parsed() && command.out.empty()) throw CLI::RequiredError("--out");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  InitLog("render");
  Stop::InstallSignalHandlers();
  const absl::Status status = replaying->parsed() ? RunReplay(replay) : RunRenderCommand(command, &std::cout);
  if (status.ok()) return kExitOk;
  std::cerr << "datacom-render: " << status.message() << '\n';
  // A run, task, epoch or folder that a person named and that is not there is wrong usage.
  return absl::IsNotFound(status) ? kExitUsage : ExitCode(status);
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) { return datacom::Main(argc, argv); }
