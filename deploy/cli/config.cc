// datacom config: prints the resolved experiment, with every default filled in. datacom explain: what settings mean.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "common/base/files.h"
#include "common/base/output_file.h"
#include "common/config/experiment.h"
#include "common/config/explain.h"
#include "deploy/cli/run_options.h"
#include "deploy/cli/train_plan.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {

void AddConfig(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app->add_subcommand("config", "Prints an experiment with every default filled in");
  verb->add_option("experiment", options->experiment,
                   "a shipped experiment, or a file; with --algorithm a task: its name or its task.textproto")
      ->required();
  AddAlgorithmOption(verb, options.get());
  AddExperimentOptions(verb, options.get());
  auto out = std::make_shared<std::string>("-");
  verb->add_option("--out", *out,
                   "File to write, or - for standard output (-); the large files of a text task's model go to "
                   "task_files beside a file");
  RefuseOptions(
      verb,
      {"--actors", "--envs", "--run-dir", "--max-hours", "--stall-minutes", "--tls", "--quiet", "--json", "--resume"},
      "config starts no process; give this option to `datacom train`");
  auto comments = std::make_shared<bool>(false);
  verb->add_flag("--comments", *comments, "The meaning of every setting above it");
  verb->footer("Example: datacom config cartpole/datacom --set hyper.cost_budget=10");
  verb->callback([options, out, comments, exit_code] {
    const absl::StatusOr<v1::Experiment> experiment = PlanExperiment(*options);
    absl::Status written = experiment.status();
    if (const auto folder = std::filesystem::path(*out).parent_path(); written.ok() && !folder.empty()) {
      written = MakeFolders(folder.string());
    }
    if (written.ok()) written = CheckOutputFile("--out", *out);
    if (written.ok() && *comments) written = WriteOutputFile(*out, WithComments(PrintExperiment(*experiment)));
    if (written.ok() && !*comments) written = WriteExperiment(*out, *experiment);
    if (experiment.ok()) {
      for (const std::string& note : PlanNotes(*experiment)) std::fprintf(stderr, "datacom: %s\n", note.c_str());
    }
    *exit_code = Finish(written);
  });
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
