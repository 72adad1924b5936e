// datacom list: prints the tasks, algorithms, experiments and sweeps, one per line, each with its description.
// datacom config: prints the resolved experiment, with every default filled in. datacom explain: what settings mean.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/files.h"
#include "common/base/output_file.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/config/explain.h"
#include "common/records/message_json.h"
#include "common/tasks/task.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/run_options.h"
#include "deploy/cli/sweep.h"
#include "deploy/cli/train_plan.h"
#include "deploy/cli/verbs.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {
namespace {

constexpr const char* kKinds[] = {"tasks", "algorithms", "experiments", "sweeps"};

// Whether an experiment is one to begin with: what is recommended (docs/recommended.md) for a robot that is told its
// limits, and for one that is not.
bool IsFirstChoice(const std::string& experiment) {
  return absl::EndsWith(experiment, "/from_scratch") || absl::EndsWith(experiment, "/limits_known");
}

// [{"name", "description"}]; of algorithms also "hyper", what they read, of experiments "first_choice".
absl::StatusOr<nlohmann::json> Entries(const std::string& kind) {
  nlohmann::json list = nlohmann::json::array();
  const auto add = [&list](const std::string& name, const std::string& description) -> nlohmann::json& {
    list.push_back({{"name", name}, {"description", description}});
    return list.back();
  };
  if (kind == "algorithms") {
    for (const AlgorithmInfo& one : Algorithms()) add(one.name, one.summary)["hyper"] = HyperParametersOf(one);
  } else if (kind == "tasks") {
    for (const std::string& name : TaskNames()) {
      ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(name, v1::TaskOptions()));
      add(name, model.spec.summary);
    }
  } else if (kind == "sweeps") {
    for (const std::string& name : ListTextprotos(SweepFolder())) {
      ASSIGN_OR_RETURN(const SweepInput input, LoadSweep(name));
      add(name, input.sweep.description());
    }
  } else {
    const std::string folder = ExperimentFolder();
    for (const std::string& name : ListTextprotos(folder)) {
      ASSIGN_OR_RETURN(const v1::Experiment experiment, LoadExperiment(name, folder));
      const std::string description = absl::StrReplaceAll(experiment.description(), {{"\n", " "}});
      add(name, description)["first_choice"] = IsFirstChoice(name);
    }
    if (list.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("there is no experiment in ", folder,
                                                     "; DATACOM_EXPERIMENTS names the folder of the experiments"));
    }
  }
  return list;
}

absl::Status ListOne(const std::string& kind) {
  ASSIGN_OR_RETURN(const nlohmann::json list, Entries(kind));
  std::vector<std::pair<std::string, std::string>> lines;
  for (const nlohmann::json& one : list) {
    lines.emplace_back(one["name"].get<std::string>() + (one.value("first_choice", false) ? " *" : ""),
                       one["description"].get<std::string>());
    if (!one.contains("hyper")) continue;
    const auto hyper = one["hyper"].get<std::vector<std::string>>();
    lines.emplace_back("", absl::StrCat("hyper: ", absl::StrJoin(hyper, ", ")));
  }
  size_t width = 0;
  for (const auto& [name, sentence] : lines) width = std::max(width, name.size());
  for (const auto& [name, sentence] : lines) {
    PrintWrapped(absl::StrFormat("%-*s  %s\n", static_cast<int>(width), name, sentence));
  }
  if (kind == "experiments") PrintWrapped("* begin with one of these\n");
  return absl::OkStatus();
}

// {"KIND": Entries}
absl::Status ListJson(const std::string& kind) {
  nlohmann::json lists = nlohmann::json::object();
  for (const char* each : kKinds) {
    if (!kind.empty() && kind != each) continue;
    ASSIGN_OR_RETURN(lists[each], Entries(each));
  }
  std::printf("%s\n", JsonText(lists, 1).c_str());
  return absl::OkStatus();
}

// An empty kind means all of them, each under its name.
absl::Status List(const std::string& kind) {
  if (!kind.empty()) return ListOne(kind);
  for (const char* each : kKinds) {
    std::printf("%s%s:\n", each == kKinds[0] ? "" : "\n", each);
    RETURN_IF_ERROR(ListOne(each));
  }
  return absl::OkStatus();
}

absl::Status Config(TrainOptions options, const std::string& out, bool comments) {
  const std::string of_run = ExperimentFile(options.experiment);
  const bool shipped = FileExists(absl::StrCat(ExperimentFolder(), "/", options.experiment, ".textproto"));
  if (options.algorithm.empty() && !shipped && FileExists(of_run)) options.experiment = of_run;
  ASSIGN_OR_RETURN(const v1::Experiment experiment, PlanExperiment(options));
  for (const std::string& note : PlanNotes(experiment)) std::fprintf(stderr, "datacom: %s\n", note.c_str());
  const std::filesystem::path folder = std::filesystem::path(out).parent_path();
  if (!folder.empty()) RETURN_IF_ERROR(MakeFolders(folder.string()));
  RETURN_IF_ERROR(CheckOutputFile("--out", out));
  return comments ? WriteOutputFile(out, WithComments(PrintExperiment(experiment))) : WriteExperiment(out, experiment);
}

}  // namespace

void AddList(CLI::App* app, int* exit_code) {
  auto kind = std::make_shared<std::string>();
  CLI::App* verb = app->add_subcommand("list", "Lists tasks, algorithms, experiments or sweeps");
  verb->add_option("kind", *kind, "tasks, algorithms, experiments or sweeps; default: all of them")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kKinds), std::end(kKinds))));
  verb->footer("Example: datacom list algorithms");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "one JSON object, for programs");
  verb->callback([kind, json, exit_code] { *exit_code = Finish(*json ? ListJson(*kind) : List(*kind), *json); });
}

void AddConfig(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app->add_subcommand("config", "Prints an experiment with every default filled in");
  verb->add_option(
          "experiment", options->experiment,
          "a shipped experiment, a file or a run folder; with --algorithm a task: its name or its task.textproto")
      ->required();
  AddAlgorithmOption(verb, options.get());
  AddExperimentOptions(verb, options.get());
  auto out = std::make_shared<std::string>("-");
  verb->add_option("--out", *out,
                   "file to write, or - for standard output (-); the large files of a text task's model go to "
                   "task_files beside a file");
  RefuseOptions(
      verb,
      {"--actors", "--envs", "--run-dir", "--max-hours", "--stall-minutes", "--tls", "--quiet", "--json", "--resume"},
      "config starts no process; give this option to `datacom train`");
  auto comments = std::make_shared<bool>(false);
  verb->add_flag("--comments", *comments, "the meaning of every setting above it");
  verb->footer("Example: datacom config cartpole/datacom --set hyper.cost_budget=10");
  verb->callback([options, out, comments, exit_code] { *exit_code = Finish(Config(*options, *out, *comments)); });
}

void AddExplain(CLI::App* app, int* exit_code) {
  CLI::App* verb = app->add_subcommand("explain", "Says what a setting means, its default and range, and who reads it");
  auto path = std::make_shared<std::string>();
  verb->add_option(
      "setting", *path,
      "path such as hyper.cost_budget or learner, or a field's name; sweep... for a sweep file, task_file... "
      "for a task.textproto; default: the groups of an experiment");
  verb->footer("Example: datacom explain hyper.cost_budget\n         datacom explain task_file.cost");
  verb->callback([path, exit_code] {
    const absl::StatusOr<std::string> text = Explain(*path);
    if (text.ok()) PrintWrapped(*text);
    *exit_code = Finish(text.ok() ? absl::OkStatus() : absl::InvalidArgumentError(text.status().message()));
  });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
