#include "actor/row_chunk.h"

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace datacom {
namespace {

// The order in which Append fills columns; Make checks that the schema has exactly these.
constexpr std::array<const char*, 12> kFilled = {
    "observation", "action",      "reward",  "cost", "next_observation",   "absorbing",
    "last",        "environment", "episode", "step", "policy_incarnation", "policy_update"};

}  // namespace

absl::StatusOr<RowChunk> RowChunk::Make(const RowSchema& schema, uint32_t capacity) {
  RowChunk chunk;
  chunk.capacity_ = capacity;
  size_t offset = 0;
  for (size_t i = 0; i < schema.wire().size(); ++i) {
    const Column& column = schema.wire()[i];
    if (i >= kFilled.size() || column.name != kFilled[i]) {
      return absl::FailedPreconditionError(absl::StrCat("row column ", column.name, " is none that an actor fills"));
    }
    chunk.fields_.push_back({offset, column.bytes()});
    offset += column.bytes() * capacity;
  }
  if (chunk.fields_.size() != kFilled.size()) {
    return absl::FailedPreconditionError(absl::StrCat("the row schema lacks column ", kFilled[chunk.fields_.size()]));
  }
  chunk.buffer_.resize(offset);
  return chunk;
}

void RowChunk::Put(size_t column, const void* value) {
  const Field& field = fields_[column];
  std::memcpy(buffer_.data() + field.offset + rows_ * field.row_bytes, value, field.row_bytes);
}

void RowChunk::Append(const TransitionRow& row) {
  const uint8_t absorbing = row.absorbing ? 1 : 0;
  const uint8_t last = row.last ? 1 : 0;
  const void* const values[] = {
      row.observation, row.action,       &row.reward,  &row.cost, row.next_observation,    &absorbing,
      &last,           &row.environment, &row.episode, &row.step, &row.policy.incarnation, &row.policy.update};
  static_assert(sizeof values / sizeof values[0] == kFilled.size());
  for (size_t column = 0; column < kFilled.size(); ++column) Put(column, values[column]);
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

}  // namespace datacom
