// render, demo, replay-violation and task.
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "common/base/flag_checks.h"
#include "common/base/output_file.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/records/best_epoch.h"
#include "deploy/tools/demo/demo.h"
#include "deploy/tools/play/commands.h"
#include "deploy/tools/play/violation.h"
#include "deploy/tools/policies/run_policies.h"
#include "deploy/tools/render/render_command.h"
#include "deploy/tools/verbs.h"

namespace datacom::tools {
namespace {

struct ViolationFlags {
  ViolationCommand violation;
  RenderCommand picture;
};

// Compares with the ledger first, then draws.
absl::Status RunReplayViolation(ViolationFlags flags) {
  ASSIGN_OR_RETURN(flags.violation.run_dir, RunFolderOf(flags.violation.run_dir));
  RenderCommand& picture = flags.picture;
  const bool taken = IsStandardOutput(picture.out);
  if (taken && flags.violation.csv) return absl::InvalidArgumentError("--csv and --out both use standard output");
  flags.violation.width = TerminalWidth(0);
  RETURN_IF_ERROR(RunViolationCommand(flags.violation, taken ? &std::cerr : &std::cout, &std::cerr));
  if (picture.out.empty()) return absl::OkStatus();
  picture.playback.what = flags.violation.run_dir;
  picture.playback.violation = flags.violation.id;
  return RunRenderCommand(picture, flags.violation.csv ? &std::cerr : &std::cout);
}

struct CheckFlags {
  CheckTaskCommand check;
  std::string picture;
};

// The picture comes before the verdict: it shows why a task fails. Without fonts there is none, which is no error.
absl::Status RunCheckTask(CheckFlags flags) {
  flags.check.width = TerminalWidth(0);
  std::ostream* const out = IsStandardOutput(flags.picture) ? &std::cerr : &std::cout;
  const absl::Status checked = RunCheckTaskCommand(flags.check, out);
  if (flags.picture.empty() || (!checked.ok() && !absl::IsInternal(checked))) return checked;
  RenderCommand picture;
  picture.playback.what = flags.check.file;
  picture.playback.actions = "zero";
  picture.playback.seed = flags.check.seed;
  picture.step = 0;
  picture.out = flags.picture;
  if (const absl::Status drawn = RunRenderCommand(picture, out); !drawn.ok()) {
    if (!absl::IsUnavailable(drawn) && checked.ok()) return drawn;
    *out << "no picture: " << drawn.message() << '\n';
  }
  return checked;
}

void AddFrameSize(CLI::App* verb, RenderCommand* command) {
  verb->add_option("--width", command->width, "Frame width in pixels of FILE.mp4 or FILE.png (960; in a sheet 480)")
      ->check(WholeNumber<int>(1));
  verb->add_option("--height", command->height, "Frame height in pixels of FILE.mp4 or FILE.png (540; in a sheet 270)")
      ->check(WholeNumber<int>(1));
}

}  // namespace

void AddDemo(CLI::App* app, int* exit_code) {
  auto command = std::make_shared<DemoCommand>();
  CLI::App* verb = app->add_subcommand("demo", kAboutDemo);
  verb->add_option("--port", command->port, "Port on this machine (a free one)")->check(WholeNumber<uint16_t>(0));
  verb->add_flag_function(
      "--no-browser", [command](int64_t) { command->browser = false; }, "Only print the address");
  verb->callback([command, exit_code] { *exit_code = Finish(RunDemoCommand(*command, &std::cout)); });
}

void AddRender(CLI::App* app, int* exit_code) {
  auto command = std::make_shared<RenderCommand>();
  PlaybackOptions& playback = command->playback;
  CLI::App* verb = app->add_subcommand("render", kAboutRender);
  verb->add_option("what", playback.what, "Run folder, shipped:NAME, results:NAME, or task name")->required();
  verb->add_option(
          "--out", command->out,
          "FILE.html (a page that plays the episode), FILE.mp4 (with ffmpeg) or FILE.png; for a map FILE.png, .json or "
          ".csv; - writes a PNG to standard output")
      ->required();
  verb->add_option("--member", playback.member, "Member of the run (0)")->check(WholeNumber<uint32_t>(0));
  verb->add_option("--epoch", playback.epoch, "Epoch of the run, last or best; for a map several: 0,2,last, or all");
  verb->footer(BestEpochRule());
  verb->add_option("--episode", playback.episode,
                   "Episode of the run's evaluation, or of eval with more --episodes (0)")
      ->check(WholeNumber<uint32_t>(0));
  verb->add_option("--seed", playback.seed, "Seed of start and actions; default: the run's, for a task 0")
      ->check(WholeNumber<uint64_t>(0));
  verb->add_option("--actions", playback.actions, "For a task: a CSV file, zero or random (random)");
  verb->add_option("--init", playback.init, "For a task: start values, key=value,...");
  verb->add_option("--set", playback.set, "Changes a task option, as in task_options.horizon=100; repeatable")
      ->allow_extra_args(false);
  verb->add_option("--camera", command->camera, "Name of a camera of the model; default: the first fixed one");
  AddFrameSize(verb, command.get());
  verb->add_option("--fps", command->fps, "Frames per second of a film, which plays in real time")
      ->capture_default_str();
  verb->add_option("--max-frames", command->max_frames,
                   "Most frames of a film, .html or .mp4; a longer episode gets fewer a second")
      ->check(WholeNumber<int>(2));
  verb->add_option("--frames", command->frames, "For a PNG: frames in a sheet, evenly spaced (1: only the last)")
      ->check(WholeNumber<int>(1));
  verb->add_option("--step", command->step, "The last step to show; default: the episode's last")
      ->check(WholeNumber<uint32_t>(0));
  CLI::Option* const map =
      verb->add_flag("--map", command->map, "Draws a map of the feasibility value function instead");
  for (const char* of_an_episode : {"--episode", "--seed", "--actions", "--init", "--camera", "--width", "--height",
                                    "--fps", "--max-frames", "--frames", "--step"}) {
    verb->get_option(of_an_episode)->excludes(map);
  }
  verb->add_option("--slice", command->slice, "For a map: name of a slice of the task; default: its first")->needs(map);
  verb->add_option("--resolution", command->resolution, "For a map: points per side")
      ->needs(map)
      ->check(WholeNumber<int>(1))
      ->capture_default_str();
  verb->callback([command, exit_code] { *exit_code = Finish(RunRenderCommand(*command, &std::cout)); });
}

void AddReplayViolation(CLI::App* app, int* exit_code) {
  auto flags = std::make_shared<ViolationFlags>();
  RenderCommand& picture = flags->picture;
  CLI::App* verb = app->add_subcommand("replay-violation", kAboutReplayViolation);
  verb->add_option("run_dir", flags->violation.run_dir, "Run folder, shipped:NAME or results:NAME")->required();
  verb->add_option("id", flags->violation.id, "Id in its ledger/violations.csv")
      ->required()
      ->check(WholeNumber<uint64_t>(0));
  verb->add_option(
      "--out", picture.out,
      "FILE.html: a page that plays the episode; FILE.mp4: film (with ffmpeg); FILE.png: picture of the violation");
  verb->add_option("--camera", picture.camera, "Name of a camera of the model; default: the first fixed one");
  verb->add_option("--frames", picture.frames, "For a PNG: frames in a sheet of the whole episode")
      ->check(WholeNumber<int>(1));
  AddFrameSize(verb, &picture);
  verb->add_flag("--csv", flags->violation.csv, "Prints the episode's states, comma-separated, at full precision");
  verb->callback([flags, exit_code] { *exit_code = Finish(RunReplayViolation(*flags)); });
}

void AddTask(CLI::App* app, int* exit_code) {
  CLI::App* verb = app->add_subcommand("task", kAboutTask);
  verb->require_subcommand(1);
  auto making = std::make_shared<NewTaskCommand>();
  CLI::App* create = verb->add_subcommand("new", "Makes a folder with a copy of a model and a task file to edit");
  create->add_option("name", making->folder, "Folder to make; its name is the task's")->required();
  create->add_option("--model", making->model, "MJCF file")->required();
  create->add_flag("--no-visual", making->no_visual,
                   "Leave out geoms that only draw a mesh (contype 0 and conaffinity 0), skins, and the files that "
                   "nothing uses then");
  create->callback([making, exit_code] { *exit_code = Finish(RunNewTaskCommand(*making, &std::cout)); });
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* check = verb->add_subcommand("check", "Plays random actions in a task and prints what happens");
  check->add_option("file", flags->check.file, "task.textproto")->required();
  check->add_option("--steps", flags->check.steps, "Control steps to play")
      ->capture_default_str()
      ->check(WholeNumber<uint32_t>(1));
  check->add_option("--seed", flags->check.seed, "Seed of starts and actions")
      ->capture_default_str()
      ->check(WholeNumber<uint64_t>(0));
  check->add_option("--picture", flags->picture, "FILE.png to write: a picture of the start");
  check->callback([flags, exit_code] { *exit_code = Finish(RunCheckTask(*flags)); });
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
