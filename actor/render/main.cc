// datacom-render: pictures of what a run or a task does.
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "actor/render/render_command.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/base/version.h"

namespace datacom {
namespace {

void AddOptions(CLI::App* app, RenderCommand* command) {
  PlaybackOptions& playback = command->playback;
  app->add_option("what", playback.what, "Run folder, or task name")->required();
  app->add_option("--out", command->out, "FILE.mp4 or FILE.png; of a map FILE.png, .json or .csv")->required();
  app->add_option("--member", playback.member, "Member of the run (0)");
  app->add_option("--epoch", playback.epoch, "Epoch of the run, or last; of a map several: 0,2,last, or all");
  app->add_option("--episode", playback.episode, "Episode of the run's evaluation (0)");
  app->add_option("--seed", playback.seed, "Of start and actions; default: the run's own, of a task 0");
  app->add_option("--actions", playback.actions, "Of a task: a CSV file, zero or random (random)");
  app->add_option("--init", playback.init, "Of a task: start values, key=value,...");
  app->add_option("--set", playback.set, "path=value, changes the experiment (task options)")->allow_extra_args(false);
  app->add_option("--camera", command->camera, "One of the model's cameras; default: its first fixed one");
  app->add_option("--width", command->width, "Of a frame, pixels (960; in a sheet 480)");
  app->add_option("--height", command->height, "Of a frame, pixels (540; in a sheet 270)");
  app->add_option("--fps", command->fps, "Frames a second of a film, which is real time")->capture_default_str();
  app->add_option("--frames", command->frames, "Of a PNG: a sheet of so many, evenly spaced (1: the last alone)");
  app->add_option("--step", command->step, "The last step to show; default: the episode's");
  app->add_flag("--map", command->map, "A map of the feasibility value function instead");
  app->add_option("--slice", command->slice, "Of a map: the task's slice; default: its first");
  app->add_option("--resolution", command->resolution, "Of a map: points a side")->capture_default_str();
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  InitLog("render");
  Stop::InstallSignalHandlers();
  const absl::Status status = RunRenderCommand(command, &std::cout);
  if (status.ok()) return kExitOk;
  std::cerr << "datacom-render: " << status.message() << '\n';
  // A run, task, epoch or folder that a person named and that is not there is wrong usage.
  return absl::IsNotFound(status) ? kExitUsage : ExitCode(status);
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) { return datacom::Main(argc, argv); }
