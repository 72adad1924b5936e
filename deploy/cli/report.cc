// datacom report: writes one self-contained HTML page about one or several runs.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/output_file.h"
#include "common/records/best_epoch.h"
#include "deploy/cli/verbs.h"
#include "deploy/report/report.h"
#include "deploy/tools/maps/feasibility_map.h"

namespace datacom::cli {

void AddReport(CLI::App* app, int* exit_code) {
  auto folders = std::make_shared<std::vector<std::string>>();
  auto out = std::make_shared<std::string>();
  auto baselines = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = app->add_subcommand(
      "report",
      "Writes a self-contained HTML page: what to think of each run and what to do next, curves, film, violations");
  verb->add_option("run_dirs", *folders, "run folders or sweep folders; several are compared")->required();
  verb->add_option(
      "--out", *out,
      "HTML file to write, or - for standard output; FILE.svg: only a figure of the evaluations' cost and return "
      "(report.html in the folder, if there is one folder)");
  auto epoch = std::make_shared<std::string>("last");
  verb->add_option("--epoch", *epoch, "epoch of each member that the tables show: last or best (last)")
      ->check(CLI::IsMember({"last", "best"}));
  verb->add_option(
          "--baseline", *baselines,
          "FILE.csv written by `eval --policy ... --csv`: shown as a horizontal line named after the file; repeatable")
      ->allow_extra_args(false);
  verb->footer(absl::StrCat(BestEpochRule(),
                            "\nExample: datacom report runs/datacom runs/sac --epoch best --out compare.html\n"
                            "         datacom eval navigation --policy scripted --episodes 100 --csv > scripted.csv\n"
                            "         datacom report runs/navigation --baseline scripted.csv --out navigation.html"));
  verb->callback([folders, out, epoch, baselines, exit_code] {
    absl::Status status;
    if (!out->empty()) {
      status = CheckOutputFile("--out", *out);
    } else if (folders->size() == 1) {
      *out = folders->front() + "/report.html";
    } else {
      status = absl::InvalidArgumentError("--out is required: it names the file for several runs");
    }
    for (const std::string& file : *baselines) {
      if (!FileExists(file)) status.Update(absl::InvalidArgumentError("--baseline: there is no file " + file));
      std::error_code none;  // one of them does not exist
      if (status.ok() && std::filesystem::equivalent(file, *out, none))
        status = absl::InvalidArgumentError(absl::StrCat("--out: ", *out, " is the file of --baseline ", file));
    }
    if (status.ok()) {
      const report::Shown shown = *epoch == "best" ? report::Shown::kBest : report::Shown::kLast;
      status = report::WriteReport(*folders, *out, &tools::WriteReportMap, {.shown = shown, .baselines = *baselines});
    }
    if (status.ok()) std::fprintf(IsStandardOutput(*out) ? stderr : stdout, "report: %s\n", out->c_str());
    *exit_code = Finish(status);
  });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
