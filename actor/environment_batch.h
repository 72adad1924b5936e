// The environments of one member: they step, round and record; what acts is the caller's business.
//
// An observation is rounded to float32 once, and policy, row and next step all see that value. An action is float32 and
// is widened to double when it is applied. Everything random comes from streams named by
// (run seed, member seed, session, environment, episode[, step]), so an episode is a pure function of its key and
// actions.
//
// The first episode of every environment ends after a length drawn uniformly from 1..horizon (`last`, not absorbing),
// so that environments that were made together do not start their later episodes together: their episodes then begin
// under as many different policies as those of one environment do.
//
// Not thread-safe; owns the tasks. Nothing blocks; a step allocates nothing.
#ifndef DATACOM_ACTOR_ENVIRONMENT_BATCH_H_
#define DATACOM_ACTOR_ENVIRONMENT_BATCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "actor/row_chunk.h"
#include "common/tasks/task.h"
#include "datacom/v1/replay.pb.h"

namespace datacom {

class EnvironmentBatch {
 public:
  struct Seeds {
    uint64_t run = 0;
    uint64_t member = 0;
    uint32_t session = 0;
  };
  // One environment a task; each stands at the start of its shortened episode 0.
  EnvironmentBatch(std::vector<std::unique_ptr<Task>> tasks, const Seeds& seeds);

  // Puts an environment where a lockstep session left it: resets the episode and plays its actions again.
  // INVALID_ARGUMENT for an environment that is not here or actions of another size; INTERNAL when the replayed episode
  // ends before its last action (the task is not the one that was recorded).
  absl::Status Continue(const v1::OpenEpisode& open);

  int size() const { return static_cast<int>(environments_.size()); }
  // float32 [obs_dim]: what the policy sees now.
  const float* observation(int environment) const { return environments_[environment].observation.data(); }
  // Raw cost of the step that led here, as its row has it; 0 at an episode's start.
  float previous_cost(int environment) const { return environments_[environment].previous_cost; }
  // Standard normal float32 [count] of the step the environment is about to take.
  void FillNoise(int environment, int count, float* noise) const;

  // What a rule decided for one environment: arrays of [action_dim], and how it judged the observation.
  struct Decision {
    const float* action = nullptr;      // to be stored
    const float* executed = nullptr;    // to be applied; `action` itself where no rule filters outside of the agent
    const float* raw_action = nullptr;  // what the policy chose
    float cvar = 0, delta = 0;          // of rules with a learned constraint
    SnapshotVersion policy;
  };
  enum class Outcome { kGoesOn, kEnded, kAbandoned };
  // Applies decision.executed and appends the transition to `rows`; an ended episode is followed by the next one's
  // reset. An invalid step (the simulator warned, something is not finite) appends nothing: the episode is left
  // unfinished in the row stream. REQUIRES rows->rows() < rows->capacity().
  Outcome Step(int environment, const Decision& decision, RowChunk* rows);

 private:
  struct Environment {
    std::unique_ptr<Task> task;
    std::vector<float> observation;       // [obs_dim]
    std::vector<float> next_observation;  // [obs_dim]
    float previous_cost = 0;
    uint32_t episode = 0;
    uint32_t step = 0;
    uint32_t limit = 0;  // length at which this episode ends
  };
  static uint32_t Horizon(const Environment& environment);
  void BeginEpisode(int environment, uint32_t episode);
  void Reset(int environment);
  // Applies the action: next_observation is of the state reached.
  StepResult Advance(Environment* environment, const float* action);
  // Makes the state reached the present one.
  static void GoOn(const StepResult& reached, Environment* environment);

  Seeds seeds_;
  std::vector<Environment> environments_;
  std::vector<double> wide_observation_;  // [obs_dim] workspace
  std::vector<double> wide_action_;       // [action_dim] workspace
};

}  // namespace datacom

#endif  // DATACOM_ACTOR_ENVIRONMENT_BATCH_H_
