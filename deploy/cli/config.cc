// datacom config: prints the resolved experiment, with every default filled in.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/base/files.h"
#include "common/base/output_file.h"
#include "common/config/experiment.h"
#include "deploy/cli/run_options.h"
#include "deploy/cli/train_plan.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {

void AddConfig(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app->add_subcommand("config", "Prints an experiment with every default filled in");
  verb->add_option("experiment", options->experiment,
                   "name under deploy/experiments, or a file; with --algorithm a task: its name or its task.textproto")
      ->required();
  AddAlgorithmOption(verb, options.get());
  AddExperimentOptions(verb, options.get());
  auto out = std::make_shared<std::string>("-");
  verb->add_option("--out", *out,
                   "File to write, or - for standard output (-); the large files of a text task's model go to "
                   "task_files beside a file");
  RefuseOptions(verb,
                {"--actors", "--envs", "--run-dir", "--max-hours", "--stall-minutes", "--tls", "--quiet", "--resume"},
                "config starts no process; give this option to `datacom train`");
  verb->footer("Example: datacom config cartpole/datacom --set hyper.cost_budget=10");
  verb->callback([options, out, exit_code] {
    const absl::StatusOr<v1::Experiment> experiment = PlanExperiment(*options);
    absl::Status written = experiment.status();
    if (const auto folder = std::filesystem::path(*out).parent_path(); written.ok() && !folder.empty()) {
      written = MakeFolders(folder.string());
    }
    if (written.ok()) written = CheckOutputFile("--out", *out);
    if (written.ok()) written = WriteExperiment(*out, *experiment);
    if (experiment.ok()) {
      for (const std::string& note : PlanNotes(*experiment)) std::fprintf(stderr, "datacom: %s\n", note.c_str());
    }
    *exit_code = Finish(written);
  });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
