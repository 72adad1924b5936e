// Plays evaluation episodes with one snapshot (docs/algorithms.md 15): the stochastic policy as in training,
// with frozen parameters. An episode is a pure function of (snapshot, run seed, member seed, epoch, episode number,
// start values). It does not depend on the batch size, because acting rules treat the rows of a batch independently.
// Not thread-safe; owns its tasks and rule. Play and Watch block while they play.
#ifndef DATACOM_ACTOR_EPISODE_PLAYER_H_
#define DATACOM_ACTOR_EPISODE_PLAYER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/acting/acting_rule.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"
#include "datacom/v1/learner.pb.h"

namespace datacom::actor {

// One state of an episode: the start, or a state that a step reached.
struct EpisodeState {
  const Task* task = nullptr;  // is in that state
  uint32_t step = 0;
  const double* observation = nullptr;  // [obs_dim] of the task in that state
  StepResult reached;                   // result of the step that led here; at the start reward 0 and the start's cost
  double sum_reward = 0;
  bool last = false;  // no state follows: absorbing, truncated, invalid or the horizon
  // The acting rule's diagnostics in this state; absent without an acting rule that has a learned constraint.
  struct Judgement {
    double constraint = 0, cvar = 0, intervention = 0;  // same meaning as in ActingDiagnostics
  };
  std::optional<Judgement> judgement;
};
// Called for every state in order. An error ends the episode and is returned.
using Watcher = std::function<absl::Status(const EpisodeState&)>;

class EpisodePlayer {
 public:
  struct Seeds {
    uint64_t run = 0;
    uint64_t member = 0;
    uint32_t epoch = 0;
  };
  static constexpr uint32_t kMaxAttempts = 10;  // per episode

  // Plays one episode per task at a time (at least one task); the rule's max_batch must be at least the number of
  // tasks. `discount` is that of a step of the tasks, which may be a decision of several control steps
  // (DiscountOfReturns).
  EpisodePlayer(std::vector<std::unique_ptr<Task>> tasks, std::unique_ptr<ActingRule> rule, double discount);

  // The rule's shield (ActingRule).
  bool has_shield() const { return rule_->has_shield(); }
  void UseShield(bool use) { rule_->UseShield(use); }

  // Every episode starts with these values (Task::ResetTo), and draws the others. INVALID_ARGUMENT as ResetTo.
  absl::Status StartAt(const std::map<std::string, double>& init);

  // Plays episodes 0 .. count - 1 and returns them in order: J = sum_t discount^t r_t, return, max and sum of
  // max(cost, 0), length, success at the end and at some step, what the shield did; sums are in double. After an
  // invalid simulator step the episode is repeated from another start with other noise. It is marked as abandoned when
  // all kMaxAttempts attempts fail. `tick` is called every few hundred steps; an error that it returns ends the play
  // and is returned.
  absl::StatusOr<std::vector<v1::EvaluationEpisode>> Play(const Seeds& seeds, uint32_t count,
                                                          const std::function<absl::Status()>& tick);
  // Plays only episode `episode` of Play(seeds, ...) and calls `watcher` for each state of its last attempt.
  absl::Status Watch(const Seeds& seeds, uint32_t episode, const Watcher& watcher);

 private:
  // A task and the episode it plays.
  struct Slot {
    std::unique_ptr<Task> task;
    uint32_t episode = 0;
    uint32_t attempt = 0;
    uint32_t step = 0;
    StepResult reached;               // result of the last step
    double discount = 1;              // discount^step
    std::vector<double> observation;  // [obs_dim]
    std::vector<float> memory;        // [memory_dim] of the acting rule
  };
  void Begin(const Seeds& seeds, uint32_t episode, uint32_t attempt, Slot* slot);
  // Called when the slot's episode has ended. Starts the next attempt if the last step was invalid and attempts are
  // left.
  bool BeginAgain(const Seeds& seeds, Slot* slot, v1::EvaluationEpisode* result);
  // Acts for the n slots in active_ in one batch. Returns the actions to execute, [n, action_dim], valid until the next
  // call.
  const float* Act(const Seeds& seeds, const ActingDiagnostics& diagnostics);
  // Applies the action and adds the step to the result; returns whether the episode continues.
  bool Step(const float* action, Slot* slot, v1::EvaluationEpisode* result);
  // Adds what the rule's shield did for active slot i in a step that Step has counted.
  void AddShield(size_t i, v1::EvaluationEpisode* result) const;

  std::vector<Slot> slots_;
  std::unique_ptr<ActingRule> rule_;
  const double discount_;
  std::map<std::string, double> init_;                 // start values of every episode
  std::vector<Slot*> active_;                          // slots with an episode
  std::vector<float> observations_, noise_, actions_;  // [tasks, obs_dim], [tasks, noise_dim], [tasks, action_dim]
  std::vector<float> costs_;                           // [tasks] costs of the previous steps
  std::vector<double> constraints_, shield_changes_;   // [tasks] diagnostics; empty for a rule without
  std::vector<float> memory_;                          // [tasks, memory_dim]
  std::vector<double> wide_action_;                    // [action_dim]
};

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_EPISODE_PLAYER_H_
// SPDX-License-Identifier: Apache-2.0
