// Rows of one member on their way to the replay, kept as columns in the wire layout of proto Chunk.
// Not thread-safe; owns its buffers, sized at making: Append allocates nothing, only Take hands out a new string.
#ifndef DATACOM_ACTOR_ROW_CHUNK_H_
#define DATACOM_ACTOR_ROW_CHUNK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/nn/snapshot.h"
#include "common/rows/row_schema.h"

namespace datacom {

// One transition. Pointers are read during Append only.
struct TransitionRow {
  const float* observation = nullptr;       // [obs_dim]
  const float* action = nullptr;            // [action_dim], as chosen
  const float* executed = nullptr;          // [action_dim], what the environment was given
  const float* raw_action = nullptr;        // [action_dim], what the policy chose; null where that is `action`
  float cvar = 0, delta = 0;                // of rules with a learned constraint
  const float* next_observation = nullptr;  // [obs_dim]
  float reward = 0;
  float cost = 0;           // raw, signed, of the reached state
  float previous_cost = 0;  // of the state before; 0 at an episode's first step
  bool absorbing = false;
  bool last = false;  // absorbing or time limit
  uint32_t environment = 0;
  uint32_t episode = 0;
  uint32_t step = 0;
  SnapshotVersion policy;
};

class RowChunk {
 public:
  // FAILED_PRECONDITION naming the first column that a transition cannot fill.
  static absl::StatusOr<RowChunk> Make(const RowSchema& schema, uint32_t capacity);

  uint32_t rows() const { return rows_; }
  uint32_t capacity() const { return capacity_; }
  // REQUIRES rows() < capacity().
  void Append(const TransitionRow& row);
  // Every column as [rows(), width] in schema order; the chunk is empty afterwards.
  std::string Take();

 private:
  RowChunk() = default;
  struct Field {  // one wire column: where its buffer starts, what a row takes of it, which of a row's values it is
    size_t offset = 0;
    size_t row_bytes = 0;
    size_t value = 0;
  };

  uint32_t capacity_ = 0;
  uint32_t rows_ = 0;
  std::vector<Field> fields_;
  std::vector<char> buffer_;
};

}  // namespace datacom

#endif  // DATACOM_ACTOR_ROW_CHUNK_H_
