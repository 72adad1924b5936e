// eval, rollout, export, and load-task and model-fit, which `datacom` calls.
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/acting/acting_rule.h"
#include "common/base/flag_checks.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/records/best_epoch.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task.pb.h"
#include "deploy/tools/play/commands.h"
#include "deploy/tools/play/model_fit.h"
#include "deploy/tools/verbs.h"

namespace datacom::tools {
namespace {

constexpr uint32_t kQuickSteps = 300;
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
  ASSIGN_OR_RETURN(const ModelFit fit, MeasureFit(experiment.task(), options, {0, kQuickSteps, kQuickSeconds}));
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

}  // namespace

void AddEval(CLI::App* app, int* exit_code) {
  auto eval = std::make_shared<EvalCommand>();
  CLI::App* verb = app->add_subcommand("eval", kAboutEval);
  verb->add_option("what", eval->what, "Run folder, shipped:NAME or results:NAME; with --policy also a task's name")
      ->required();
  verb->add_option("--policy", eval->policy,
                   "zeros, random, scripted or the name of a scripted policy, instead of the run's");
  verb->add_option("--member", eval->member, "Member; default: all")->check(WholeNumber<uint32_t>(0));
  verb->add_option("--epoch", eval->epoch, "Epoch number, last or best (last)");
  verb->add_option("--episodes", eval->episodes, "Episodes; default: as in the run")->check(WholeNumber<uint32_t>(1));
  verb->add_option("--seed", eval->seed, "Seed of starts and noise; default: as in the run's evaluation")
      ->check(WholeNumber<uint64_t>(0));
  verb->add_option("--set", eval->set, "Changes a task option, as in task_options.puck_region=adjusted; repeatable")
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
  verb->add_option("task", rollout->task, "Task name")->required();
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

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
