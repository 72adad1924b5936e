#include "actor/row_chunk.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace datacom::actor {
namespace {

// Where a transition has the value: the pointer, or the address of the number.
template <auto Member>
const void* Value(const TransitionRow& row) {
  if constexpr (std::is_pointer_v<std::decay_t<decltype(row.*Member)>>) {
    return row.*Member;
  } else {
    return &(row.*Member);
  }
}

struct Filled {
  absl::string_view column;
  const void* (*value)(const TransitionRow& row);
};

// The columns that a transition can fill. The last seven are optional in a schema.
constexpr Filled kFilled[] = {
    {"observation", Value<&TransitionRow::observation>},
    {"action", Value<&TransitionRow::action>},
    {"reward", Value<&TransitionRow::reward>},
    {"cost", Value<&TransitionRow::cost>},
    {"next_observation", Value<&TransitionRow::next_observation>},
    {"absorbing", Value<&TransitionRow::absorbing>},
    {"last", Value<&TransitionRow::last>},
    {"environment", Value<&TransitionRow::environment>},
    {"episode", Value<&TransitionRow::episode>},
    {"step", Value<&TransitionRow::step>},
    {"policy_incarnation", [](const TransitionRow& row) -> const void* { return &row.policy.incarnation; }},
    {"policy_update", [](const TransitionRow& row) -> const void* { return &row.policy.update; }},
    {kExecutedAction, Value<&TransitionRow::executed>},
    {kPreviousCost, Value<&TransitionRow::previous_cost>},
    {kRawAction, Value<&TransitionRow::raw_action>},
    {kCvar, Value<&TransitionRow::cvar>},
    {kDelta, Value<&TransitionRow::delta>},
    {kLogProb, Value<&TransitionRow::log_prob>},
    {kMemory, Value<&TransitionRow::memory>},
};
static_assert(sizeof(TransitionRow::absorbing) == 1 && sizeof(TransitionRow::last) == 1);  // columns of bytes

}  // namespace

absl::StatusOr<RowChunk> RowChunk::Make(const RowSchema& schema, uint32_t capacity) {
  RowChunk chunk;
  chunk.capacity_ = capacity;
  size_t offset = 0;
  for (const Column& column : schema.wire()) {
    const auto* const filled = std::find_if(std::begin(kFilled), std::end(kFilled),
                                            [&column](const Filled& one) { return one.column == column.name; });
    if (filled == std::end(kFilled)) {
      return absl::FailedPreconditionError(absl::StrCat("actors cannot fill the row column ", column.name));
    }
    chunk.fields_.push_back({offset, column.bytes(), filled->value});
    offset += column.bytes() * capacity;
  }
  chunk.buffer_.resize(offset);
  return chunk;
}

void RowChunk::Append(const TransitionRow& row) {
  for (const Field& field : fields_) {
    std::memcpy(buffer_.data() + field.offset + rows_ * field.row_bytes, field.value(row), field.row_bytes);
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
