#include "deploy/tools/render/playback.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actor/actor_setup.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/config/experiment.h"
#include "common/tasks/text/task_file.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/play/actions.h"
#include "deploy/tools/play/violation.h"
#include "deploy/tools/policies/run_policies.h"

namespace datacom::tools {
namespace {

constexpr double kHoldSeconds = 0.25;  // a random action is held so long; shorter ones would hardly move anything

absl::StatusOr<Playback> OfRun(const PlaybackOptions& options) {
  if (options.actions.has_value() || options.policy.has_value()) {
    return absl::InvalidArgumentError("--actions and --policy: a run plays its own policy; name a task to play others");
  }
  ASSIGN_OR_RETURN(const auto init, ParseInit(options.init));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(options.what, options.set));
  ASSIGN_OR_RETURN(std::vector<MemberPolicy> policies, ReadPolicies(options.what, options.epoch.value_or("last")));
  RETURN_IF_ERROR(ChooseKnownRows(experiment, options.set, &policies));
  ASSIGN_OR_RETURN(const MemberPolicy* const policy, FindMember(policies, options.member));
  const Snapshot& snapshot = policy->snapshot;
  RETURN_IF_ERROR(snapshot.CheckFinite());
  ASSIGN_OR_RETURN(std::shared_ptr<actor::EpisodePlayer> player, actor::MakeEpisodePlayer(experiment, snapshot, 1));
  RETURN_IF_ERROR(player->StartAt(init));
  const actor::EpisodePlayer::Seeds seeds = {options.seed.value_or(experiment.run().seed()), snapshot.member_seed,
                                             policy->epoch};
  const uint32_t episode = options.episode.value_or(0);
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(experiment.task(), experiment.task_options()));
  Playback playback;
  playback.known = std::make_shared<NearestRows>(model);
  playback.title = absl::StrCat(experiment.name(), "   member ", snapshot.member, "   epoch ", policy->epoch,
                                "   episode ", episode, options.init.empty() ? "" : "   ", options.init);
  if (episode >= experiment.run().eval_episodes()) {
    playback.note =
        absl::StrCat("episode ", episode, " is not one of the ", experiment.run().eval_episodes(),
                     " that the run was evaluated with; eval --episodes ", uint64_t{episode} + 1, " plays it too\n");
  }
  playback.play = [player, seeds, episode](const actor::Watcher& watcher) {
    return player->Watch(seeds, episode, watcher);
  };
  return playback;
}

absl::StatusOr<Playback> OfViolation(const std::string& run_dir, uint64_t id) {
  ASSIGN_OR_RETURN(std::shared_ptr<ViolationEpisode> episode, ViolationEpisode::Load(run_dir, id));
  Playback playback;
  playback.known = std::make_shared<NearestRows>(episode->model());
  playback.title = episode->title();
  playback.still_step = episode->violation().step + 1;
  playback.play = [episode](const actor::Watcher& watcher) {
    return episode->Play([&](const actor::EpisodeState& state, const double*) { return watcher(state); });
  };
  return playback;
}

// Random actions up to the horizon, each held for a while.
ActionSource HeldActions(const TaskSpec& spec, uint64_t seed) {
  const auto hold = static_cast<uint64_t>(std::max(1.0, std::round(kHoldSeconds / spec.control_dt)));
  return [spec, seed, hold](uint64_t step, const double*, double* action) {
    RandomStream stream(StreamKey("render.action", {seed, step / hold}));
    for (int i = 0; i < spec.action_dim; ++i) {
      action[i] = stream.Uniform(spec.action_low[i], spec.action_high[i]);
    }
    return step < static_cast<uint64_t>(spec.horizon);
  };
}

absl::StatusOr<Playback> OfTask(const PlaybackOptions& options) {
  if (options.member.has_value() || options.epoch.has_value() || options.episode.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--member, --epoch and --episode belong to a run folder; ", options.what, " is a task"));
  }
  ASSIGN_OR_RETURN(const NamedTask named, FindTask(options.what, options.set));
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(named.name, named.options));
  ASSIGN_OR_RETURN(std::shared_ptr<Task> task, MakeTask(named.name, named.options));
  if (task->simulation() == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("task ", options.what, " has no simulation to draw"));
  }
  ASSIGN_OR_RETURN(const auto init, ParseInit(options.init));
  const uint64_t seed = options.seed.value_or(0);
  std::string policy = options.policy.value_or("random");
  std::optional<std::string> file = options.actions;
  if (file == "zero" || file == "zeros" || file == "random") {  // policies, by their former option
    policy = *file == "random" ? "random" : "zeros";
    file.reset();
  }
  const bool recorded = file.has_value();
  ActionSource source = HeldActions(task->spec(), seed);
  if (recorded) {
    ASSIGN_OR_RETURN(source, RecordedActions(*file, task->spec()));
  } else if (policy != "random") {
    ASSIGN_OR_RETURN(UntrainedPolicy untrained, MakeUntrainedPolicy(policy, model));
    source = PolicyActions(std::move(untrained), model.spec, seed);
  }
  Playback playback;
  playback.known = std::make_shared<NearestRows>(model);
  playback.title =
      absl::StrCat(options.what, "   ",
                   recorded ? std::filesystem::path(*file).filename().string() : absl::StrCat(policy, ", seed ", seed));
  playback.play = [task, init, seed, recorded, source](const actor::Watcher& watcher) {
    RandomStream stream(StreamKey("render.reset", {seed}));
    return PlayActions(
        source, init, /*stop_at_end=*/!recorded, &stream,
        [&watcher](const actor::EpisodeState& state, const double*) { return watcher(state); }, task.get());
  };
  return playback;
}

absl::StatusOr<Playback> Load(const PlaybackOptions& options) {
  if (options.violation.has_value()) return OfViolation(options.what, *options.violation);
  if (IsRunFolder(options.what)) return OfRun(options);
  const std::vector<std::string> tasks = TaskNames();
  const bool registered = std::find(tasks.begin(), tasks.end(), options.what) != tasks.end();
  if (registered || text::IsTaskFile(options.what)) return OfTask(options);
  RETURN_IF_ERROR(CheckNamesNoExperiment(options.what));
  if (std::error_code error; std::filesystem::is_directory(options.what, error)) return NotARunFolder(options.what);
  return absl::NotFoundError(absl::StrCat("\"", options.what,
                                          "\" is neither a run folder (it has no experiment.textproto) nor a task "
                                          "(a task.textproto, or one of these): ",
                                          absl::StrJoin(tasks, ", ")));
}

}  // namespace

absl::StatusOr<Playback> MakePlayback(const PlaybackOptions& options) {
  absl::StatusOr<Playback> playback = Load(options);
  Stop::InstallSignalHandlers();  // only now, as in eval_command.cc
  return playback;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
