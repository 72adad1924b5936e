#include "replay/row_order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/transitions/check_columns.h"

namespace datacom::replay {
namespace {

uint32_t Largest(const char* data, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, At<uint32_t>(data, 4 * i));
  return largest;
}

absl::Status CheckEnvironments(const Column& column, const char* data, size_t count, uint32_t environments) {
  if (Largest(data, count) < environments) return absl::OkStatus();
  for (size_t i = 0; i < count; ++i) {
    const uint32_t value = At<uint32_t>(data, 4 * i);
    if (value >= environments)
      return WrongValue(column, i, absl::StrCat(value, " is not below the session's ", environments, " environments"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateChunk(const RowSchema& schema, const v1::Chunk& chunk, uint32_t environments) {
  const uint64_t rows = chunk.row_count();
  const uint64_t wanted = rows * schema.wire_row_bytes();
  if (rows == 0) return absl::InvalidArgumentError("chunk without rows");
  if (chunk.columns().size() > kMaxChunkBytes || wanted > kMaxChunkBytes) {
    return absl::InvalidArgumentError(absl::StrCat("chunk of ", std::max<uint64_t>(wanted, chunk.columns().size()),
                                                   " bytes; at most ", kMaxChunkBytes, " are allowed"));
  }
  if (chunk.columns().size() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("chunk of ", rows, " rows has ", chunk.columns().size(),
                                                   " bytes of columns instead of ", wanted, " (",
                                                   schema.wire_row_bytes(), " per row)"));
  }
  if (chunk.fault().size() > kMaxFaultBytes)
    return absl::InvalidArgumentError(
        absl::StrCat("fault of ", chunk.fault().size(), " bytes; at most ", kMaxFaultBytes, " are allowed"));
  if (chunk.first_sequence() > UINT64_MAX / 2)
    return absl::InvalidArgumentError(absl::StrCat("first_sequence ", chunk.first_sequence(), " is too large"));
  const char* data = chunk.columns().data();
  for (const Column& column : schema.wire()) {
    RETURN_IF_ERROR(CheckColumn(column, data, rows));
    if (column.name == "environment") RETURN_IF_ERROR(CheckEnvironments(column, data, rows, environments));
    data += rows * column.bytes();
  }
  return absl::OkStatus();
}

namespace {

absl::Status Wrong(const char* column, uint32_t row, uint64_t value, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("column ", column, ", row ", row, ": ", value, " ", why));
}

}  // namespace

uint64_t LastPolicyUpdate(const RowSchema& schema, const std::string& columns, uint32_t count) {
  return At<uint64_t>(columns.data() + PlaceOf(schema.wire(), "policy_update").before * count, 8 * (count - 1));
}

RowOrder::RowOrder(const RowSchema& schema, const Limits& limits)
    : limits_(limits),
      environment_(PlaceOf(schema.wire(), "environment").before),
      episode_(PlaceOf(schema.wire(), "episode").before),
      step_(PlaceOf(schema.wire(), "step").before),
      absorbing_(PlaceOf(schema.wire(), "absorbing").before),
      last_(PlaceOf(schema.wire(), "last").before),
      policy_update_(PlaceOf(schema.wire(), "policy_update").before) {}

absl::Status RowOrder::Check(const EpisodeTracker& held, uint32_t session, const std::string& columns, uint32_t count,
                             uint32_t from) {
  const char* const data = columns.data();
  const char* const environments = data + environment_ * count;
  const char* const episodes = data + episode_ * count;
  const char* const steps = data + step_ * count;
  const char* const absorbing = data + absorbing_ * count;
  const char* const lasts = data + last_ * count;
  const char* const updates = data + policy_update_ * count;
  // One pass for each column, without branches and with indices of 64 bits, which the compiler vectorizes.
  uint32_t largest_step = 0;
  uint64_t largest_update = 0;
  uint8_t endless = 0;
  for (size_t row = from; row < count; ++row) largest_step = std::max(largest_step, At<uint32_t>(steps, 4 * row));
  for (size_t row = from; row < count; ++row) largest_update = std::max(largest_update, At<uint64_t>(updates, 8 * row));
  for (size_t row = from; row < count; ++row) endless |= absorbing[row] & ~lasts[row];
  const bool too_late = limits_.horizon > 0 && largest_step >= limits_.horizon;
  if (too_late || largest_update > limits_.last_update || endless != 0) {
    for (uint32_t row = from; row < count; ++row) RETURN_IF_ERROR(CheckRow(columns, count, row));
  }
  ++calls_;
  // Whether each row is of the environment of the row `lanes` before it, and Follows it.
  const auto repeats = [&](size_t first, size_t lanes) {
    uint32_t wrong = 0;
    for (size_t row = first, before = first - lanes; row < count; ++row, ++before) {
      const uint32_t step = At<uint32_t>(steps, 4 * row), episode = At<uint32_t>(episodes, 4 * row);
      const uint32_t step_before = At<uint32_t>(steps, 4 * before), episode_before = At<uint32_t>(episodes, 4 * before);
      const uint32_t last_before = static_cast<uint8_t>(lasts[before]);
      const bool continues = ((episode ^ episode_before) | (step ^ (step_before + 1)) | last_before) == 0;
      const bool begins = (step == 0) & (episode > episode_before);
      wrong |= (continues | begins) ? 0 : 1;
      wrong |= At<uint32_t>(environments, 4 * row) ^ At<uint32_t>(environments, 4 * before);
    }
    return wrong == 0;
  };
  bool repeated = false;  // an environment of this chunk
  for (uint32_t row = from; row < count; ++row) {
    const auto environment = At<uint32_t>(environments, 4 * row), episode = At<uint32_t>(episodes, 4 * row),
               step = At<uint32_t>(steps, 4 * row);
    if (environment >= places_.size()) places_.resize(environment + 1);
    Place& place = places_[environment];
    if (place.call != calls_) {
      place = {calls_, held.Newest(session, environment)};
    } else if (!repeated) {  // the rows so far are of different environments, which usually take turns
      repeated = true;
      if (repeats(row, row - from)) return absl::OkStatus();
    }
    const NewestRow& before = place.row;
    if (!Follows(before, episode, step) && (before.known || !held.has_gap())) {
      if (!before.known) return Wrong("step", row, step, "is the first of its environment, which begins with 0");
      const std::string follows = absl::StrCat("of episode ", episode, " follows step ", before.step, " of episode ",
                                               before.episode, before.last ? ", its last" : "");
      return Wrong("step", row, step, follows);
    }
    place.row = {true, lasts[row] != 0, episode, step};
  }
  return absl::OkStatus();
}

absl::Status RowOrder::CheckRow(const std::string& columns, uint32_t count, uint32_t row) const {
  const char* const data = columns.data();
  const auto step = At<uint32_t>(data + step_ * count, 4 * row);
  const auto update = At<uint64_t>(data + policy_update_ * count, 8 * row);
  const bool absorbing = (data + absorbing_ * count)[row] != 0, last = (data + last_ * count)[row] != 0;
  if (absorbing && !last) return Wrong("absorbing", row, 1, "in a row that is not its episode's last");
  if (limits_.horizon > 0 && step >= limits_.horizon) {
    return Wrong("step", row, step, absl::StrCat("is beyond the horizon of ", limits_.horizon, " steps"));
  }
  if (update <= limits_.last_update) return absl::OkStatus();
  return Wrong("policy_update", row, update, absl::StrCat("is beyond the run's last update, ", limits_.last_update));
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
