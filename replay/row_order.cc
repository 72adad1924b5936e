#include "replay/row_order.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::replay {
namespace {

// Bytes of a row's columns before the one of this name in a chunk.
size_t BytesBefore(const RowSchema& schema, absl::string_view name) {
  size_t bytes = 0;
  for (const Column& column : schema.wire()) {
    if (name == column.name) return bytes;
    bytes += column.bytes();
  }
  return bytes;
}

absl::Status Wrong(const char* column, uint32_t row, uint64_t value, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("column ", column, ", row ", row, ": ", value, " ", why));
}

}  // namespace

RowOrder::RowOrder(const RowSchema& schema, const Limits& limits)
    : limits_(limits),
      environment_(BytesBefore(schema, "environment")),
      episode_(BytesBefore(schema, "episode")),
      step_(BytesBefore(schema, "step")),
      absorbing_(BytesBefore(schema, "absorbing")),
      last_(BytesBefore(schema, "last")),
      policy_update_(BytesBefore(schema, "policy_update")) {}

absl::Status RowOrder::Check(const EpisodeTracker& held, uint32_t session, const std::string& columns, uint32_t count,
                             uint32_t from) {
  ++calls_;
  const char* const data = columns.data();
  const auto number = [&](size_t before, uint32_t row) { return At<uint32_t>(data + before * count, 4 * row); };
  const auto flag = [&](size_t before, uint32_t row) { return At<uint8_t>(data + before * count, row) != 0; };
  for (uint32_t row = from; row < count; ++row) {
    const uint32_t environment = number(environment_, row), episode = number(episode_, row), step = number(step_, row);
    if (environment >= places_.size()) places_.resize(environment + 1);
    Place& place = places_[environment];
    if (place.call != calls_) place = {calls_, held.Newest(session, environment)};
    const NewestRow& before = place.row;
    const bool continues = before.known && !before.last && episode == before.episode && step == before.step + 1;
    const bool begins = step == 0 && (!before.known || episode > before.episode);
    if (!continues && !begins && (before.known || !held.has_gap())) {
      if (!before.known) return Wrong("step", row, step, "is the first of its environment, which begins with 0");
      const std::string follows = absl::StrCat("of episode ", episode, " follows step ", before.step, " of episode ",
                                               before.episode, before.last ? ", its last" : "");
      return Wrong("step", row, step, follows);
    }
    const bool last = flag(last_, row);
    if (flag(absorbing_, row) && !last) return Wrong("absorbing", row, 1, "in a row that is not its episode's last");
    if (limits_.horizon > 0 && step >= limits_.horizon) {
      return Wrong("step", row, step, absl::StrCat("is beyond the horizon of ", limits_.horizon, " steps"));
    }
    const auto update = At<uint64_t>(data + policy_update_ * count, 8 * row);
    if (update > limits_.last_update) {
      return Wrong("policy_update", row, update,
                   absl::StrCat("is beyond the run's last update, ", limits_.last_update));
    }
    place.row = {true, last, episode, step};
  }
  return absl::OkStatus();
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
