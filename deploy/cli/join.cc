// datacom join: one more actor for a run, on this or another machine. It finds replay and learner through the run's
// folder, follows them when the run goes on elsewhere, and ends when the run is complete.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/machine.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/config/experiment.h"
#include "common/records/checkpoint.h"
#include "common/rpc/channel.h"
#include "common/rpc/replay_client.h"
#include "deploy/cli/process.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/sweep.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

constexpr std::chrono::milliseconds kTick{200}, kLook{2000}, kDeadline{2000}, kGrace{10000};
constexpr std::chrono::seconds kLongestPause{30};

struct JoinOptions {
  std::string folder, name, tls;
  int environments = 0;  // 0: as many as the run's own actors have
};

// A run that can be joined, and where it is now.
struct Place {
  std::string run_dir, run_id, replay, learner;
  bool operator==(const Place&) const = default;
};

class Joiner {
 public:
  Joiner(const JoinOptions& options, std::vector<std::string> runs, Security security)
      : options_(options), runs_(std::move(runs)), complete_(runs_.size(), false), security_(std::move(security)) {}

  absl::StatusOr<int> Run() {
    while (!Stop::Process().WaitFor(kTick)) {
      if (actor_ != nullptr) {
        RETURN_IF_ERROR(Watch());
        continue;
      }
      if (clock_.Now() < next_) continue;
      next_ = clock_.Now() + kLook;
      ASSIGN_OR_RETURN(const std::optional<Place> place, Find());
      if (place) {
        RETURN_IF_ERROR(Start(*place));
      } else if (std::all_of(complete_.begin(), complete_.end(), [](bool complete) { return complete; })) {
        Say(absl::StrCat(options_.folder, " is complete"));
        return kExitOk;
      }
    }
    End();
    return kExitInterrupted;
  }

 private:
  void Say(const std::string& sentence) {
    if (sentence == said_) return;
    said_ = sentence;
    std::printf("%s\n", ForTerminal(sentence).c_str());  // a run folder may be a stranger's
    std::fflush(stdout);
  }

  // The place of a run, as far as its folder says.
  static std::optional<Place> Look(const std::string& run_dir) {
    Place place;
    place.run_dir = run_dir;
    place.run_id = ReadRunId(run_dir).value_or("");
    place.replay = ReadAddress(run_dir, "replay", "address");
    place.learner = ReadAddress(run_dir, "learner", "address");
    if (place.run_id.empty() || place.replay.empty() || place.learner.empty()) return std::nullopt;
    return place;
  }

  static bool IsComplete(const std::string& run_dir) {
    return FileExists(run_dir + "/report.html") && ReadRunState(run_dir).complete;
  }

  // A run that trains now. Actors with different names begin their search at different runs.
  absl::StatusOr<std::optional<Place>> Find() {
    const size_t begin = std::hash<std::string>()(options_.name) % runs_.size();
    std::string silent;  // a run whose replay does not answer
    for (size_t i = 0; i < runs_.size(); ++i) {
      const size_t index = (begin + i) % runs_.size();
      const std::string& run_dir = runs_[index];
      complete_[index] = complete_[index] || IsComplete(run_dir);
      if (complete_[index]) continue;
      const std::optional<Place> place = Look(run_dir);
      if (!place) continue;
      const auto info = GetReplayInfo(MakeChannel(place->replay, security_), kDeadline);
      if (info.ok() && info->run_id() == place->run_id) return place;
      silent = absl::StrCat("; no replay of ", run_dir, " answers at ", place->replay,
                            options_.tls.empty() ? " (that of a run with --tls answers only with --tls FOLDER)" : "");
    }
    Say(absl::StrCat("waiting: no run of ", options_.folder, " trains now", silent));
    return std::nullopt;
  }

  absl::Status Start(const Place& place) {
    ASSIGN_OR_RETURN(const v1::Experiment experiment, LoadExperiment(ExperimentFile(place.run_dir), ""));
    if (experiment.run().lockstep()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place.run_dir, " runs in lockstep, which has one actor; no other can join it"));
    }
    place_ = place;
    log_ = absl::StrCat(place.run_dir, "/logs/", options_.name, ".log");
    const Layout layout = ReadLayout(place.run_dir).value_or(Layout());
    const int environments = options_.environments > 0 ? options_.environments : layout.environments;
    std::vector<std::string> words = {BinFolder() + "/datacom-actor", "run", "--run-id", place.run_id};
    words.insert(words.end(), {"--replay", place.replay, "--learner", place.learner, "--name", options_.name});
    words.insert(words.end(), {"--envs", absl::StrCat(environments), "--listen", "127.0.0.1:0"});
    words.insert(words.end(), {"--stay", "--die-with-parent"});
    if (!options_.tls.empty()) words.insert(words.end(), {"--tls", options_.tls});
    actor_ = std::make_unique<Process>();
    RETURN_IF_ERROR(actor_->Start(words, log_));
    looked_ = started_ = clock_.Now();
    Say(absl::StrCat("acting for ", place.run_dir, ", replay at ", place.replay, ", as ", options_.name, ", log in ",
                     log_));
    return absl::OkStatus();
  }

  // Reaps the actor; ends it when its run goes on elsewhere.
  absl::Status Watch() {
    if (const std::optional<int> code = actor_->Poll()) {
      actor_.reset();
      if (*code == kExitUsage) {
        return absl::InvalidArgumentError(absl::StrCat("the actor was refused. ", LastLines(log_)));
      }
      const bool failed = *code != kExitOk && *code != kExitInterrupted;
      if (failed) Say(absl::StrCat("the actor ended (", DescribeExit(*code), "); log in ", log_));
      // Longer pauses while the actor ends soon after its start.
      const bool soon = clock_.Now() - started_ < kLongestPause;
      pause_ = failed && soon ? std::min<Clock::Time::duration>(2 * pause_, kLongestPause) : kTick;
      next_ = clock_.Now() + pause_;
      return absl::OkStatus();
    }
    if (clock_.Now() - looked_ < kLook) return absl::OkStatus();
    looked_ = clock_.Now();
    const std::optional<Place> now = Look(place_.run_dir);
    if (IsComplete(place_.run_dir)) {  // the actor itself would wait for more work
      Say(absl::StrCat(place_.run_dir, " is complete"));
      End();
    } else if (now && !(*now == place_)) {
      Say(absl::StrCat(place_.run_dir, " goes on at ", now->replay, ", learner at ", now->learner));
      End();
    }
    return absl::OkStatus();
  }

  // Lets the actor flush its rows, at most for kGrace.
  void End() {
    if (actor_ == nullptr) return;
    actor_->Signal(SIGTERM);
    const Clock::Time deadline = clock_.Now() + kGrace;
    while (actor_->running() && !actor_->Poll()) {
      if (clock_.Now() > deadline) actor_->Signal(SIGKILL);
      ::usleep(20000);
    }
    actor_.reset();
  }

  const JoinOptions& options_;
  const std::vector<std::string> runs_;
  std::vector<bool> complete_;
  const Security security_;
  const Clock& clock_ = Clock::Real();
  std::unique_ptr<Process> actor_;  // while one runs
  Place place_;                     // where the actor acts
  std::string log_, said_;
  Clock::Time next_{}, looked_{}, started_{};
  Clock::Time::duration pause_ = kTick;
};

absl::StatusOr<int> Join(JoinOptions options) {
  Stop::InstallSignalHandlers();
  ASSIGN_OR_RETURN(Security security, LoadSecurity(options.tls));
  ASSIGN_OR_RETURN(std::vector<std::string> runs, RunsOfFolder(options.folder));
  if (options.name.empty()) options.name = absl::StrCat(HostName(), "-", ::getpid());
  RETURN_IF_ERROR(CheckFolderName("--name", options.name));
  if (absl::StrContains(options.name, "/"))
    return absl::InvalidArgumentError("--name " + options.name + ": leave out /");
  return Joiner(options, std::move(runs), std::move(security)).Run();
}

}  // namespace

void AddJoin(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<JoinOptions>();
  CLI::App* verb = app->add_subcommand("join", "Adds an actor on this machine to a run, or to the runs of a sweep");
  verb->add_option("folder", options->folder,
                   "folder of the run or sweep; on another machine through a shared file system")
      ->required();
  verb->add_option("--envs", options->environments, "environments to step (default: as the run's own actors)")
      ->check(CLI::Range(1, 65536));
  verb->add_option("--name", options->name, "name of this actor, stable over restarts (host name and process id)");
  verb->add_option("--tls", options->tls, "folder with ca.crt, tls.crt, tls.key and token, for a run that uses TLS");
  verb->footer(
      "The run must listen where this machine reaches it: datacom train ... --host NAME --tls FOLDER.\n"
      "Example: datacom join runs/five --tls tls");
  verb->callback([options, exit_code] { *exit_code = Finish(Join(*options)); });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
