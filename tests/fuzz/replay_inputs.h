// A small replay for the fuzz targets, and everything that it answers about what it keeps. Not thread-safe.
#ifndef DATACOM_TESTS_FUZZ_REPLAY_INPUTS_H_
#define DATACOM_TESTS_FUZZ_REPLAY_INPUTS_H_

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/replay/replay_fixture.h"

namespace datacom::fuzz {

inline constexpr uint32_t kMembers = 2;

inline const RowSchema& Schema() {
  static const RowSchema schema = replay::testing::SmallSchema();
  return schema;
}

// For a replay whose rings have two blocks: few rows wrap them, and every restart is quick.
inline replay::Options SmallOptions() {
  replay::Options options = replay::testing::SmallOptions(kMembers);
  options.layout.capacity = 24;
  options.layout.failure_capacity = 8;
  options.layout.slack = 19;
  return options;
}

// Rows of a member that can be read: the newest.
inline uint64_t KeptRows() { return SmallOptions().layout.capacity + SmallOptions().layout.slack; }

inline absl::StatusOr<std::unique_ptr<replay::Store>> OpenStore(const std::string& folder, const Clock* clock,
                                                                bool sync) {
  replay::Options options = replay::testing::StoreOptions(SmallOptions(), folder, clock);
  options.sync = sync;
  return replay::Store::Open(Schema(), options);
}

// Rows, failures, episodes, credit and sessions; with `draws` also the newest draws. The same before and after a
// restart.
inline std::string Content(replay::Store* store, bool draws) {
  v1::ReplayInfo info;
  store->Info(&info);
  std::string content;
  for (uint32_t member = 0; member < kMembers; ++member) {
    const v1::MemberInfo& about = info.members(static_cast<int>(member));
    absl::StrAppend(&content, about.inserted(), " ", about.failures(), " ", about.episodes(), "\n");
    v1::RowRange range;
    const uint64_t held = std::min(about.inserted(), KeptRows());
    MustAccept(store->ReadRange(member, about.inserted() - held, about.inserted(), &range));
    content += range.columns();
    for (const auto& [session, actor] : std::map<uint32_t, std::string>(range.actors().begin(), range.actors().end()))
      absl::StrAppend(&content, session, "=", actor, "\n");
  }
  for (const v1::SessionInfo& session : info.sessions()) {
    absl::StrAppend(&content, session.session(), " ", session.actor(), " ", session.environments(), ", assignment ",
                    session.assignment().number(), ":");
    for (const v1::MemberLanes& member : session.assignment().members()) {  // a member without lanes leaves or has left
      if (member.lanes() > 0) absl::StrAppend(&content, " ", member.member(), "*", member.lanes());
    }
    content += "\n";
  }
  const uint64_t rows = std::min(info.members(0).inserted(), info.members(1).inserted());
  const uint64_t newest = rows > 10 ? rows - 10 : 0;  // min_size is 10, one update per row
  for (uint64_t update = newest - std::min<uint64_t>(newest, 2) + 1; draws && update <= newest; ++update) {
    v1::DrawReply reply;
    const absl::Status drawn = store->Draw(update, &reply);
    content += drawn.ok() ? replay::testing::PureBytes(reply) : drawn.ToString();
  }
  return content;
}

}  // namespace datacom::fuzz

#endif  // DATACOM_TESTS_FUZZ_REPLAY_INPUTS_H_
// SPDX-License-Identifier: Apache-2.0
