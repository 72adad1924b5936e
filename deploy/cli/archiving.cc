#include "deploy/cli/archiving.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "datacom/v1/archive.pb.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/cli/load_task.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/supervise.h"
#include "deploy/cli/verbs.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {
namespace {

constexpr std::chrono::seconds kFirstPause{5}, kLongestPause{60};

// Runs `datacom copy`, whose messages pass to this process's standard error. The errors of ExitCode, told already.
absl::StatusOr<std::string> CopyTool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {BinFolder() + "/datacom-tools", "copy"});
  int code = 0;
  ASSIGN_OR_RETURN(std::string output, OutputOf(std::move(arguments), &code));
  if (code == kExitOk) return output;
  constexpr char kWhy[] = "the archive cannot be used";
  return code == kExitUsage ? absl::InvalidArgumentError(kWhy) : absl::UnavailableError(kWhy);
}

v1::ArchiveState StateOf(const std::string& run_dir) {
  v1::ArchiveState state;
  if (const auto content = ReadFile(run_dir + "/archive/state"); content.ok()) state.ParseFromString(*content);
  return state;
}

// The folder that a resume uses: the newest of the experiment here or, where there is none, a new one.
absl::StatusOr<std::string> FolderOf(const TrainOptions& options) {
  if (!options.run_dir.empty()) return options.run_dir;
  ASSIGN_OR_RETURN(const v1::Experiment named, NamedExperiment(options));
  const absl::StatusOr<std::string> here = DefaultRunFolder(named.name(), true);
  return here.ok() ? here : DefaultRunFolder(named.name(), false);
}

}  // namespace

absl::StatusOr<TrainOptions> BringRun(TrainOptions options, std::vector<std::string>* notes) {
  const std::string& place = options.archive;
  if (place.empty()) return options;
  if (options.resume) {
    ASSIGN_OR_RETURN(options.run_dir, FolderOf(options));
    if (FileExists(ExperimentFile(options.run_dir))) return options;
  }
  ASSIGN_OR_RETURN(const std::string text, CopyTool({place, "--json"}));
  const nlohmann::json held = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool empty = !held.is_object() || !held.contains("run_id") || !held["run_id"].is_string();
  const std::string what =
      empty ? "" : absl::StrCat("update ", FormatCount(held["update"]), " of run ", std::string(held["run_id"]));
  if (!options.resume) {
    if (empty) return options;
    return absl::InvalidArgumentError(
        absl::StrCat("--archive ", place, " holds ", what, "; go on with it by --resume, or name another place"));
  }
  if (!empty) {
    RETURN_IF_ERROR(CopyTool({place, options.run_dir, "--own"}).status());
    notes->push_back(absl::StrCat("copied ", what, " from ", place, " to ", options.run_dir));
    return options;
  }
  if (options.experiment.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("nothing to resume in ", options.run_dir, " or ", place,
                                                   "; with an experiment's name a new run begins"));
  }
  notes->push_back(absl::StrCat("nothing to resume in ", options.run_dir, " or ", place, ": a new run begins"));
  options.resume = false;
  return options;
}

std::string DescribeArchive(const std::string& run_dir) {
  const v1::ArchiveState state = StateOf(run_dir);
  if (state.place().empty()) return "";
  const int64_t age = std::max<int64_t>(0, absl::ToUnixSeconds(absl::Now()) - state.seconds());
  const std::string held = state.seconds() == 0 ? "nothing of this run yet"
                                                : absl::StrCat("update ", FormatCount(state.update()), ", copied ",
                                                               FormatDuration(static_cast<double>(age)), " ago");
  const std::string error = state.error().empty() ? "" : absl::StrCat("; the newest copy failed: ", state.error());
  return absl::StrCat("archive: ", state.place(), " holds ", held, error, "\n");
}

std::vector<std::string> Archiving::Command() const {
  return {BinFolder() + "/datacom-tools", "copy", run_dir_, place_};
}

absl::Status Archiving::OnExit(int code) {
  const v1::ArchiveState state = StateOf(run_dir_);
  const std::string former = std::exchange(error_, code == kExitOk ? "" : state.error());
  if (code == kExitOk) {
    if (!former.empty()) events_.push_back("archive: copies again");
    copied_ = copying_;
    pause_ = std::chrono::seconds(0);
    return absl::OkStatus();
  }
  if (error_.empty()) error_ = absl::StrCat(place_, ": the copy ended (", DescribeExit(code), ")");
  if (state.taken()) return absl::FailedPreconditionError(error_);
  if (former != error_) events_.push_back(absl::StrCat("archive: ", error_, "; training goes on"));
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  not_before_ = clock_.Now() + pause_;
  return absl::OkStatus();
}

absl::Status Archiving::Tick() {
  if (place_.empty()) return absl::OkStatus();
  if (const std::optional<int> code = copy_.Poll()) RETURN_IF_ERROR(OnExit(*code));
  if (copy_.running() || clock_.Now() < not_before_) return absl::OkStatus();
  not_before_ = clock_.Now() + std::chrono::seconds(1);
  const std::optional<uint64_t> newest = NewestCheckpoint(run_dir_);
  if (!newest || newest == copied_) return absl::OkStatus();
  copying_ = *newest;
  return copy_.Start(Command(), run_dir_ + "/logs/archive.log");
}

std::vector<std::string> Archiving::TakeEvents() { return std::exchange(events_, {}); }

absl::StatusOr<std::string> Archiving::Finish() {
  if (place_.empty()) return "";
  while (copy_.running()) {
    copy_.Poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  RETURN_IF_ERROR(Annotate(CopyTool({run_dir_, place_}).status(),
                           absl::StrCat("the run is in ", run_dir_, ", its end is not in the archive; `datacom copy ",
                                        run_dir_, " ", place_, "` tries again")));
  return absl::StrCat("archive: ", place_, " holds update ", FormatCount(StateOf(run_dir_).update()));
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
