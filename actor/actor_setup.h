// Reads from a resolved experiment what acting and evaluating need. Nothing else of the role reads v1::Experiment.
// Functions; thread-safe; nothing but a TaskFileReader blocks.
#ifndef DATACOM_ACTOR_ACTOR_SETUP_H_
#define DATACOM_ACTOR_ACTOR_SETUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "actor/episode_player.h"
#include "actor/evaluator.h"
#include "actor/rollout.h"

namespace datacom::v1 {
class Experiment;
class TaskFile;
}  // namespace datacom::v1

namespace datacom::actor {

// Labels of the role's metrics.
struct RunLabels {
  std::string task, algorithm;
};

// Task, rule, schema and seeds as the experiment names them. INVALID_ARGUMENT or NOT_FOUND naming what does not exist.
absl::StatusOr<Rollout::Parts> MakeParts(const v1::Experiment& experiment);
// The same of an experiment's text, which came from `source`. `read` gets the large files of a text task
// (common/config/task_files.h).
using TaskFileReader = std::function<absl::StatusOr<std::string>(const v1::TaskFile&)>;
absl::StatusOr<Rollout::Parts> ParseParts(const std::string& text, const std::string& source,
                                          const TaskFileReader& read, RunLabels* labels);
absl::StatusOr<EvaluatedRun> ParseEvaluatedRun(const std::string& text, const std::string& source,
                                               const TaskFileReader& read, RunLabels* labels);

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
