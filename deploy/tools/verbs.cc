#include "deploy/tools/verbs.h"

#include <signal.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/acting/acting_rule.h"
#include "common/base/files.h"
#include "common/base/flag_checks.h"
#include "common/base/machine.h"
#include "common/base/output_file.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/records/best_epoch.h"
#include "common/records/dataset.h"
#include "common/records/message_json.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task.pb.h"
#include "deploy/tools/archive/archive.h"
#include "deploy/tools/demo/demo.h"
#include "deploy/tools/export_dataset.h"
#include "deploy/tools/play/commands.h"
#include "deploy/tools/play/model_fit.h"
#include "deploy/tools/play/violation.h"
#include "deploy/tools/policies/run_policies.h"
#include "deploy/tools/render/render_command.h"
#include "deploy/tools/verify/verify.h"
#include "nlohmann/json.hpp"
#include "replay/settings.h"

namespace datacom::tools {
namespace {

constexpr double kQuickSeconds = 0.5;  // of processor time

// Whether the rule reads f and G: it refuses a task without them.
bool ReadsModel(const std::string& rule, TaskModel model) {
  if (!CheckActingRuleTask(rule, model).ok()) return false;
  model.without_map = "none";
  return !CheckActingRuleTask(rule, model).ok();
}

// One line on f and G of the experiment's task if its algorithm reads them; else nothing.
absl::StatusOr<std::string> FitLine(const std::string& file) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, LoadExperiment(file, ""));
  const v1::TaskOptions& options = experiment.task_options();
  const AlgorithmInfo* const algorithm = FindAlgorithm(experiment.algorithm());
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(experiment.task(), options));
  // f and G of a task of the register are the paper's, and nothing in a file can change them.
  if (algorithm == nullptr || !options.HasExtension(v1::text_task) || !ReadsModel(algorithm->acting_rule, model)) {
    return std::string();
  }
  ASSIGN_OR_RETURN(const ModelFit fit, MeasureFit(experiment.task(), options, {.seconds = kQuickSeconds}));
  return absl::StrCat(DescribeFit(fit), ". ", JudgeFit(fit),
                      fit.control_step > kGoodFit ? " `datacom task check` says more." : "", "\n");
}

void AddForms(CLI::App* verb, EvalCommand* eval) {
  using Form = EvalCommand::Form;
  CLI::Option* const csv = verb->add_flag_function(
      "--csv", [eval](int64_t) { eval->form = Form::kCsv; }, "One row per episode, comma-separated, at full precision");
  verb->add_flag_function(
          "--json", [eval](int64_t) { eval->form = Form::kJson; },
          "The same as a list of objects, with the means of each member, for programs")
      ->excludes(csv);
}

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
  if (!flags.picture.empty()) RETURN_IF_ERROR(CheckOutputFile("--picture", flags.picture));
  flags.check.width = TerminalWidth(0);
  std::ostream* const out = IsStandardOutput(flags.picture) ? &std::cerr : &std::cout;
  const absl::Status checked = RunCheckTaskCommand(flags.check, out);
  if (flags.picture.empty() || (!checked.ok() && !absl::IsInternal(checked))) return checked;
  RenderCommand picture;
  picture.playback.what = flags.check.file;
  picture.playback.policy = "zeros";
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

// An archive or a run of a stranger may have any names.
void Print(const std::string& text) { std::fputs(ForTerminal(text).c_str(), stdout); }

// Arguments of export-dataset.
struct ExportFlags {
  std::string run_dir, members, rows;  // not parsed yet
  ExportOptions options;
};

// "2000-12000" -> rows [2000, 12000); "2000-" -> all rows from 2000.
absl::Status ParseRows(const std::string& text, ExportOptions* options) {
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  const bool open = ends.size() == 2 && ends[1].empty();
  if (ends.size() == 2 && absl::SimpleAtoi(ends[0], &options->first) &&
      (open || (absl::SimpleAtoi(ends[1], &options->end) && options->end > options->first))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--rows: \"", text, "\" is not a range such as 0-50000 (end excluded) or 50000-"));
}

absl::Status RunExport(ExportFlags flags) {
  const std::string file = flags.run_dir + "/experiment.textproto";
  if (!FileExists(file)) return NotARunFolder(flags.run_dir);
  ASSIGN_OR_RETURN(const v1::Experiment experiment, replay::ReadExperiment(file));
  ASSIGN_OR_RETURN(const replay::ReplaySetup setup, replay::SetUp(experiment));
  flags.options.rings = flags.run_dir + "/replay";
  if (!flags.members.empty()) {
    ASSIGN_OR_RETURN(flags.options.members, Annotate(ParseSeeds(flags.members), "--member"));
  }
  if (!flags.rows.empty()) RETURN_IF_ERROR(ParseRows(flags.rows, &flags.options));
  ASSIGN_OR_RETURN(const v1::DatasetManifest manifest, ExportDataset(flags.options, experiment, setup.schema));
  const bool open = flags.options.end == ExportOptions().end;
  for (const v1::DatasetMember& member : manifest.members()) {
    const bool fewer = flags.options.first < member.first_row() || (!open && member.end_row() < flags.options.end);
    Print(absl::StrFormat("member %u, seed %u: rows %u-%u%s, %u whole episodes, %u rows with cost > 0\n",
                          member.member(), member.seed(), member.first_row(), member.end_row(),
                          fewer ? " (all of --rows that it holds)" : "", member.episodes(), member.failures()));
  }
  Print(absl::StrFormat("dataset of %u rows of task %s: %s\n", RowsOf(manifest), experiment.task(), flags.options.out));
  return absl::OkStatus();
}

// The exit code: 0 sound, 1 damaged, 2 not a run folder.
int RunVerify(const std::string& run_dir, bool repair) {
  ReturnLargeBlocks(/*threshold_bytes=*/128 << 10);
  const absl::StatusOr<verify::Verification> verified = verify::VerifyRun(run_dir, repair);
  if (!verified.ok()) return Finish(verified.status(), /*json=*/false, kExitFailure);
  std::fputs(WrapLines(verified->text, TerminalWidth(0)).c_str(), stdout);
  return verified->sound ? kExitOk : kExitFailure;
}

absl::Status Show(const std::string& place, bool json) {
  ASSIGN_OR_RETURN(const auto store, archive::Store::Open(place));
  ASSIGN_OR_RETURN(const archive::Newest newest, archive::FindNewest(store.get(), place));
  if (json) {
    nlohmann::json object = {{"place", place}, {"run_id", nullptr}, {"update", nullptr}};
    if (newest.last > 0) object.update({{"run_id", newest.cut.run_id()}, {"update", newest.cut.update()}});
    std::printf("%s\n", JsonText(object).c_str());
  } else if (newest.last == 0) {
    Print(place + " holds no run\n");
  } else {
    Print(absl::StrFormat("%s holds update %u of run %s\n", place, newest.cut.update(), newest.cut.run_id()));
  }
  return absl::OkStatus();
}

struct CopyFlags {
  std::string from, to;
  bool own = false, json = false;
  archive::CopyOptions options;
};

absl::Status Copy(const CopyFlags& flags) {
  const std::string &from = flags.from, &to = flags.to;
  if (to.empty()) return Show(from, flags.json);
  if (FileExists(from + "/experiment.textproto")) {
    if (flags.own)
      return absl::InvalidArgumentError("--own: " + from + " is a run folder; name the place of an archive");
    ASSIGN_OR_RETURN(const archive::Copied copied, archive::CopyRun(from, to, flags.options));
    if (flags.options.only_check) return absl::OkStatus();
    Print(absl::StrFormat("%s holds update %u of %s: copied %.1f of %.1f MB, in %u objects\n", to, copied.update, from,
                          1e-6 * static_cast<double>(copied.bytes), 1e-6 * static_cast<double>(copied.all_bytes),
                          copied.objects));
    if (!copied.kept.value_or("").empty()) Print("old parts stay: " + *copied.kept + "\n");
    return absl::OkStatus();
  }
  if (flags.options.only_check) return NotARunFolder(from);
  if (flags.own) DieWithParent(SIGKILL);  // a `train` that starts again makes the copy again
  ASSIGN_OR_RETURN(const v1::ArchiveCut cut, archive::Restore(from, to, flags.own));
  Print(absl::StrFormat("%s is update %u of run %s, from %s\n", to, cut.update(), cut.run_id(), from));
  return absl::OkStatus();
}

}  // namespace

void AddEval(CLI::App* app, int* exit_code) {
  auto eval = std::make_shared<EvalCommand>();
  CLI::App* verb = app->add_subcommand("eval", kAboutEval);
  verb->add_option(
          "what", eval->what,
          "Run folder, shipped:NAME or results:NAME; with --policy also a task: its name or its task.textproto")
      ->required();
  verb->add_option("--policy", eval->policy,
                   "zeros, random, scripted or the name of a scripted policy, instead of the run's");
  verb->add_option("--member", eval->member, "Member; default: all")->check(WholeNumber<uint32_t>(0));
  verb->add_option("--epoch", eval->epoch, "Epoch number, last or best (last)");
  verb->add_option("--episodes", eval->episodes, "Episodes; default: as in the run")->check(WholeNumber<uint32_t>(1));
  verb->add_option("--seed", eval->seed, "Seed of starts and noise; default: as in the run's evaluation")
      ->check(WholeNumber<uint64_t>(0));
  verb->add_option("--init", eval->init, "Start values, key=value,...");
  verb->add_option("--set", eval->set, "Changes task_options.NAME or, of a run, constraints.known; repeatable")
      ->allow_extra_args(false);
  verb->add_option("--shield", eval->shield,
                   "on, off or both: with the learned part of the filter, without it, or the same episodes with and "
                   "without it (on)")
      ->check(CLI::IsMember({"on", "off", "both"}));
  AddForms(verb, eval.get());
  verb->footer(BestEpochRule());
  verb->callback([eval, exit_code] {
    eval->width = TerminalWidth(0);
    const bool json = eval->form == EvalCommand::Form::kJson;
    std::ostringstream list;  // stays empty if nothing can be played
    const absl::Status status = RunEvalCommand(*eval, json ? static_cast<std::ostream*>(&list) : &std::cout);
    std::cout << list.str();
    *exit_code = Finish(status, json && list.str().empty());
  });
}

void AddRollout(CLI::App* app, int* exit_code) {
  auto rollout = std::make_shared<RolloutCommand>();
  CLI::App* verb = app->add_subcommand("rollout", kAboutRollout);
  verb->add_option("task", rollout->task, "Name of a task, or its task.textproto")->required();
  verb->add_option("--actions", rollout->actions, "CSV file with action columns");
  verb->add_option("--policy", rollout->policy, "zeros, random, scripted or the name of a scripted policy");
  verb->add_option("--seed", rollout->seed, "Seed of the reset and of random actions")->check(WholeNumber<uint64_t>(0));
  verb->add_option("--init", rollout->init, "Start values, key=value,...");
  verb->add_option("--set", rollout->set, "Changes a task option, as in task_options.horizon=500; repeatable")
      ->allow_extra_args(false);
  verb->add_flag("--csv", rollout->csv, "Comma-separated, at full precision");
  verb->callback([rollout, exit_code] {
    rollout->width = TerminalWidth(0);
    *exit_code = Finish(RunRolloutCommand(*rollout, &std::cout));
  });
}

void AddExport(CLI::App* app, int* exit_code) {
  auto exported = std::make_shared<ExportCommand>();
  CLI::App* verb = app->add_subcommand("export", kAboutExport);
  verb->add_option("run_dir", exported->run_dir, "Run folder, shipped:NAME or results:NAME")->required();
  verb->add_option("--member", exported->member, "Member (the first one; with --format stored: all)")
      ->check(WholeNumber<uint32_t>(0));
  verb->add_option("--epoch", exported->epoch, "Epoch number, last or best (last; with --format stored: both)");
  verb->add_option("--out", exported->file,
                   "File to write, or - for standard output; of the format violations a folder, which gets ledger/")
      ->required();
  verb->add_option("--format", exported->format,
                   "policy: for the C library and datacom.Policy; onnx: policy and safety filter as an ONNX graph; "
                   "stored: the last and the best policy of the members in half precision, in one file; "
                   "violations: the largest violations of training with the steps before them, for replay-violation")
      ->capture_default_str()
      ->check(CLI::IsMember({"policy", "onnx", "stored", "violations"}));
  verb->add_option("--largest", exported->largest, "Violations to keep, one of an episode")
      ->capture_default_str()
      ->check(WholeNumber<uint32_t>(1));
  CLI::Option* const noise = verb->add_flag_function(
      "--noise", [exported](int64_t) { exported->input = onnx::GraphInput::kNoise; },
      "The ONNX graph takes standard normal numbers, too, as in training; otherwise it is deterministic");
  verb->add_flag_function(
          "--filter", [exported](int64_t) { exported->input = onnx::GraphInput::kProposed; },
          "The ONNX graph is only the filter: it takes somebody else's action, too")
      ->excludes(noise);
  verb->add_option("--pairs", exported->pairs, "Recorded inputs and outputs beside an ONNX file, OUT.pairs.csv")
      ->capture_default_str()
      ->check(WholeNumber<uint32_t>(0));
  verb->footer(BestEpochRule());
  verb->callback([exported, exit_code] { *exit_code = Finish(RunExportCommand(*exported, &std::cout)); });
}

// `datacom` links no MuJoCo. This verb prints TaskOptions with the task, in binary form, or on stdout too what is
// wrong.
void AddLoadTask(CLI::App* app, int* exit_code) {
  struct Flags {
    std::string task, folder, without_model;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = app->add_subcommand("load-task", "Loads a task and prints it for other programs")->group("");
  verb->add_option("task", flags->task, "task.textproto, or python:MODULE:CALLABLE")->required();
  verb->add_option("--folder", flags->folder, "Folder of the experiment that names the file");
  verb->add_option("--without-model", flags->without_model, "Why a Python environment is not asked for its model");
  verb->callback([flags, exit_code] {
    v1::TaskOptions options;
    if (!flags->without_model.empty()) {
      options.MutableExtension(v1::python_task)->set_without_model(flags->without_model);
    }
    const absl::Status status = LoadTaskOf(flags->folder, &flags->task, &options);
    std::cout << (status.ok() ? options.SerializeAsString() : std::string(status.message()));
    *exit_code = ExitCode(status);
  });
}

// `datacom train` prints what this verb prints.
void AddModelFit(CLI::App* app, int* exit_code) {
  auto file = std::make_shared<std::string>();
  CLI::App* verb = app->add_subcommand("model-fit", "Says how well f and G of an experiment's task predict")->group("");
  verb->add_option("experiment", *file, "experiment.textproto of a run folder")->required();
  verb->callback([file, exit_code] {
    const absl::StatusOr<std::string> line = FitLine(*file);
    if (line.ok()) std::cout << *line;
    *exit_code = Finish(line.status());
  });
}

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
  verb->add_option("what", playback.what,
                   "Run folder, shipped:NAME, results:NAME, or a task: its name or its task.textproto")
      ->required();
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
  CLI::Option* const actions =
      verb->add_option("--actions", playback.actions, "For a task: CSV file with action columns");
  verb->add_option("--policy", playback.policy,
                   "For a task: zeros, random, scripted or the name of a scripted policy (random)")
      ->excludes(actions);
  verb->add_option("--init", playback.init, "Start values, key=value,...");
  verb->add_option("--set", playback.set, "Changes task_options.NAME or, of a run, constraints.known; repeatable")
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
  for (const char* of_an_episode : {"--episode", "--seed", "--actions", "--policy", "--init", "--camera", "--width",
                                    "--height", "--fps", "--max-frames", "--frames", "--step"}) {
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
  CLI::Option* const out = verb->add_option(
      "--out", picture.out,
      "FILE.html: a page that plays the episode; FILE.mp4: film (with ffmpeg); FILE.png: picture of the violation");
  verb->add_option("--camera", picture.camera, "Name of a camera of the model; default: the first fixed one");
  verb->add_option("--frames", picture.frames, "For a PNG: frames in a sheet of the whole episode")
      ->check(WholeNumber<int>(1));
  AddFrameSize(verb, &picture);
  for (const char* of_picture : {"--camera", "--frames", "--width", "--height"}) {
    verb->get_option(of_picture)->needs(out);
  }
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

void AddExportDataset(CLI::App* app, int* exit_code) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* verb = app->add_subcommand("export-dataset", kAboutExportDataset);
  verb->add_option("run_dir", flags->run_dir, "Run folder")->required();
  verb->add_option("--out", flags->options.out, "Folder to create; must not exist")->required();
  verb->add_option("--member", flags->members, "Members: 0, 0-4 or 0,2; default: all");
  verb->add_option("--rows", flags->rows,
                   "Rows of each member, from 0: 0-50000 (end excluded) or 50000-; default: all");
  verb->callback([flags, exit_code] { *exit_code = Finish(RunExport(*flags), /*json=*/false, kExitFailure); });
}

void AddCopy(CLI::App* app, int* exit_code) {
  auto flags = std::make_shared<CopyFlags>();
  CLI::App* verb = app->add_subcommand("copy", kAboutCopy);
  verb->add_option("from", flags->from, "Run folder, or place of an archive")->required();
  CLI::Option* const to = verb->add_option("to", flags->to, "Place of an archive, or a new run folder");
  verb->add_flag("--own", flags->own,
                 "The new folder goes on writing the archive, as a resume by `train --archive` does; the folder that "
                 "wrote it so far may not any more")
      ->needs(to);
  verb->add_flag("--json", flags->json, "One JSON object that says what the place holds, without TO")->excludes(to);
  verb->add_flag("--check", flags->options.only_check,
                 "Copies nothing: says whether the run folder FROM may write to TO")
      ->needs(to);
  verb->add_flag("--keep-state", flags->options.keep_state)->group("");  // of `train --archive`, for `status`
  verb->callback([flags, exit_code] { *exit_code = Finish(Copy(*flags), flags->json); });
}

void AddVerify(CLI::App* app, int* exit_code) {
  struct Flags {
    std::string run_dir;
    bool repair = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = app->add_subcommand("verify", kAboutVerify);
  verb->add_option("run_dir", flags->run_dir, "Run folder; its processes may run")->required();
  verb->add_flag("--repair", flags->repair,
                 "Repairs what has one right answer: cuts unfinished tails, moves a damaged newest checkpoint aside, "
                 "rebuilds a failure ring, removes left-over *.tmp; only while nothing runs");
  verb->callback([flags, exit_code] { *exit_code = RunVerify(flags->run_dir, flags->repair); });
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
