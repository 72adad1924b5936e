// The columns of a transition, for the wire, the ring and the learner.
//
// Wire chunk ("columns" of proto Chunk): every wire() column as [rows, width], little-endian, no padding, in schema
// order. Draws carry learning() columns in the same form. A stored row holds all columns of stored(), row-major, at
// offset(). Immutable after For(); safe to share between threads.
#ifndef DATACOM_COMMON_TRANSITIONS_ROW_SCHEMA_H_
#define DATACOM_COMMON_TRANSITIONS_ROW_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace datacom {

enum class ColumnType : uint8_t { kFloat32, kUint8, kUint32, kUint64 };

size_t SizeOf(ColumnType type);

// The value of type T at `offset` of `row`.
template <typename T>
T At(const char* row, size_t offset) {
  T value;
  std::memcpy(&value, row + offset, sizeof value);
  return value;
}

// The columns of acting rules that replay or records read. A rule may have others (ActingRuleColumns).
// Executed action; stored by rules that filter after the policy.
inline constexpr char kExecutedAction[] = "executed_action";
// Unfiltered policy action; stored by rules whose `action` is already filtered.
inline constexpr char kRawAction[] = "raw_action";
// CVaR of the learned constraint at the observation, and the snapshot's threshold delta.
inline constexpr char kCvar[] = "cvar";
inline constexpr char kDelta[] = "delta";
// Log-density of `action` under the policy that acted; stored by rules whose algorithm learns from it.
inline constexpr char kLogProb[] = "log_prob";
// The acting rule's memory of the episode (ActingInputs::memory), after the row's decision.
inline constexpr char kMemory[] = "memory";

struct Column {
  std::string name;
  ColumnType type = ColumnType::kFloat32;
  uint32_t width = 1;    // values per row
  bool learning = true;  // sent to the learner in draws
  size_t bytes() const { return SizeOf(type) * width; }
};

// A column in a block of rows that holds one column after the other, each without padding: for a block of n rows it
// begins at byte n * before; each row has `bytes` bytes.
struct ColumnPlace {
  size_t before = 0, bytes = 0;
};
ColumnPlace PlaceOf(const std::vector<Column>& columns, absl::string_view name);  // {0, 0} if there is no such column

inline constexpr size_t kPlaceBytes = 4 * sizeof(uint32_t);  // bytes of a row in proto MemberBatch::places

inline Column ExecutedActionColumn(uint32_t action_dim) {
  return {kExecutedAction, ColumnType::kFloat32, action_dim, false};
}

// Numbers of an observation that records know by name.
struct NamedNumbers {
  std::vector<std::string> names;
  uint32_t at = 0;  // where they begin in the observation
};

class RowSchema {
 public:
  // Columns for a task of these dimensions; `extra`: the columns that an acting rule declares, float32.
  //   observation f32[obs_dim], action f32[action_dim] (executed, unless there is a column executed_action), reward
  //   f32, cost f32 (raw signed, of the reached state), next_observation f32[obs_dim], the extra columns, absorbing u8,
  //   last u8 (absorbing or time limit), environment u32 (member-local), episode u32 (per environment), step u32 (from
  //   0 within the episode), policy_incarnation u32, policy_update u64 (of the snapshot that acted); stored only:
  //   session u32, sequence u64.
  static RowSchema For(uint32_t obs_dim, uint32_t action_dim, const std::vector<Column>& extra = {},
                       const NamedNumbers& costs = {}, const NamedNumbers& logs = {});

  const std::vector<Column>& wire() const { return wire_; }          // what an actor sends
  const std::vector<Column>& learning() const { return learning_; }  // what a draw carries
  const std::vector<Column>& stored() const { return stored_; }      // wire() + session, sequence

  size_t wire_row_bytes() const { return wire_row_bytes_; }
  size_t learning_row_bytes() const { return learning_row_bytes_; }
  size_t stored_row_bytes() const { return stored_row_bytes_; }  // multiple of 8
  // Column of the executed action: executed_action if the rule declares it, else action.
  absl::string_view executed_column() const;
  // Column of the unfiltered policy action: raw_action if the rule declares it, else action.
  absl::string_view raw_column() const;
  bool has(absl::string_view stored_column) const;
  // Byte offset of a stored column within a stored row; aborts on an unknown name (programming error).
  size_t offset(absl::string_view stored_column) const;

  uint32_t obs_dim() const { return obs_dim_; }
  uint32_t action_dim() const { return action_dim_; }
  const NamedNumbers& named_costs() const { return named_costs_; }  // without names if the task has one cost
  const NamedNumbers& logs() const { return logs_; }                // quantities that are only recorded
  // Hash of names, types, widths and order. The handshake fails when the peers' differ. Never 0.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  uint32_t obs_dim_ = 0, action_dim_ = 0;
  NamedNumbers named_costs_, logs_;
  std::vector<Column> wire_, learning_, stored_;
  std::vector<size_t> offsets_;
  size_t wire_row_bytes_ = 0, learning_row_bytes_ = 0, stored_row_bytes_ = 0;
  uint64_t fingerprint_ = 0;
};

// Most bytes of rows in one message of a draw; leaves 4 MiB of a message for episodes. INVALID_ARGUMENT if a member's
// `rows` are larger: the members of a draw may come in several messages, the rows of one member come in one.
inline constexpr uint64_t kMaxDrawBytes = 12 << 20;
absl::Status CheckDrawSize(const RowSchema& schema, uint64_t rows);

}  // namespace datacom

#endif  // DATACOM_COMMON_TRANSITIONS_ROW_SCHEMA_H_
// SPDX-License-Identifier: Apache-2.0
