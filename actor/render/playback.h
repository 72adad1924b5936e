// The episode a person wants to see: of a run's policy, as it was evaluated, or of a task with given actions.
#ifndef DATACOM_ACTOR_RENDER_PLAYBACK_H_
#define DATACOM_ACTOR_RENDER_PLAYBACK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actor/episode_player.h"

namespace datacom {

struct PlaybackOptions {
  std::string what;                   // a run folder, or a task's name
  std::optional<uint32_t> member;     // of a run; default 0
  std::optional<std::string> epoch;   // of a run: number or last; default last
  std::optional<uint32_t> episode;    // of a run: number within an evaluation; default 0
  std::optional<uint64_t> violation;  // of a run: the training episode of that violation of its ledger instead
  std::optional<uint64_t> seed;  // of a run: in place of its own; of a task: of start and random actions, default 0
  std::optional<std::string> actions;  // of a task: a CSV file, "zero" or "random" (default)
  std::string init;                    // of a task: start values, key=value,...
  std::vector<std::string> set;        // "task_options.horizon=100"
};

// Plays the same episode every time it is called. Not thread-safe.
struct Playback {
  std::string title;               // one line: what is to be seen
  std::string note;                // a sentence of what was asked for; mostly empty
  std::optional<uint32_t> moment;  // the step that a single picture is of, where it is not the last
  std::function<absl::Status(const Watcher&)> play;
};

// NOT_FOUND or INVALID_ARGUMENT naming what is not there or does not fit together.
absl::StatusOr<Playback> MakePlayback(const PlaybackOptions& options);

}  // namespace datacom

#endif  // DATACOM_ACTOR_RENDER_PLAYBACK_H_
