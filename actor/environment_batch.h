// Steps the environments of one member and records their transitions. The caller decides the actions.
//
// An observation is rounded to float32 once; the policy and the rows see that value. An action is float32 and is
// widened to double when it is applied. All randomness comes from streams keyed by (run seed, member seed, session,
// environment, episode[, step]), so an episode is a pure function of its key and actions.
//
// The first episode of every environment ends after a length drawn uniformly from 1..horizon (`last`, not absorbing).
// Environments that were created together therefore do not start their later episodes together, and the starts spread
// over as many policies as with a single environment. The same holds for the first episode after a pause.
//
// The number of environments that act may change. One that is no longer wanted finishes its episode; one that is wanted
// again continues the numbers of its episodes, so that no random stream repeats.
//
// Not thread-safe; owns the tasks. Blocks only as the tasks do; a step allocates nothing.
#ifndef DATACOM_ACTOR_ENVIRONMENT_BATCH_H_
#define DATACOM_ACTOR_ENVIRONMENT_BATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::actor {

// An acting rule's decision for one environment; arrays are [action_dim].
struct Decision {
  const float* action = nullptr;      // stored as the row's action
  const float* executed = nullptr;    // applied; equals `action` unless the rule filters after the policy
  const float* raw_action = nullptr;  // unfiltered policy action
  const float* memory = nullptr;      // [count of SetMemory] after the decision; set only by rules with memory
  float cvar = 0, delta = 0;          // set only by rules with a learned constraint
  float log_prob = 0;                 // log-density of `action`, set only by rules that store it
  SnapshotVersion policy;
};

// One transition. Pointers are read during Append only; a pointer for a column that the schema lacks may be null.
struct TransitionRow : Decision {
  const float* observation = nullptr;       // [obs_dim]
  const float* next_observation = nullptr;  // [obs_dim]
  float reward = 0;
  float cost = 0;           // raw, signed, of the reached state
  float previous_cost = 0;  // cost of the previous state; 0 at an episode's first step
  bool absorbing = false;
  bool last = false;  // absorbing, truncated or time limit
  uint32_t environment = 0;
  uint32_t episode = 0;
  uint32_t step = 0;
};

// Buffer for rows of one member, kept as columns in the wire layout of proto Chunk.
// Not thread-safe; owns its memory, which Make allocates: Append allocates nothing, Take returns a new string.
class RowChunk {
 public:
  // FAILED_PRECONDITION, naming the first column that a transition cannot fill.
  static absl::StatusOr<RowChunk> Make(const RowSchema& schema, uint32_t capacity);

  uint32_t rows() const { return rows_; }
  uint32_t capacity() const { return capacity_; }
  // REQUIRES rows() < capacity().
  void Append(const TransitionRow& row);
  // Returns every column as [rows(), width] in schema order; the chunk is empty afterwards.
  std::string Take();

 private:
  RowChunk() = default;
  struct Field {        // one wire column
    size_t offset = 0;  // begin in buffer_, in bytes
    size_t row_bytes = 0;
    const void* (*value)(const TransitionRow& row) = nullptr;  // finds the value
  };

  uint32_t capacity_ = 0;
  uint32_t rows_ = 0;
  std::vector<Field> fields_;
  std::vector<char> buffer_;
};

class EnvironmentBatch {
 public:
  struct Seeds {
    uint64_t run = 0;
    uint64_t member = 0;
    uint32_t session = 0;
  };
  using MakeTask = std::function<absl::StatusOr<std::unique_ptr<Task>>()>;
  // Begins without environments.
  EnvironmentBatch(MakeTask make_task, const Seeds& seeds) : make_task_(std::move(make_task)), seeds_(seeds) {}

  // From now on environments [0, count) act. The others stop when their episode ends, or immediately if it has no step
  // yet. Returns the error of a task that cannot be made.
  absl::Status SetWanted(int count);

  // Restores an environment of a lockstep session: resets the episode, replays its actions and restores its memory.
  // INVALID_ARGUMENT for an unknown environment or actions of the wrong size; INTERNAL when the episode ends during the
  // replay (the task differs from the recorded one).
  absl::Status Continue(const v1::OpenEpisode& open);

  int size() const { return static_cast<int>(environments_.size()); }  // numbers used so far
  // The environments that act, in increasing order. Changes in SetWanted and in Step.
  const std::vector<int>& acting() const { return acting_; }
  // float32 [obs_dim]: the current observation.
  const float* observation(int environment) const { return environments_[environment].observation.data(); }
  // Raw cost of the previous step, as stored in its row; 0 at the start of an episode.
  float previous_cost(int environment) const { return environments_[environment].previous_cost; }
  // The numbers that the acting rule keeps of the episode, float32; 0 at its start. SetMemory sets how many.
  const std::vector<float>& memory(int environment) const { return environments_[environment].memory; }
  // From now on every environment has this many numbers of memory. Memory of another size is lost.
  void SetMemory(int count);
  // Whether the environment's episode belongs to a random share of all episodes; the same at every step of it.
  bool EpisodeIsWithin(int environment, double share) const { return environments_[environment].draw < share; }
  // Writes standard normal noise, float32 [count], for the environment's next step.
  void FillNoise(int environment, int count, float* noise) const;

  // Tells an environment the action [action_dim] of its next step: Decision::executed (Task::Prepare).
  void Prepare(int environment, const float* action);
  enum class Outcome { kContinues, kEnded, kAbandoned };
  // Applies decision.executed and appends the transition to `rows`. When the episode ends, the environment begins the
  // next one, or stops acting if it is no longer wanted. An invalid step (a simulator warning or a value that is not
  // finite) appends nothing and ends the episode, which stays unfinished in the row stream. REQUIRES that the
  // environment acts and rows->rows() < rows->capacity().
  Outcome Step(int environment, const Decision& decision, RowChunk* rows);
  // Why the first episode that was abandoned was: "in step 21 the reward is not finite or above 1e+18". Empty if none
  // was.
  const std::string& first_fault() const { return first_fault_; }
  // Not OK: a task cannot go on (Task::status).
  absl::Status status() const;

 private:
  struct Environment {
    std::unique_ptr<Task> task;           // null while it does not act
    std::vector<float> observation;       // [obs_dim]
    std::vector<float> next_observation;  // [obs_dim]
    float previous_cost = 0;
    double draw = 0;  // of the episode, uniform in [0, 1)
    std::vector<float> memory;
    uint32_t episode = 0;  // number of its episode; while it does not act, of the next one
    uint32_t step = 0;
    uint32_t limit = 0;  // length at which this episode ends
  };
  static uint32_t Horizon(const Environment& environment);
  absl::Status Start(int environment);  // creates its task and begins a shortened episode
  void BeginEpisode(int environment, uint32_t episode);
  void Reset(int environment);
  // Applies the action and fills next_observation.
  StepResult Advance(Environment* environment, const float* action);
  // Takes the reached state as the current one.
  static void CommitStep(const StepResult& reached, Environment* environment);

  const MakeTask make_task_;
  const Seeds seeds_;
  std::vector<Environment> environments_;
  std::vector<int> acting_;
  int wanted_ = 0;
  int memory_ = 0;
  std::string first_fault_;
  std::vector<double> wide_observation_;  // [obs_dim] workspace
  std::vector<double> wide_action_;       // [action_dim] workspace
};

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_ENVIRONMENT_BATCH_H_
// SPDX-License-Identifier: Apache-2.0
