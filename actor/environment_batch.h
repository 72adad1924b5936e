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
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::actor {

// The random stream of a training episode's start.
inline RandomStream EpisodeStart(uint64_t run_seed, uint64_t member_seed, uint32_t session, uint32_t environment,
                                 uint32_t episode) {
  return RandomStream(StreamKey("actor.episode", {run_seed, member_seed, session, environment, episode}));
}

// What an acting rule has decided for a batch of environments; arrays of [batch, ...].
struct ActedBatch {
  const float* actions = nullptr;   // [batch, action_dim] stored
  const float* executed = nullptr;  // [batch, action_dim] applied: `actions`, unless the rule filters after the policy
  const float* memory = nullptr;    // [batch, count of SetMemory] after the decision
  std::vector<const float*> columns;  // [batch, width] each, those that the rule declares
  SnapshotVersion policy;
};

// Buffer for rows of one member, kept as columns in the wire layout of proto Chunk.
// Not thread-safe; owns its memory, which the constructor allocates: Append allocates nothing, Take returns a new
// string.
class RowChunk {
 public:
  RowChunk(const RowSchema& schema, uint32_t capacity);

  uint32_t rows() const { return rows_; }
  uint32_t capacity() const { return capacity_; }
  // Appends a row: row `row` of the acting rule's columns, and values of the schema's columns `before` and `after`
  // these, in its order. REQUIRES rows() < capacity().
  void Append(std::initializer_list<const void*> before, const std::vector<const float*>& columns, size_t row,
              std::initializer_list<const void*> after);
  // Returns every column as [rows(), width] in schema order; the chunk is empty afterwards.
  std::string Take();

 private:
  uint32_t capacity_ = 0;
  uint32_t rows_ = 0;
  std::vector<ColumnPlace> places_;  // of the wire columns in a block of capacity_ rows
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

  // Tells an environment the action [action_dim] that its next step will execute (Task::Prepare).
  void Prepare(int environment, const float* action);
  enum class Outcome { kContinues, kEnded, kAbandoned };
  // Executes the action in row `row` of `acted` and appends the transition to `rows`. When the episode ends, the
  // environment begins the next one, or stops acting if it is no longer wanted. An invalid step (a simulator warning or
  // a value that is not finite) appends nothing and ends the episode, which stays unfinished in the row stream.
  // REQUIRES that the environment acts and rows->rows() < rows->capacity().
  Outcome Step(int environment, const ActedBatch& acted, int row, RowChunk* rows);
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
