#include "deploy/cli/sweep.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/records/csv.h"
#include "deploy/cli/batch.h"
#include "deploy/cli/process.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/summary.h"
#include "deploy/cli/verbs.h"
#include "deploy/report/groups.h"

namespace datacom::cli {
namespace {

namespace fs = std::filesystem;

std::string NamesFile(const std::string& dir) { return absl::StrCat(dir, "/", report::kPopulationsFile); }

std::string Names(const std::vector<SweepRun>& populations) {
  std::string names;
  for (const SweepRun& population : populations) absl::StrAppend(&names, population.name, "\n");
  return names;
}

// Checks that a run folder holds the planned experiment; its steps and its description may differ.
absl::Status CheckStored(const std::string& run_dir, const v1::Experiment& planned) {
  ASSIGN_OR_RETURN(v1::Experiment stored, LoadExperiment(ExperimentFile(run_dir), ExperimentFolder()));
  stored.mutable_run()->set_env_steps(planned.run().env_steps());
  stored.clear_description();
  if (planned.has_description()) stored.set_description(planned.description());
  const std::string difference = DifferenceOf(ResolveExperiment(stored), planned);
  if (difference.empty()) return Annotate(CheckStepsLeft(run_dir, planned.run().env_steps()), run_dir);
  return absl::InvalidArgumentError(
      absl::StrCat(run_dir, " holds a run of another experiment: ", difference,
                   "\nrepeat the options of the sweep's first command, or choose another --run-dir"));
}

// Updates per second of a run of the same task and algorithm; nothing for any other run.
std::optional<double> RateOf(const std::string& run_dir, const v1::Experiment& like) {
  const absl::StatusOr<v1::Experiment> experiment = LoadExperiment(ExperimentFile(run_dir), ExperimentFolder());
  if (!experiment.ok() || experiment->task() != like.task() || experiment->algorithm() != like.algorithm()) return {};
  const absl::StatusOr<Csv> progress = ReadRecords(run_dir + "/progress.csv");
  if (!progress.ok()) return {};
  double updates = 0, seconds = 0;
  for (const auto& [member, rows] : RowsByMember(*progress)) {
    updates += progress->Number(rows.back(), "updates");
    seconds = std::max(seconds, progress->Number(rows.back(), "wall_seconds"));
  }
  if (!(updates > 0 && seconds > 0)) return {};
  return updates / seconds;
}

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

// How far a population is.
struct PopulationState {
  std::string run_dir, name;
  v1::Experiment experiment;
  RunState recorded;
  std::string kind;    // complete, begun, not started, or the scheduler's word
  std::string detail;  // what the scheduler or the run's log says of it; may be empty
};

struct SweepState {
  std::vector<PopulationState> populations;
  bool no_queue = false;  // the sweep was written for Slurm, but squeue does not answer here
};

// What its log says last about its job, "ended with exit code 1", or as an object of `--json`.
std::string LastWords(const std::string& run_dir) {
  const std::string line(absl::StripAsciiWhitespace(TailOfFile(run_dir + "/logs/train.log", 1)));
  const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return line;
  for (const char* key : {"error", "message"}) {
    if (object.contains(key) && object[key].is_string()) return object[key].get<std::string>();
  }
  return "";
}

absl::StatusOr<SweepState> ReadSweepState(const std::string& folder) {
  if (!report::IsSweepFolder(folder)) {
    return absl::InvalidArgumentError(absl::StrCat(folder, " is not the folder of a sweep: it has no populations.txt"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> runs, RunsOfFolder(folder));
  const std::string absolute = AbsolutePath(folder);
  const bool slurm = FileExists(absolute + kScript + kEnding);
  std::optional<QueueStates> queue;
  if (slurm) {
    const bool one_array = !FileExists(absl::StrCat(absolute, kScript, "-2", kEnding));
    const size_t array_size = one_array ? runs.size() : static_cast<size_t>(MaxArraySize());
    if (const auto text = OutputOf(kSqueue)) queue = ParseQueue(*text, absolute, array_size);
  }
  SweepState sweep;
  sweep.no_queue = slurm && !queue;
  for (size_t i = 0; i < runs.size(); ++i) {
    PopulationState& one = sweep.populations.emplace_back();
    one.run_dir = runs[i];
    one.name = fs::path(runs[i]).filename().string();
    ASSIGN_OR_RETURN(one.experiment, LoadExperiment(ExperimentFile(runs[i]), ""));
    one.recorded = ReadRunState(runs[i], one.experiment);
    if (one.recorded.complete) {
      one.kind = "complete";
    } else if (queue && queue->count(i) > 0) {
      const std::vector<std::string> parts = absl::StrSplit(queue->at(i), absl::MaxSplits(", ", 1));
      one.kind = parts[0], one.detail = parts[1];
    } else {
      one.kind = one.recorded.env_steps > 0 || FileExists(runs[i] + "/progress.csv") ? "begun" : "not started";
      one.detail = LastWords(runs[i]);
    }
  }
  return sweep;
}

// A line for each. Where the width is too small, columns are left out, those that a user knows best first.
void PrintPopulations(const std::vector<PopulationState>& populations, int width) {
  constexpr std::array<int, 3> kWidths = {8, 12, 7};  // of members, steps and the share that is done
  size_t name = sizeof "population", state = 0, first = 0;
  for (const PopulationState& one : populations) {
    name = std::max(name, one.name.size());
    state = std::max(state, one.kind.size());
  }
  int used = std::accumulate(kWidths.begin(), kWidths.end(), static_cast<int>(name + state + kWidths.size()) + 2);
  while (width > 0 && used > width && first < kWidths.size()) used -= 1 + kWidths[first++];
  const auto print = [&](std::string line, const std::array<std::string, 3>& cells, const std::string& end) {
    line.resize(name, ' ');
    for (size_t i = first; i < cells.size(); ++i) absl::StrAppendFormat(&line, " %*s", kWidths[i], cells[i]);
    PrintWrapped(absl::StrCat(line, "  ", end, "\n"));
  };
  print("population", {"members", "steps", "done"}, "state");
  for (const PopulationState& one : populations) {
    print(one.name,
          {absl::StrCat(one.experiment.members_size()), FormatCount(one.experiment.run().env_steps()),
           absl::StrFormat("%.0f %%", 100 * one.recorded.done)},
          absl::StrCat(one.kind, one.detail.empty() ? "" : ": ", one.detail));
  }
}

}  // namespace

std::string RunFolder(const std::string& dir, const SweepRun& population) {
  return population.name.empty() ? dir : absl::StrCat(dir, "/", population.name);
}

std::string ArchiveOf(const std::string& place, const SweepRun& population) {
  if (place.empty() || population.name.empty()) return place;
  const bool open = absl::EndsWith(place, ":") || absl::EndsWith(place, "/");
  return absl::StrCat(place, open ? "" : "/", population.name);
}

absl::StatusOr<std::vector<std::string>> RunsOfFolder(const std::string& folder) {
  if (!report::IsSweepFolder(folder) && !FileExists(ExperimentFile(folder))) return NotARunFolder(folder);
  ASSIGN_OR_RETURN(std::vector<std::string> runs, report::RunFolders(folder));
  if (!runs.empty()) return runs;
  return absl::InvalidArgumentError(
      absl::StrCat(NamesFile(folder), " names no run; repeat the sweep's command, which writes it again"));
}

absl::Status CheckSweepFolder(const std::string& dir, const std::vector<SweepRun>& populations) {
  std::error_code error;
  if (fs::exists(ExperimentFile(dir), error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--run-dir ", dir, " is the folder of a run, not of a sweep; choose another --run-dir"));
  }
  if (fs::exists(NamesFile(dir), error)) {
    ASSIGN_OR_RETURN(const std::string names, ReadFile(NamesFile(dir)));
    if (!names.empty() && names != Names(populations)) {
      return absl::InvalidArgumentError(absl::StrCat(
          dir, " holds a sweep of other populations. The folder holds:\n", names, "and the command asks for:\n",
          Names(populations), "repeat the options of the sweep's first command, or choose another --run-dir"));
    }
  }
  for (const SweepRun& population : populations) {
    const std::string run_dir = RunFolder(dir, population);
    if (fs::exists(ExperimentFile(run_dir), error)) RETURN_IF_ERROR(CheckStored(run_dir, population.experiment));
  }
  return absl::OkStatus();
}

absl::Status PrepareSweepFolder(const std::string& dir, const v1::Sweep& sweep,
                                const std::vector<SweepRun>& populations) {
  RETURN_IF_ERROR(MakeFolders(dir));
  RETURN_IF_ERROR(WriteFileAtomically(dir + "/sweep.textproto", PrintTextproto(sweep)));
  RETURN_IF_ERROR(WriteFileAtomically(NamesFile(dir), Names(populations)));
  for (const SweepRun& population : populations) {
    const std::string run_dir = RunFolder(dir, population);
    RETURN_IF_ERROR(MakeFolders(run_dir + "/logs"));
    if (FileExists(ExperimentFile(run_dir))) continue;  // `train` rewrites it when the steps changed
    RETURN_IF_ERROR(WriteExperiment(ExperimentFile(run_dir), population.experiment));
  }
  return absl::OkStatus();
}

RunState ReadRunState(const std::string& run_dir, const v1::Experiment& experiment) {
  RunState state;
  const absl::StatusOr<Csv> progress = ReadRecords(run_dir + "/progress.csv");
  if (!progress.ok() || progress->rows() == 0) return state;
  const auto members = RowsByMember(*progress);
  double fewest = static_cast<double>(experiment.run().env_steps());
  for (const auto& [member, rows] : members) fewest = std::min(fewest, progress->Number(rows.back(), "env_steps"));
  state.env_steps = static_cast<uint64_t>(fewest);
  state.done = experiment.run().env_steps() > 0 ? fewest / static_cast<double>(experiment.run().env_steps()) : 0;
  state.complete = static_cast<int>(members.size()) == experiment.members_size() &&
                   state.env_steps >= experiment.run().env_steps() && FileExists(run_dir + "/report.html");
  return state;
}

RunState ReadRunState(const std::string& run_dir) {
  const absl::StatusOr<v1::Experiment> experiment = LoadExperiment(ExperimentFile(run_dir), "");
  return experiment.ok() ? ReadRunState(run_dir, *experiment) : RunState();
}

std::optional<MeasuredRate> FindRate(const std::string& dir, const v1::Experiment& experiment) {
  std::optional<MeasuredRate> found;
  fs::file_time_type newest{};
  const std::string parent = fs::path(AbsolutePath(dir)).parent_path().string();
  for (const std::string& folder : {dir, parent}) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const std::string run_dir = entry->path().string();
      std::error_code none;
      const fs::file_time_type written = fs::last_write_time(run_dir + "/progress.csv", none);
      if (none || (found && written <= newest)) continue;
      if (const std::optional<double> rate = RateOf(run_dir, experiment)) {
        found = MeasuredRate{*rate, run_dir};
        newest = written;
      }
    }
  }
  return found;
}

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

absl::StatusOr<nlohmann::json> SweepJson(const std::string& folder) {
  ASSIGN_OR_RETURN(const SweepState sweep, ReadSweepState(folder));
  nlohmann::json json = {{"sweep", folder}, {"populations", nlohmann::json::array()}};
  for (const PopulationState& one : sweep.populations) {
    ASSIGN_OR_RETURN(nlohmann::json run, RecordedRunJson(one.run_dir));
    run["population"] = one.name;
    run["state"] = one.kind;
    run["detail"] = one.detail;
    json["populations"].push_back(std::move(run));
  }
  return json;
}

absl::Status PrintSweepStatus(const std::string& folder, bool json) {
  if (json) {
    ASSIGN_OR_RETURN(const nlohmann::json state, SweepJson(folder));
    PrintJson(state);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const SweepState sweep, ReadSweepState(folder));
  const size_t count = sweep.populations.size();
  std::map<std::string, int> totals;
  int members = 0;
  for (const PopulationState& one : sweep.populations) {
    ++totals[one.kind];
    members += one.experiment.members_size();
  }
  std::vector<std::string> counts;
  for (const auto& [kind, number] : totals) counts.push_back(absl::StrCat(number, " ", kind));
  PrintWrapped(absl::StrFormat("%s: %d population%s, %d members: %s\n", folder, count, count == 1 ? "" : "s", members,
                               absl::StrJoin(counts, ", ")));
  PrintPopulations(sweep.populations, TerminalWidth(0));
  if (sweep.no_queue) PrintWrapped("squeue gives no answer here: the states are those of the folders\n");
  return absl::OkStatus();
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
