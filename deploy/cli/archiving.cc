#include "deploy/cli/archiving.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/shell_word.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/records/checkpoint.h"
#include "datacom/v1/archive.pb.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/cli/load_task.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/verbs.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {
namespace {

constexpr std::chrono::seconds kFirstPause{5}, kLongestPause{60};

// Runs `datacom copy`, whose messages pass to this process's standard error. The errors of ExitCode, told already.
absl::StatusOr<std::string> CopyTool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "copy");
  absl::StatusOr<std::string> output = ToolOutput(std::move(arguments));
  constexpr char kWhy[] = "the archive cannot be used";
  if (absl::IsInvalidArgument(output.status())) return absl::InvalidArgumentError(kWhy);
  if (absl::IsInternal(output.status())) return absl::UnavailableError(kWhy);
  return output;
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

absl::Status CheckPlace(const std::string& place) { return CopyTool({place}).status(); }

absl::StatusOr<Brought> BringRun(const TrainOptions& given) {
  Brought brought;
  TrainOptions& options = brought.options = given;
  const std::string& place = options.archive;
  if (place.empty()) return brought;
  if (options.resume) {
    ASSIGN_OR_RETURN(options.run_dir, FolderOf(options));
  }
  const bool prepared = options.resume && FileExists(ExperimentFile(options.run_dir));
  if (prepared && FileExists(options.run_dir + "/run_id")) {
    RETURN_IF_ERROR(CopyTool({options.run_dir, place, "--check"}).status());
    return brought;
  }
  ASSIGN_OR_RETURN(const std::string text, CopyTool({place, "--json"}));
  const nlohmann::json held = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool empty = !held.is_object() || !held.contains("run_id") || !held["run_id"].is_string();
  const std::string what =
      empty ? "" : absl::StrCat("update ", FormatCount(held["update"]), " of run ", std::string(held["run_id"]));
  if (!options.resume) {
    if (empty) return brought;
    return absl::InvalidArgumentError(
        absl::StrCat("--archive ", place, " holds ", what, "; go on with it by --resume, or name another place"));
  }
  if (!empty) {
    RETURN_IF_ERROR(CopyTool({place, options.run_dir, "--own"}).status());
    brought.notes.push_back(absl::StrCat("copied ", what, " from ", place, " to ", options.run_dir));
    brought.copied = true;
    return brought;
  }
  if (prepared) return brought;
  if (options.experiment.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("nothing to resume in ", options.run_dir, " or ", place,
                                                   "; with an experiment's name a new run begins"));
  }
  brought.notes.push_back(absl::StrCat("nothing to resume in ", options.run_dir, " or ", place, ": a new run begins"));
  options.resume = false;
  return brought;
}

std::string DescribeArchive(const std::string& run_dir) {
  const v1::ArchiveState state = StateOf(run_dir);
  if (state.place().empty()) return "";
  const int64_t age = std::max<int64_t>(0, absl::ToUnixSeconds(absl::Now()) - state.seconds());
  const std::string held = state.seconds() == 0 ? "nothing of this run yet"
                                                : absl::StrCat("update ", FormatCount(state.update()), ", copied ",
                                                               FormatDuration(static_cast<double>(age)), " ago");
  const std::string error = state.error().empty() ? "" : absl::StrCat("; the newest copy failed: ", state.error());
  const std::string kept = state.kept().empty() ? "" : absl::StrCat("; old parts stay: ", state.kept());
  return absl::StrCat("archive: ", state.place(), " holds ", held, error, kept, "\n");
}

std::optional<Archiving::Checkpoint> Archiving::Newest() const {
  const std::optional<uint64_t> update = NewestCheckpoint(run_dir_);
  if (!update) return std::nullopt;
  std::error_code error;  // the file may just be replaced: then the next call sees another time
  const std::string file = CheckpointStore(run_dir_ + "/checkpoints").Path(*update) + "/learner.state";
  const auto written = std::filesystem::last_write_time(file, error);
  return Checkpoint{*update, error ? 0 : written.time_since_epoch().count()};
}

absl::Status Archiving::Start() {
  copying_ = Newest();
  return copy_.Start({BinFolder() + "/datacom-tools", "copy", run_dir_, place_, "--keep-state"},
                     run_dir_ + "/logs/archive.log");
}

// FAILED_PRECONDITION when another copy of the run has gone on; any other failure only sets error_.
absl::Status Archiving::OnExit(int code) {
  const v1::ArchiveState state = StateOf(run_dir_);
  const bool ours = state.place() == place_;
  const std::string former = std::exchange(error_, code == kExitOk ? "" : ours ? state.error() : "");
  if (code == kExitOk) {
    if (!former.empty()) events_.push_back("archive: copies again");
    if (ours && std::exchange(kept_, state.kept()).empty() && !kept_.empty())
      events_.push_back(absl::StrCat("archive: old parts stay: ", kept_));
    copied_ = copying_;
    pause_ = std::chrono::seconds(0);
    return absl::OkStatus();
  }
  if (error_.empty()) error_ = absl::StrCat(place_, ": the copy ended (", DescribeExit(code), ")");
  if (ours && state.taken()) return absl::FailedPreconditionError(error_);
  if (former != error_) events_.push_back(absl::StrCat("archive: ", error_, "; the copy is tried again"));
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  not_before_ = clock_.Now() + pause_;
  return absl::OkStatus();
}

absl::Status Archiving::Tick(bool begun) {
  if (place_.empty() || !begun) return absl::OkStatus();
  if (const std::optional<int> code = copy_.Poll()) RETURN_IF_ERROR(OnExit(*code));
  if (copy_.running() || clock_.Now() < not_before_) return absl::OkStatus();
  not_before_ = clock_.Now() + std::chrono::seconds(1);
  const std::optional<Checkpoint> newest = Newest();
  if (!newest || newest == copied_) return absl::OkStatus();
  return Start().ok() ? absl::OkStatus() : OnExit(kExitFailure);
}

std::vector<std::string> Archiving::TakeEvents() { return std::exchange(events_, {}); }

absl::StatusOr<std::string> Archiving::Finish(std::optional<std::chrono::seconds> limit) {
  if (place_.empty()) return "";
  constexpr int kTries = 6;
  constexpr std::chrono::milliseconds kLook{20};
  const Clock::Time end = clock_.Now() + limit.value_or(std::chrono::hours(24));
  absl::Status failure;
  for (int tries = copy_.running() ? -1 : 0; tries < kTries; ++tries) {  // the copy under way may lack the end
    if (tries > 0 && limit) std::this_thread::sleep_for(std::min<Clock::Time::duration>(pause_, end - clock_.Now()));
    if (tries > 0 && !limit && Stop::Process().WaitFor(pause_)) break;
    if (!copy_.running() && !Start().ok()) continue;
    std::optional<int> code;
    while (!(code = copy_.Poll())) {
      const bool stop = !limit && Stop::Process().requested();
      if (!stop && clock_.Now() < end) {
        std::this_thread::sleep_for(kLook);
        continue;
      }
      copy_.KillGroup();
      limit = std::chrono::seconds(0);
      tries = kTries;
    }
    failure = OnExit(*code);
    if (failure.ok() && *code == kExitOk && tries >= 0) {
      return absl::StrCat("archive: ", place_, " holds update ", FormatCount(StateOf(run_dir_).update()));
    }
    if (!failure.ok() || clock_.Now() >= end) break;
  }
  return absl::UnavailableError(absl::StrCat(error_.empty() ? place_ : error_, "; the run is in ", run_dir_,
                                             ", its end is not in the archive: `datacom copy ", ShellWord(run_dir_),
                                             " ", ShellWord(place_), "` tries again"));
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
