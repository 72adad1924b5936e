// Buffer for rows of one member, kept as columns in the wire layout of proto Chunk.
// Not thread-safe; owns its memory, which Make allocates: Append allocates nothing, Take returns a new string.
#ifndef DATACOM_ACTOR_ROW_CHUNK_H_
#define DATACOM_ACTOR_ROW_CHUNK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/nn/snapshot.h"
#include "common/transitions/row_schema.h"

namespace datacom::actor {

// One transition. Pointers are read during Append only; a pointer for a column that the schema lacks may be null.
struct TransitionRow {
  const float* observation = nullptr;       // [obs_dim]
  const float* action = nullptr;            // [action_dim]
  const float* executed = nullptr;          // [action_dim], applied to the environment
  const float* raw_action = nullptr;        // [action_dim], unfiltered policy action
  float cvar = 0, delta = 0;                // set only by rules with a learned constraint
  float log_prob = 0;                       // log-density of `action` under the policy
  const float* memory = nullptr;            // after the decision; set only by rules with memory
  const float* next_observation = nullptr;  // [obs_dim]
  float reward = 0;
  float cost = 0;           // raw, signed, of the reached state
  float previous_cost = 0;  // cost of the previous state; 0 at an episode's first step
  bool absorbing = false;
  bool last = false;  // absorbing, truncated or time limit
  uint32_t environment = 0;
  uint32_t episode = 0;
  uint32_t step = 0;
  SnapshotVersion policy;
};

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

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_ROW_CHUNK_H_
// SPDX-License-Identifier: Apache-2.0
