#include "deploy/cli/sweep.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "deploy/cli/batch.h"
#include "deploy/cli/process.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kScript[] = "/sweep", kEnding[] = ".sbatch";
constexpr char kSqueue[] =
    "timeout 10 squeue --me --array --noheader --format '%o|%K|%T|%r|%N|%M' 2>/dev/null";  // command|index|state|...

// The place of a script among those of a sweep: 0 for sweep.sbatch, 1 for sweep-2.sbatch.
std::optional<size_t> ScriptNumber(absl::string_view path, const std::string& folder) {
  if (!absl::ConsumePrefix(&path, folder + kScript) || !absl::ConsumeSuffix(&path, kEnding)) return std::nullopt;
  size_t number = 0;
  if (path.empty()) return 0;
  return absl::ConsumePrefix(&path, "-") && absl::SimpleAtoi(path, &number) && number > 1 ? std::optional(number - 1)
                                                                                          : std::nullopt;
}

}  // namespace

QueueStates ParseQueue(const std::string& text, const std::string& folder, size_t array_size) {
  QueueStates states;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '|');
    size_t index = 0;
    if (parts.size() != 6 || !absl::SimpleAtoi(parts[1], &index)) continue;
    const std::optional<size_t> script = ScriptNumber(parts[0], folder);
    if (!script) continue;
    const std::string state = absl::AsciiStrToLower(parts[2]);
    const std::string more = parts[2] == "PENDING" ? parts[3] : absl::StrCat("on ", parts[4], " for ", parts[5]);
    states[*script * array_size + index] = absl::StrCat(state == "pending" ? "waiting" : state, ", ", more);
  }
  return states;
}

absl::Status PrintSweepStatus(const std::string& folder) {
  if (!IsSweepFolder(folder)) {
    return absl::InvalidArgumentError(absl::StrCat(folder, " is not the folder of a sweep: it has no populations.txt"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> runs, RunsOfFolder(folder));
  const std::string absolute = AbsolutePath(folder);
  std::optional<QueueStates> queue;
  if (FileExists(absolute + kScript + kEnding)) {
    const bool one_array = !FileExists(absl::StrCat(absolute, kScript, "-2", kEnding));
    const size_t array_size = one_array ? runs.size() : static_cast<size_t>(MaxArraySize());
    if (const auto text = OutputOf(kSqueue)) queue = ParseQueue(*text, absolute, array_size);
  }
  std::vector<std::string> lines;
  std::map<std::string, int> totals;
  int members = 0;
  size_t width = sizeof "population";
  for (const std::string& run_dir : runs) width = std::max(width, fs::path(run_dir).filename().string().size());
  for (size_t i = 0; i < runs.size(); ++i) {
    ASSIGN_OR_RETURN(const v1::Experiment experiment, LoadExperiment(ExperimentFile(runs[i]), ""));
    const RunState state = ReadRunState(runs[i], experiment);
    const double share =
        100.0 * static_cast<double>(state.env_steps) / static_cast<double>(experiment.run().env_steps());
    std::string kind, more;
    if (state.complete) {
      kind = "complete";
    } else if (queue && queue->count(i) > 0) {
      const std::vector<std::string> parts = absl::StrSplit(queue->at(i), absl::MaxSplits(", ", 1));
      kind = parts[0], more = parts[1];
    } else {
      kind = state.env_steps > 0 || FileExists(runs[i] + "/progress.csv") ? "begun" : "not started";
      // What its log says last about its job: "ended with exit code 1"; empty when it says nothing.
      more = std::string(absl::StripAsciiWhitespace(TailOfFile(runs[i] + "/logs/train.log", 1)));
    }
    ++totals[kind];
    members += experiment.members_size();
    lines.push_back(absl::StrFormat("%-*s %8d %12s %5.0f %%  %s%s%s", static_cast<int>(width),
                                    fs::path(runs[i]).filename().string(), experiment.members_size(),
                                    FormatCount(experiment.run().env_steps()), share, kind, more.empty() ? "" : ": ",
                                    more));
  }
  std::vector<std::string> counts;
  for (const auto& [kind, count] : totals) counts.push_back(absl::StrCat(count, " ", kind));
  PrintWrapped(absl::StrFormat("%s: %d population%s, %d members: %s\n", folder, runs.size(),
                               runs.size() == 1 ? "" : "s", members, absl::StrJoin(counts, ", ")));
  PrintWrapped(absl::StrFormat("%-*s %8s %12s %7s  %s\n", static_cast<int>(width), "population", "members", "steps",
                               "done", "state"));
  for (const std::string& line : lines) PrintWrapped(line + "\n");
  if (!queue && FileExists(absolute + kScript + kEnding)) {
    std::printf("squeue gives no answer here: the states are those of the folders\n");
  }
  return absl::OkStatus();
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
