// Plays evaluation episodes with one snapshot, as algorithms.md 18 says: the stochastic policy as in training,
// parameters frozen. An episode is a pure function of (snapshot, run seed, member seed, epoch, episode number). Not
// thread-safe; owns its task and rule. Play blocks for as long as the episodes take.
#ifndef DATACOM_ACTOR_EPISODE_PLAYER_H_
#define DATACOM_ACTOR_EPISODE_PLAYER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/acting/acting_rule.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/learner.pb.h"

namespace datacom {

class EpisodePlayer {
 public:
  struct Seeds {
    uint64_t run = 0;
    uint64_t member = 0;
    uint32_t epoch = 0;
  };
  // `batch` environments at a time. Observations are acted for one by one, because a matrix product's rounding may
  // Observations are acted for one by one: a matrix product's rounding may depend on how many rows it has, and an
  // episode's result must not depend on the episodes played beside it.
  EpisodePlayer(std::unique_ptr<Task> task, std::unique_ptr<ActingRule> rule, double discount);
  // Task, rule and discount of the experiment. FAILED_PRECONDITION when the snapshot is another task's or does not fit.
  static absl::StatusOr<std::unique_ptr<EpisodePlayer>> Make(const v1::Experiment& experiment,
                                                             const Snapshot& snapshot);

  // Episodes 0 .. count - 1 in order: J = sum_t discount^t r_t, return, max and sum of max(cost, 0), length, success,
  // all in double. A step that the simulator calls invalid ends its episode there. `tick` is called every few hundred
  // steps; its error ends the play and is returned.
  absl::StatusOr<std::vector<v1::EvaluationEpisode>> Play(const Seeds& seeds, uint32_t count,
                                                          const std::function<absl::Status()>& tick);

 private:
  absl::StatusOr<v1::EvaluationEpisode> PlayOne(const Seeds& seeds, uint32_t episode,
                                                const std::function<absl::Status()>& tick);
  void Round();  // wide_observation_ -> observation_

  std::unique_ptr<Task> task_;
  std::unique_ptr<ActingRule> rule_;
  const double discount_;
  std::vector<float> observation_, noise_, action_;     // [obs_dim], [noise_dim], [action_dim]
  std::vector<double> wide_observation_, wide_action_;  // [obs_dim], [action_dim]
};

}  // namespace datacom

#endif  // DATACOM_ACTOR_EPISODE_PLAYER_H_
