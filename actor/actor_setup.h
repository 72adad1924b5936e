// Reads from a resolved experiment what acting and evaluating need. Functions; thread-safe; nothing blocks.
#ifndef DATACOM_ACTOR_ACTOR_SETUP_H_
#define DATACOM_ACTOR_ACTOR_SETUP_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "actor/episode_player.h"
#include "actor/evaluator.h"
#include "actor/rollout.h"

namespace datacom::v1 {
class Experiment;
}  // namespace datacom::v1

namespace datacom::actor {

// Task, rule, schema and seeds as the experiment names them. INVALID_ARGUMENT or NOT_FOUND naming what does not exist.
absl::StatusOr<Rollout::Parts> MakeParts(const v1::Experiment& experiment);

// Makes a player with `batch` tasks (at most 64) and the snapshot's acting rule. FAILED_PRECONDITION when the snapshot
// is of another task or does not fit.
absl::StatusOr<std::unique_ptr<EpisodePlayer>> MakeEpisodePlayer(const v1::Experiment& experiment,
                                                                 const Snapshot& snapshot, uint32_t batch);
// The same with a given rule, whose max_batch must be at least `batch`.
absl::StatusOr<std::unique_ptr<EpisodePlayer>> MakeEpisodePlayer(const v1::Experiment& experiment,
                                                                 std::unique_ptr<ActingRule> rule, uint32_t batch);

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_ACTOR_SETUP_H_
// SPDX-License-Identifier: Apache-2.0
