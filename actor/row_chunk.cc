#include "actor/row_chunk.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace datacom::actor {
namespace {

// The columns that a transition can fill, in the order of Append. The last seven are optional in a schema.
constexpr std::array<absl::string_view, 19> kFilled = {"observation",
                                                       "action",
                                                       "reward",
                                                       "cost",
                                                       "next_observation",
                                                       "absorbing",
                                                       "last",
                                                       "environment",
                                                       "episode",
                                                       "step",
                                                       "policy_incarnation",
                                                       "policy_update",
                                                       kExecutedAction,
                                                       kPreviousCost,
                                                       kRawAction,
                                                       kCvar,
                                                       kDelta,
                                                       kLogProb,
                                                       kMemory};

}  // namespace

absl::StatusOr<RowChunk> RowChunk::Make(const RowSchema& schema, uint32_t capacity) {
  RowChunk chunk;
  chunk.capacity_ = capacity;
  size_t offset = 0;
  for (const Column& column : schema.wire()) {
    const size_t value = std::find(kFilled.begin(), kFilled.end(), column.name) - kFilled.begin();
    if (value == kFilled.size()) {
      return absl::FailedPreconditionError(absl::StrCat("actors cannot fill the row column ", column.name));
    }
    chunk.fields_.push_back({offset, column.bytes(), value});
    offset += column.bytes() * capacity;
  }
  chunk.buffer_.resize(offset);
  return chunk;
}

void RowChunk::Append(const TransitionRow& row) {
  const uint8_t absorbing = row.absorbing ? 1 : 0;
  const uint8_t last = row.last ? 1 : 0;
  const void* const values[] = {row.observation,
                                row.action,
                                &row.reward,
                                &row.cost,
                                row.next_observation,
                                &absorbing,
                                &last,
                                &row.environment,
                                &row.episode,
                                &row.step,
                                &row.policy.incarnation,
                                &row.policy.update,
                                row.executed,
                                &row.previous_cost,
                                row.raw_action,
                                &row.cvar,
                                &row.delta,
                                &row.log_prob,
                                row.memory};
  static_assert(sizeof values / sizeof values[0] == kFilled.size());
  for (const Field& field : fields_) {
    std::memcpy(buffer_.data() + field.offset + rows_ * field.row_bytes, values[field.value], field.row_bytes);
  }
  ++rows_;
}

std::string RowChunk::Take() {
  size_t bytes = 0;
  for (const Field& field : fields_) bytes += field.row_bytes * rows_;
  std::string columns;
  columns.reserve(bytes);
  for (const Field& field : fields_) columns.append(buffer_.data() + field.offset, field.row_bytes * rows_);
  rows_ = 0;
  return columns;
}

}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
