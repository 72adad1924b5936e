// The replay on a full file system.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/files.h"
#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/small_disk.h"

namespace datacom::replay {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::SmallDisk;
using testing::Client;
using ::testing::ContainsRegex;
using testing::MakeChunk;
using testing::MemberOf;
using testing::MustOpen;
using testing::SimpleRows;
using testing::SmallOptions;
using testing::SmallSchema;
using testing::StoreOptions;

constexpr uint64_t kMiB = 1 << 20;

TEST(ReplayDiskFullTest, WithoutSpaceForItsRingsItStatesItsNeedAndStartsLater) {
  SmallDisk disk(40 << 10);
  if (!disk.mounted()) GTEST_SKIP() << disk.why();
  ManualClock clock;
  const auto options = StoreOptions(SmallOptions(4), disk.path() + "/replay", &clock);
  const absl::Status refused = Store::Open(SmallSchema(), options).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), ContainsRegex("no disk space for " + disk.path() +
                                                            "/replay/member_[0-9].(rows|failures): [0-9]+ bytes are "
                                                            "needed, [0-9]+ are free"));
  disk.Resize(4 * kMiB);
  const auto opened = Store::Open(SmallSchema(), options);
  EXPECT_THAT(opened, IsOk());
}

TEST(ReplayDiskFullTest, RingsThatCannotGrowTakeNoRoomFromOthers) {
  SmallDisk disk(kMiB);
  if (!disk.mounted()) GTEST_SKIP() << disk.why();
  ManualClock clock;
  ASSERT_NE(MustOpen(SmallOptions(1), disk.path(), &clock), nullptr);
  const uint64_t free = FreeBytes(disk.path()).value();
  Options more = SmallOptions(1);
  more.layout.capacity = more.limits.schedule.env_steps = kMiB;
  const absl::Status refused = Store::Open(SmallSchema(), StoreOptions(more, disk.path(), &clock)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()),
              ContainsRegex("/member_0.rows: [0-9]+ bytes are needed, [1-9][0-9]+ are free"));
  EXPECT_EQ(FreeBytes(disk.path()).value(), free);
  EXPECT_NE(MustOpen(SmallOptions(1), disk.path(), &clock), nullptr);
}

TEST(ReplayDiskFullTest, ItAcceptsRowsRefusesNewActorsAndLosesNoAcknowledgedRow) {
  SmallDisk disk(4 * kMiB);
  if (!disk.mounted()) GTEST_SKIP() << disk.why();
  ManualClock clock;
  auto store = MustOpen(SmallOptions(1), disk.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  disk.Fill();
  for (uint64_t completed = 1; completed < 300; ++completed) {  // the rings wrap in their reserved space
    client.Hear(store.get());
    const auto count = static_cast<uint32_t>(client.limit[0] - client.next[0]);
    ASSERT_EQ(client.Send(store.get(), MakeChunk(0, client.next[0], SimpleRows(client.next[0], count))),
              absl::StatusCode::kOk);
    if (store->Ready(completed)) (void)store->Announce(completed);
  }
  client.Hear(store.get());
  const absl::Status refused = store->Register("actor-1", 1, 1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              ContainsRegex("no disk space for " + disk.path() + "/sessions.tmp: [0-9]+ bytes are needed, 0 are free"));
  EXPECT_THAT(store->health(), IsOk()) << "registered actors may continue";
  store.reset();
  Options again = SmallOptions(1);
  again.start = 2;
  store = MustOpen(again, disk.path(), &clock);  // while the disk is still full
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->start(), 1u) << "the new start could not be stored, so it counts as the one before";
  EXPECT_EQ(MemberOf(*store, 0).inserted(), client.next[0]);
  client.Reconnect(store.get());
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, client.next[0], SimpleRows(client.next[0], 1))),
            absl::StatusCode::kOk);
  disk.Free();
  EXPECT_THAT(store->Register("actor-1", 1, 1), IsOk());
}

TEST(ReplayDiskFullTest, ADeadActorsCreditReturnsEvenIfItsEndCannotBeStored) {
  SmallDisk disk(4 * kMiB);
  if (!disk.mounted()) GTEST_SKIP() << disk.why();
  ManualClock clock;
  auto store = MustOpen(SmallOptions(1), disk.path(), &clock);
  Client dead, alive;
  dead.Open(store.get(), "actor-0", 1, 1);
  alive.Open(store.get(), "actor-1", 1, 1);
  const auto use_all = [&](Client* client) {
    while (client->limit[0] > client->next[0]) {
      const auto count = static_cast<uint32_t>(client->limit[0] - client->next[0]);
      ASSERT_EQ(client->Send(store.get(), MakeChunk(0, client->next[0], SimpleRows(client->next[0], count))),
                absl::StatusCode::kOk);
      client->Hear(store.get());
    }
  };
  ASSERT_NO_FATAL_FAILURE(use_all(&alive));
  ASSERT_GT(dead.limit[0], dead.next[0]);
  const uint64_t before = alive.limit[0];
  store->Disconnect(dead.session, dead.stream);
  disk.Fill();
  clock.Advance(std::chrono::seconds(31));
  EXPECT_EQ(store->Tick().code(), absl::StatusCode::kResourceExhausted);
  alive.Hear(store.get());
  EXPECT_GT(alive.limit[0], before);
  EXPECT_FALSE(store->Tick().ok()) << "the end is still not stored";
  disk.Free();
  EXPECT_THAT(store->Tick(), IsOk());
  store.reset();
  store = MustOpen(SmallOptions(1), disk.path(), &clock);
  EXPECT_EQ(store->Connect(dead.session, dead.incarnation).status().code(), absl::StatusCode::kNotFound);
}

TEST(ReplayDiskFullTest, ASessionThatCouldNotBeStoredIsNotGivenToARetry) {
  SmallDisk disk(4 * kMiB);
  if (!disk.mounted()) GTEST_SKIP() << disk.why();
  ManualClock clock;
  auto store = MustOpen(SmallOptions(1), disk.path(), &clock);
  disk.Fill();
  EXPECT_FALSE(store->Register("actor-0", 1, 1).ok());
  EXPECT_FALSE(store->Register("actor-0", 1, 1).ok());
  disk.Free();
  const auto registered = store->Register("actor-0", 1, 1);
  ASSERT_THAT(registered, IsOk());
  store.reset();
  store = MustOpen(SmallOptions(1), disk.path(), &clock);
  EXPECT_THAT(store->Connect(registered->session(), 1), IsOk());
}

}  // namespace
}  // namespace datacom::replay

// As that of ext4: what could be reserved stays reserved.
extern "C" int posix_fallocate(int fd, off_t offset, off_t bytes) {
  constexpr off_t kPiece = 4096;
  for (off_t at = offset; at < offset + bytes; at += kPiece) {
    if (::syscall(SYS_fallocate, fd, 0, at, std::min(kPiece, offset + bytes - at)) != 0) return errno;
  }
  return 0;
}
// SPDX-License-Identifier: Apache-2.0
