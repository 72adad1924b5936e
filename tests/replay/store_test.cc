#include "replay/store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"

namespace datacom::replay::testing {
namespace {

using ::datacom::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The lanes of each member, from Info and, once there are rows, from the draw of the first update.
std::vector<uint32_t> Lanes(Store* store) {
  std::vector<uint32_t> told, drawn;
  v1::ReplayInfo info;
  store->Info(&info);
  for (const v1::MemberInfo& member : info.members()) told.push_back(member.lanes());
  if (!store->Ready(1)) return told;
  v1::DrawReply draw;
  EXPECT_THAT(store->Draw(1, &draw), IsOk());
  for (const v1::MemberBatch& batch : draw.batches()) drawn.push_back(batch.lanes());
  EXPECT_EQ(drawn, told);
  return told;
}

// Sends the rows that the first update's draw needs.
void SendFirstRows(Store* store, Client* client, uint32_t members) {
  for (uint32_t member = 0; member < members; ++member) {
    for (uint64_t next = 0; next < 11;) {
      client->Hear(store);
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(client->limit[member], 11) - next);
      ASSERT_GT(count, 0u);
      ASSERT_EQ(client->Send(store, MakeChunk(member, next, SimpleRows(next, count))), absl::StatusCode::kOk);
      next += count;
    }
  }
  ASSERT_TRUE(store->Ready(1));
}

TEST(StoreTest, LanesAreTheEnvironmentsOfAMembersLivingSessions) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallOptions(4), folder.path(), &clock);
  EXPECT_THAT(Lanes(store.get()), ElementsAre(0, 0, 0, 0));
  Client wide;
  wide.Open(store.get(), "wide", 1, 8);
  EXPECT_THAT(Lanes(store.get()), ElementsAre(2, 2, 2, 2));
  ASSERT_NO_FATAL_FAILURE(SendFirstRows(store.get(), &wide, 4));
  ASSERT_THAT(store->Register("half", 1, 2), IsOk());
  EXPECT_THAT(Lanes(store.get()), ElementsAre(2, 2, 2, 2)) << "ten environments; two of them stay without a member";
  ASSERT_THAT(store->Register("uneven", 1, 5), IsOk());
  EXPECT_THAT(Lanes(store.get()), ElementsAre(3, 3, 3, 3));
  ASSERT_THAT(store->Register("uneven", 1, 5), IsOk()) << "a retry";
  EXPECT_THAT(Lanes(store.get()), ElementsAre(3, 3, 3, 3));
  ASSERT_THAT(store->Register("uneven", 2, 12), IsOk()) << "a restart ends the older session";
  EXPECT_THAT(Lanes(store.get()), ElementsAre(5, 5, 5, 5));
  store.reset();
  store = MustOpen(SmallOptions(4), folder.path(), &clock);
  EXPECT_THAT(Lanes(store.get()), ElementsAre(5, 5, 5, 5)) << "recovered sessions count";
  wide.Reconnect(store.get());
  clock.Advance(std::chrono::seconds(31));
  ASSERT_THAT(store->Tick(), IsOk());
  EXPECT_THAT(Lanes(store.get()), ElementsAre(2, 2, 2, 2)) << "the other leases have expired";
}

TEST(StoreTest, AtMost1024SessionsLive) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallOptions(1), folder.path(), &clock);
  for (int i = 0; i < 1024; ++i) ASSERT_THAT(store->Register(absl::StrCat("actor-", i), 1, 1), IsOk());
  const absl::Status refused = store->Register("actor-1024", 1, 1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("1024 sessions are live; that is the maximum"));
}

TEST(StoreTest, InLockstepAMemberAlwaysHasOneLane) {
  const Options options = LockstepOptions(2);
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(options, folder.path(), &clock);
  EXPECT_THAT(Lanes(store.get()), ElementsAre(1, 1)) << "before its actor registered";
  Client client;
  client.Open(store.get(), "actor-0", 1, 8);
  EXPECT_THAT(Lanes(store.get()), ElementsAre(1, 1));
  ASSERT_NO_FATAL_FAILURE(SendFirstRows(store.get(), &client, 2));
  EXPECT_THAT(Lanes(store.get()), ElementsAre(1, 1));
  store.reset();
  store = MustOpen(options, folder.path(), &clock);
  EXPECT_THAT(Lanes(store.get()), ElementsAre(1, 1)) << "while its actor restarts";
}

TEST(StoreTest, DistinguishesGapsRetriesAndInvalidRows) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallOptions(1), folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  std::string message;
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 4))), absl::StatusCode::kOk);
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 4))), absl::StatusCode::kOk) << "a retry";
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 5, SimpleRows(5, 1)), &message), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(message, HasSubstr("sequence 4 is expected"));
  EXPECT_EQ(client.Send(store.get(), MakeChunk(1, 4, SimpleRows(4, 1)), &message), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(message, HasSubstr("member 1"));
  v1::Chunk chunk = MakeChunk(0, 4, SimpleRows(4, 2));
  chunk.mutable_columns()->pop_back();
  EXPECT_EQ(client.Send(store.get(), chunk, &message), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 2, SimpleRows(2, 4))), absl::StatusCode::kOk) << "two old, two new";
  EXPECT_EQ(MemberOf(*store, 0).inserted(), 6u);
  EXPECT_EQ(store->counters().duplicates, 6u);
}

TEST(StoreTest, ADeadActorsCreditReturnsAndItsOpenEpisodeIsAbandoned) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallOptions(1), folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 4))), absl::StatusCode::kOk);
  EXPECT_GT(MemberOf(*store, 0).outstanding(), 0u);
  store->Disconnect(client.session, client.stream);
  clock.Advance(std::chrono::seconds(29));
  ASSERT_THAT(store->Tick(), IsOk());
  EXPECT_GT(MemberOf(*store, 0).outstanding(), 0u) << "the lease has not expired";
  clock.Advance(std::chrono::seconds(2));
  ASSERT_THAT(store->Tick(), IsOk());
  EXPECT_EQ(MemberOf(*store, 0).outstanding(), 0u);
  EXPECT_EQ(store->Connect(client.session, client.incarnation).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store->counters().abandoned_episodes, 1u);
}

TEST(StoreTest, AnActorWhosePolicyMayNotActAnyMoreIsNamedWithThePolicyThatItNeeds) {
  Options options = SmallOptions(1);
  options.limits.max_policy_lag = 5;
  options.limits.tolerance = 8;
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(options, folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  const auto waits_after = [&](int seconds) {
    clock.Advance(std::chrono::seconds(seconds));
    EXPECT_THAT(store->Tick(), IsOk());
    v1::ReplayInfo info;
    store->Info(&info);
    return std::vector<std::string>(info.waits().begin(), info.waits().end());
  };
  store->SetLearnerConnected(true);
  EXPECT_THAT(waits_after(3), ::testing::IsEmpty()) << "no row has told of a policy";
  for (uint64_t sent = 0; sent < 18; sent = client.next[0]) {
    client.Hear(store.get());
    ASSERT_GT(client.limit[0], sent);
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(18, client.limit[0]) - sent);
    ASSERT_EQ(client.Send(store.get(), MakeChunk(0, sent, SimpleRows(sent, count))), absl::StatusCode::kOk);
    client.Hear(store.get());
  }
  ASSERT_THAT(store->Announce(5), IsOk());
  EXPECT_THAT(waits_after(3), ::testing::IsEmpty()) << "policy 0 may still act";
  ASSERT_THAT(store->Announce(8), IsOk());
  client.Hear(store.get());
  const auto left = static_cast<uint32_t>(client.limit[0] - 18);  // granted while policy 0 might act
  ASSERT_EQ(client.Send(store.get(), MakeChunk(0, 18, SimpleRows(18, left))), absl::StatusCode::kOk);
  client.Hear(store.get());
  EXPECT_EQ(client.oldest_policy[0], 3u);
  EXPECT_THAT(waits_after(3),
              ::testing::ElementsAre("actor-0 waits for learner: member 0 needs the policy of update 3 or "
                                     "newer; its newest row has the one of update 0"));
  std::vector<TestRow> row = SimpleRows(client.next[0], 1);
  row[0].policy_update = 4;
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, client.next[0], row)), absl::StatusCode::kOk);
  EXPECT_THAT(waits_after(1), ::testing::IsEmpty()) << "a newer policy acts";
  EXPECT_THAT(waits_after(10), ::testing::IsEmpty());
}

TEST(StoreTest, LockstepGrantsOneRowPerUpdateAndAKilledActorContinuesItsEpisode) {
  const Options options = LockstepOptions(1);
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(options, folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  EXPECT_EQ(client.limit[0], 11u) << "min_size + 1 rows act with update 0";
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 11))), absl::StatusCode::kOk);
  for (uint64_t update = 1; update <= 3; ++update) {
    EXPECT_THAT(store->Announce(update), IsOk());
    client.Hear(store.get());
    ASSERT_EQ(client.limit[0], 11 + update);
    EXPECT_EQ(client.oldest_policy[0], update);
    EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 10 + update, SimpleRows(10 + update, 1))), absl::StatusCode::kOk);
  }
  store.reset();
  store = MustOpen(options, folder.path(), &clock);
  const auto reply = store->Register("actor-0", /*incarnation=*/2, 1);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->session(), client.session);
  ASSERT_EQ(reply->open_episodes_size(), 1);
  EXPECT_EQ(reply->open_episodes(0).episode(), 1u);
  EXPECT_EQ(reply->open_episodes(0).steps(), 4u);
  std::vector<float> actions(4);
  ASSERT_EQ(reply->open_episodes(0).actions().size(), 16u);
  std::memcpy(actions.data(), reply->open_episodes(0).actions().data(), 16);
  EXPECT_THAT(actions, ::testing::ElementsAre(10 / 8.0f, 11 / 8.0f, 12 / 8.0f, 13 / 8.0f));
}

TEST(StoreTest, AConnectedActorKeepsItsNameAndAnotherProcessOfThisNameWaits) {
  for (const Options& options : {SmallOptions(1), LockstepOptions(1)}) {
    TemporaryFolder folder;
    ManualClock clock;
    auto store = MustOpen(options, folder.path(), &clock);
    Client actor, other;
    actor.Open(store.get(), "actor-0", 1, 1);
    const absl::Status taken = store->Register("actor-0", 2, 1).status();
    EXPECT_TRUE(absl::IsUnavailable(taken)) << taken;  // it tries again
    EXPECT_THAT(std::string(taken.message()), ::testing::HasSubstr("another process acts as actor-0 and is connected"));
    EXPECT_EQ(actor.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 1))), absl::StatusCode::kOk);
    actor.Leave(store.get());
    other.Open(store.get(), "actor-0", 2, 1);
  }
}

TEST(StoreTest, OfTwoProcessesWithOneNameTheOlderMustExitOnceItLostItsStream) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallOptions(1), folder.path(), &clock);
  Client older, newer;
  older.Open(store.get(), "actor-0", 1, 1);
  older.Leave(store.get());
  newer.Open(store.get(), "actor-0", 2, 1);
  EXPECT_EQ(older.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 1))), absl::StatusCode::kAlreadyExists);
  const absl::Status refused = store->Connect(older.session, older.incarnation).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("another process acts as actor-0 now"));
  EXPECT_EQ(newer.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 1))), absl::StatusCode::kOk);
}

TEST(StoreTest, InLockstepTheOlderOfTwoProcessesCannotTakeTheSessionBack) {
  const Options options = LockstepOptions(1);
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(options, folder.path(), &clock);
  Client older, newer;
  older.Open(store.get(), "actor-0", 1, 1);
  older.Leave(store.get());
  newer.Open(store.get(), "actor-0", 2, 1);
  EXPECT_EQ(newer.session, older.session);
  EXPECT_EQ(store->Connect(older.session, older.incarnation).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(newer.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 1))), absl::StatusCode::kOk);
}

TEST(StoreTest, AMembersDrawTooLargeForAMessageIsRefusedAtTheStart) {
  Options options = SmallOptions(1);
  TemporaryFolder folder;
  ManualClock clock;
  options.batch = 1 << 20;
  const uint64_t bytes = (options.batch + uint64_t{options.failure_batch}) * SmallSchema().learning_row_bytes();
  ASSERT_GT(bytes, kMaxDrawBytes);
  const absl::Status refused = Store::Open(SmallSchema(), StoreOptions(options, folder.path(), &clock)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr(absl::StrCat("has ", bytes, " bytes")));
}

TEST(StoreTest, ADrawTooLargeForAMessageComesInSeveralReplies) {
  const auto draw = [](uint32_t members, uint32_t batch) {
    Options options = SmallOptions(static_cast<int>(members));
    options.batch = batch;
    TemporaryFolder folder;
    ManualClock clock;
    const auto store = MustOpen(options, folder.path(), &clock);
    Client client;
    client.Open(store.get(), "actor-0", 1, members);
    SendFirstRows(store.get(), &client, members);
    std::vector<v1::DrawReply> replies;
    DrawPlace place;
    do {
      EXPECT_THAT(store->Draw(1, &replies.emplace_back(), &place), IsOk());
    } while (replies.back().more());
    return replies;
  };
  EXPECT_EQ(draw(3, 100).size(), 1u);
  const std::vector<v1::DrawReply> replies = draw(3, 250000);
  ASSERT_GT(replies.size(), 1u);
  int members = 0;
  for (const v1::DrawReply& reply : replies) {
    EXPECT_LE(reply.ByteSizeLong(), kMaxDrawBytes + 4096);
    for (const v1::MemberBatch& batch : reply.batches()) {
      EXPECT_EQ(batch.main().size(), 250000 * SmallSchema().learning_row_bytes());
      ++members;
    }
  }
  EXPECT_EQ(members, 3);
}

TEST(StoreTest, AnEpisodeContinuesWithTheExecutedActionsAndTheLastMemory) {
  TemporaryFolder folder;
  ManualClock clock;
  const RowSchema schema = RowSchema::For(2, 1, {ExecutedActionColumn(1), {kMemory, ColumnType::kFloat32, 2, false}});
  const Options options = StoreOptions(LockstepOptions(1), folder.path(), &clock);
  auto store = *Store::Open(schema, options);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  v1::Chunk chunk = MakeChunk(0, 0, SimpleRows(0, 3));
  const float executed[3] = {0.5f, -0.25f, 0.125f};
  size_t at = 0;
  for (const Column& column : schema.wire()) {
    if (column.name == kExecutedAction) break;
    at += 3 * column.bytes();
  }
  const float memory[6] = {1, 2, 3, 4, 5, 6};
  chunk.mutable_columns()->insert(at, reinterpret_cast<const char*>(memory), sizeof memory);
  chunk.mutable_columns()->insert(at, reinterpret_cast<const char*>(executed), sizeof executed);
  EXPECT_EQ(client.Send(store.get(), chunk), absl::StatusCode::kOk);
  store.reset();
  store = *Store::Open(schema, options);
  const auto reply = store->Register("actor-0", /*incarnation=*/2, 1);
  ASSERT_THAT(reply, IsOk());
  ASSERT_EQ(reply->open_episodes_size(), 1);
  EXPECT_EQ(reply->open_episodes(0).actions(), std::string(reinterpret_cast<const char*>(executed), sizeof executed));
  EXPECT_EQ(reply->open_episodes(0).memory(), std::string(reinterpret_cast<const char*>(memory + 4), 8));
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
