#include "deploy/cli/sweep.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/records/csv.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/summary.h"
#include "deploy/report/groups.h"
#include "google/protobuf/util/message_differencer.h"

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
  stored.set_description(planned.description());
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  if (differencer.Compare(ResolveExperiment(stored), planned)) {
    return Annotate(CheckStepsLeft(run_dir, planned.run().env_steps()), run_dir);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(run_dir, " holds a run of another experiment: ", absl::StripTrailingAsciiWhitespace(difference),
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

}  // namespace

std::string RunFolder(const std::string& dir, const SweepRun& population) {
  return absl::StrCat(dir, "/", population.name);
}

std::string ArchiveOf(const std::string& place, const SweepRun& population) {
  if (place.empty() || population.name.empty()) return place;
  const bool open = absl::EndsWith(place, ":") || absl::EndsWith(place, "/");
  return absl::StrCat(place, open ? "" : "/", population.name);
}

bool IsSweepFolder(const std::string& folder) { return FileExists(NamesFile(folder)); }

absl::StatusOr<std::vector<std::string>> RunsOfFolder(const std::string& folder) {
  if (!IsSweepFolder(folder) && !FileExists(ExperimentFile(folder))) return NotARunFolder(folder);
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
    if (names != Names(populations)) {
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
    RETURN_IF_ERROR(WriteFileAtomically(ExperimentFile(run_dir), PrintTextproto(population.experiment)));
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
  state.complete = static_cast<int>(members.size()) == experiment.members_size() &&
                   state.env_steps >= experiment.run().env_steps() && FileExists(run_dir + "/report.html");
  return state;
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

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
