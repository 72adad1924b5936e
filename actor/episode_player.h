// Plays evaluation episodes with one snapshot (learner/algorithms/README.md 15): the stochastic policy as in training,
// with frozen parameters. An episode is a pure function of (snapshot, run seed, member seed, epoch, episode number). It
// does not depend on how many are played side by side, because acting rules treat each row of a batch alone. Not
// thread-safe; owns its tasks and rule. Play blocks for as long as the episodes take.
#ifndef DATACOM_ACTOR_EPISODE_PLAYER_H_
#define DATACOM_ACTOR_EPISODE_PLAYER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/acting/acting_rule.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/learner.pb.h"

namespace datacom {

// One state of an episode, as a watcher sees it: the start, and each state a step reached.
struct Moment {
  const Task* task = nullptr;  // in that state
  uint32_t step = 0;
  StepResult reached;  // of the step that led here; at the start reward 0 and the start's cost
  double sum_reward = 0;
  bool last = false;  // nothing follows: absorbing, invalid or the horizon
  // What the acting rule says of acting here; absent where it has no learned constraint or nothing acts.
  struct Judgement {
    double constraint = 0, cvar = 0, intervention = 0;  // as ActingDiagnostics
  };
  std::optional<Judgement> judgement;
};
// Called for every state in order; its error ends the play and is returned.
using Watcher = std::function<absl::Status(const Moment&)>;

class EpisodePlayer {
 public:
  struct Seeds {
    uint64_t run = 0;
    uint64_t member = 0;
    uint32_t epoch = 0;
  };
  static constexpr uint32_t kMaxAttempts = 10;  // at an episode

  // As many episodes at a time as there are tasks (at least one); the rule's batch must be as large.
  EpisodePlayer(std::vector<std::unique_ptr<Task>> tasks, std::unique_ptr<ActingRule> rule, double discount);
  // `batch` tasks, rule and discount of the experiment. FAILED_PRECONDITION when the snapshot is another task's or does
  // not fit.
  static absl::StatusOr<std::unique_ptr<EpisodePlayer>> Make(const v1::Experiment& experiment, const Snapshot& snapshot,
                                                             uint32_t batch);
  // The same with a rule that is already made, for `batch` episodes at a time.
  static absl::StatusOr<std::unique_ptr<EpisodePlayer>> Around(const v1::Experiment& experiment,
                                                               std::unique_ptr<ActingRule> rule, uint32_t batch);

  // Episodes 0 .. count - 1 in order: J = sum_t discount^t r_t, return, max and sum of max(cost, 0), length, success,
  // whether it was reached at some step, all in double. An episode in which the simulator calls a step invalid is
  // played again, from another start and with other noise, up to kMaxAttempts times; if every attempt ends so, it is
  // marked as abandoned. `tick` is called every few hundred steps; its error ends the play and is returned.
  absl::StatusOr<std::vector<v1::EvaluationEpisode>> Play(const Seeds& seeds, uint32_t count,
                                                          const std::function<absl::Status()>& tick);
  // Episode number `episode` of that very play, alone, shown state by state: of its attempts the last.
  absl::Status Watch(const Seeds& seeds, uint32_t episode, const Watcher& watcher);

 private:
  // A task and the episode it plays.
  struct Seat {
    std::unique_ptr<Task> task;
    uint32_t episode = 0;
    uint32_t attempt = 0;
    uint32_t step = 0;
    StepResult reached;               // of the last step
    double discount = 1;              // discount^step
    std::vector<double> observation;  // [obs_dim]
  };
  void Begin(const Seeds& seeds, uint32_t episode, uint32_t attempt, Seat* seat);
  // After a step that ended the seat's episode: begins it anew when that was invalid and another attempt is left.
  bool BeginAgain(const Seeds& seeds, Seat* seat, v1::EvaluationEpisode* result);
  // Acts for the seats seated_[0 .. n), in one batch; returns what their environments are to be given,
  // [n, action_dim], until the next time.
  const float* Act(const Seeds& seeds, const ActingDiagnostics& diagnostics);
  // Applies the action and adds the step to the result; true when the episode goes on.
  bool Step(const float* action, Seat* seat, v1::EvaluationEpisode* result);

  std::vector<Seat> seats_;
  std::unique_ptr<ActingRule> rule_;
  const double discount_;
  std::vector<Seat*> seated_;                          // those with an episode
  std::vector<float> observations_, noise_, actions_;  // [tasks, obs_dim], [tasks, noise_dim], [tasks, action_dim]
  std::vector<float> costs_;                           // [tasks] of the steps before
  std::vector<double> wide_action_;                    // [action_dim]
};

}  // namespace datacom

#endif  // DATACOM_ACTOR_EPISODE_PLAYER_H_
