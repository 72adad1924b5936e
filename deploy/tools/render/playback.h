// The episode to draw: of a run's policy, as in its evaluation; of a recorded violation; or of a task with given
// actions.
#ifndef DATACOM_DEPLOY_TOOLS_RENDER_PLAYBACK_H_
#define DATACOM_DEPLOY_TOOLS_RENDER_PLAYBACK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actor/episode_player.h"
#include "common/tasks/nearest_row.h"

namespace datacom::tools {

struct PlaybackOptions {
  std::string what;                    // a run folder, or a task's name
  std::optional<uint32_t> member;      // for a run: number of the member; default 0
  std::optional<std::string> epoch;    // for a run: number, last or best; default last
  std::optional<uint32_t> episode;     // for a run: number within an evaluation; default 0
  std::optional<uint64_t> violation;   // for a run: id in its ledger; plays that training episode instead
  std::optional<uint64_t> seed;        // for a run: replaces its seed; for a task: seed of start and actions, default 0
  std::optional<std::string> actions;  // for a task: a CSV file with actions
  std::optional<std::string> policy;   // for a task, instead: an untrained policy (MakeUntrainedPolicy); default random
  std::string init;                    // start values, key=value,...
  std::vector<std::string> set;        // "task_options.horizon=100"
};

// Plays the same episode every time it is called. Not thread-safe.
struct Playback {
  std::string title;                   // one line
  std::string note;                    // remark on the options, for people; usually empty
  std::optional<uint32_t> still_step;  // the step for a single picture, when it is not the last
  std::function<absl::Status(const actor::Watcher&)> play;
  std::shared_ptr<NearestRows> known;  // the task's known rows; never null
};

// NOT_FOUND or INVALID_ARGUMENT, naming what is missing or which options exclude each other.
absl::StatusOr<Playback> MakePlayback(const PlaybackOptions& options);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_RENDER_PLAYBACK_H_
// SPDX-License-Identifier: Apache-2.0
