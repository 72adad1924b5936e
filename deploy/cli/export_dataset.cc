// datacom export-dataset: reads the rings of a run, so it hands its flags to datacom-replay, which knows them.
#include <memory>
#include <string>
#include <vector>

#include "deploy/cli/verbs.h"

namespace datacom::cli {

void AddExportDataset(CLI::App* app, int* exit_code) {
  struct Typed {
    std::string run_dir, out, member, rows;
  };
  auto typed = std::make_shared<Typed>();
  CLI::App* verb = app->add_subcommand(
      "export-dataset", "Copies the transitions a run that has ended still holds into a dataset, for pre-training");
  verb->add_option("run_dir", typed->run_dir, "run folder")->required();
  verb->add_option("--out", typed->out, "folder to make; must not exist")->required();
  verb->add_option("--member", typed->member, "members of the population: 0, 0-4 or 0,2; default: every one");
  verb->add_option("--rows", typed->rows,
                   "of each member, counted from 0: 0-50000 (without 50000) or 50000-; default: all that are held");
  verb->footer(
      "Rows are grouped by episode. Layout: proto/datacom/v1/dataset.proto.\n"
      "Example: datacom export-dataset runs/five --out datasets/five\n"
      "         datacom train air_hockey/datacom --set pretrain.dataset=datasets/five --set pretrain.updates=5000");
  verb->callback([typed, exit_code] {
    std::vector<std::string> arguments = {"export-dataset", typed->run_dir, "--out", typed->out};
    if (!typed->member.empty()) arguments.insert(arguments.end(), {"--member", typed->member});
    if (!typed->rows.empty()) arguments.insert(arguments.end(), {"--rows", typed->rows});
    *exit_code = Finish(Become("datacom-replay", std::move(arguments)));
  });
}

}  // namespace datacom::cli
