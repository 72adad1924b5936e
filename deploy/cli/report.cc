// datacom report: writes one self-contained HTML page about one or several runs.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/records/best_epoch.h"
#include "deploy/cli/load_task.h"
#include "deploy/cli/verbs.h"
#include "deploy/report/evidence.h"
#include "deploy/report/report.h"
#include "deploy/tools/maps/feasibility_map.h"

namespace datacom::cli {

namespace {

struct EvidenceFlags {
  std::string results, centre = "mean", figures;
  bool films = false;
};

// Draws the last policy of a member with `render` and more arguments.
absl::Status DrawPolicy(const std::string& folder, uint64_t member, const std::string& png,
                        std::vector<std::string> more) {
  std::error_code error;
  if (!std::filesystem::exists(folder + "/policies.stored", error)) return absl::NotFoundError("no policies");
  std::vector<std::string> words = {"render",  folder, "--member", absl::StrCat(member),
                                    "--epoch", "last", "--out",    png};
  words.insert(words.end(), more.begin(), more.end());
  return RunTool(std::move(words));
}

// Eight frames of the first evaluation episode.
absl::Status DrawFrames(const std::string& folder, uint64_t member, const std::string& png) {
  return DrawPolicy(folder, member, png, {"--frames", "8", "--width", "240", "--height", "180"});
}

absl::Status DrawMap(const std::string& folder, uint64_t member, const std::string& png) {
  return DrawPolicy(folder, member, png, {"--map"});
}

absl::Status DrawViolation(const std::string& folder, uint64_t id, const std::string& png) {
  return RunTool({"replay-violation", folder, absl::StrCat(id), "--frames", "4", "--width", "160", "--height", "120",
                  "--out", png});
}

absl::Status WriteResults(const EvidenceFlags& flags, const std::string& out) {
  report::EvidenceOptions options;
  options.centre = flags.centre == "mean" ? report::Centre::kMean : report::Centre::kInterquartileMean;
  options.figures = flags.figures;
  if (flags.films) {
    options.film = &DrawFrames;
    options.map = &DrawMap;
    options.violation = &DrawViolation;
  }
  return report::WriteEvidence(flags.results, out, options);
}

}  // namespace

void AddReport(CLI::App* app, int* exit_code) {
  auto folders = std::make_shared<std::vector<std::string>>();
  auto out = std::make_shared<std::string>();
  auto baselines = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = app->add_subcommand(
      "report",
      "Writes a self-contained HTML page: learning curves with 95 % bands, safety, throughput, learned constraint");
  verb->add_option("run_dirs", *folders, "run folders or sweep folders; several are compared");
  verb->add_option("--out", *out, "HTML file to write; FILE.svg: only a figure of the evaluations' cost and return")
      ->required();
  auto evidence = std::make_shared<EvidenceFlags>();
  verb->add_option("--results", evidence->results,
                   "instead of runs: a folder such as deploy/results; one page about every entry of its entries.csv");
  verb->add_option("--centre", evidence->centre, "with --results, of the curves: mean, or iqm, the interquartile mean")
      ->check(CLI::IsMember({"mean", "iqm"}));
  verb->add_option("--figures", evidence->figures,
                   "with --results: also write each task's curves to this folder, as SVG");
  verb->add_flag("--films", evidence->films,
                 "with --results, of entries with policies: frames of an episode of the best and the worst seed, the "
                 "learned constraint of the best, and the largest violations of training");
  auto epoch = std::make_shared<std::string>("last");
  verb->add_option("--epoch", *epoch, "epoch of each member that the tables show: last or best (default last)")
      ->check(CLI::IsMember({"last", "best"}));
  verb->add_option(
          "--baseline", *baselines,
          "FILE.csv written by `eval --policy ... --csv`: shown as a horizontal line named after the file; may be "
          "repeated")
      ->allow_extra_args(false);
  verb->footer(absl::StrCat(BestEpochRule(),
                            "\nExample: datacom report runs/datacom runs/sac --epoch best --out compare.html\n"
                            "         datacom eval navigation --policy scripted --episodes 100 --csv > scripted.csv\n"
                            "         datacom report runs/navigation --baseline scripted.csv --out navigation.html\n"
                            "         datacom report --results deploy/results --films --out evidence.html"));
  verb->callback([folders, out, epoch, baselines, evidence, exit_code] {
    const std::filesystem::path folder = std::filesystem::absolute(*out).parent_path();
    absl::Status status = absl::InvalidArgumentError(absl::StrCat(
        "--out ", *out, ": there is no folder ", folder.string(), "; make it with: mkdir -p ", folder.string()));
    std::error_code error;
    if (folders->empty() == evidence->results.empty()) {
      status = absl::InvalidArgumentError("name run folders, or a folder of results with --results");
    } else if (std::filesystem::is_directory(folder, error) && !evidence->results.empty()) {
      status = WriteResults(*evidence, *out);
    } else if (std::filesystem::is_directory(folder, error)) {
      const report::Shown shown = *epoch == "best" ? report::Shown::kBest : report::Shown::kLast;
      status = report::WriteReport(*folders, *out, &tools::WriteReportMap, {.shown = shown, .baselines = *baselines});
    }
    if (status.ok()) std::printf("report: %s\n", out->c_str());
    *exit_code = Finish(status);
  });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
