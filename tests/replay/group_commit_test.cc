// replay.sync: groups of rows reach the disk before they are acknowledged or drawn, through failing syncs, kills and
// losses of power.
#include <functional>

#include "gtest/gtest.h"
#include "tests/replay/test_disk.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"

namespace datacom::replay::testing {
namespace {

using ::datacom::testing::IsOk;

TEST(StoreTest, WithSyncRowsReachTheDiskBeforeTheyAreAcknowledged) {
  for (const bool sync : {false, true}) {
    TemporaryFolder folder;
    ManualClock clock;
    Options options = SmallOptions(1);
    options.sync = sync;
    auto store = MustOpen(options, folder.path(), &clock);
    Client client;
    client.Open(store.get(), "actor-0", 1, 1);
    for (uint64_t completed = 1; completed < 300; ++completed) {  // the rings wrap
      client.Hear(store.get());
      const int before = disk.syncs;
      const auto count = static_cast<uint32_t>(client.limit[0] - client.next[0]);
      if (count > 0) {
        ASSERT_EQ(client.Send(store.get(), MakeChunk(0, client.next[0], SimpleRows(client.next[0], count))),
                  absl::StatusCode::kOk);
        client.Hear(store.get());
        EXPECT_EQ(disk.syncs - before >= 3, sync) << "for the rows, then for the cursor, then for the credit";
      }
      if (store->Ready(completed)) (void)store->Announce(completed);
    }
    const uint64_t rows = MemberOf(*store, 0).inserted();
    EXPECT_GT(rows, 300u);
    store.reset();
    store = MustOpen(options, folder.path(), &clock);
    EXPECT_EQ(MemberOf(*store, 0).inserted(), rows);
  }
}

TEST_F(PowerLossTest, AnActorKeepsTheCreditThatItWasGranted) {
  Client client, other;
  client.Open(store_.get(), "actor-0", 1, 1);
  uint64_t sent = 0;
  for (; client.next[0] + 8 <= client.limit[0]; client.Hear(store_.get())) {
    ASSERT_EQ(client.Send(store_.get(), MakeChunk(0, sent, SimpleRows(sent, 8))), absl::StatusCode::kOk);
    sent += 8;
  }
  const uint64_t told = client.limit[0];
  ASSERT_GT(told, sent) << "some credit is unused";
  LosePower();
  other.Open(store_.get(), "actor-1", 1, 1);  // reconnects first and would take credit that the replay forgot
  client.Reconnect(store_.get());
  EXPECT_EQ(client.next[0], sent);
  EXPECT_GE(client.limit[0], told);
}

TEST(StoreTest, WithSyncAMemberThatReturnsHasNoCreditThatItsReleaseGaveBack) {
  TemporaryFolder folder;
  ManualClock clock;
  Options options = SmallOptions(2);
  options.sync = true;
  auto store = MustOpen(options, folder.path(), &clock);
  Client first, second;
  first.Open(store.get(), "actor-0", 1, 1);
  for (uint64_t sent = 0; first.limit[1] < 26; sent = first.limit[1], first.Hear(store.get())) {  // 10 + 16 may be made
    const auto count = static_cast<uint32_t>(first.limit[1] - sent);
    ASSERT_EQ(first.Send(store.get(), MakeChunk(1, sent, SimpleRows(sent, count))), absl::StatusCode::kOk);
  }
  ASSERT_LT(first.next[1], 26u);
  second.Open(store.get(), "actor-1", 1, 1);
  v1::InsertReply reply;
  ASSERT_THAT(store->Progress(first.session, first.stream, &first.progress, &reply), IsOk());
  v1::Release release;
  release.set_assignment(reply.assignment().number());
  release.add_members(1);
  ASSERT_THAT(store->Release(first.session, first.stream, release), IsOk());  // the second actor gets the credit
  store->Disconnect(second.session, second.stream);
  clock.Advance(std::chrono::seconds(11));  // a third of the lease
  ASSERT_THAT(store->Tick(), IsOk());
  reply.Clear();  // before the release is on the disk
  ASSERT_THAT(store->Progress(first.session, first.stream, &first.progress, &reply), IsOk());
  ASSERT_EQ(reply.assignment().members_size(), 2);
  ASSERT_EQ(reply.credit_size(), 1);
  EXPECT_EQ(reply.credit(0).member(), 1u);
  EXPECT_EQ(reply.credit(0).limit(), first.next[1]);
  reply.Clear();
  ASSERT_THAT(store->Commit(), IsOk());
  ASSERT_THAT(store->Progress(first.session, first.stream, &first.progress, &reply), IsOk());
  EXPECT_EQ(reply.credit_size(), 0) << "the limit did not shrink";
}

TEST_F(PowerLossTest, ANewSessionDoesNotGetTheCreditOfTheOneItReplaced) {
  Client old, fresh;
  old.Open(store_.get(), "actor-0", 1, 1);
  SendAll(&old);
  old.Leave(store_.get());
  const auto registered = store_->Register("actor-0", 2, 1);
  ASSERT_THAT(registered, IsOk());
  fresh.session = registered->session();
  fresh.incarnation = 2;
  LosePower();
  fresh.Reconnect(store_.get());
  EXPECT_EQ(fresh.next[0], 0u);
}

TEST_F(PowerLossTest, ASilentSessionContinuesAfterItsRowsWereOverwritten) {
  Client silent, busy;
  silent.Open(store_.get(), "actor-0", 1, 1);
  ASSERT_EQ(silent.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 5))), absl::StatusCode::kOk);
  silent.Hear(store_.get());
  busy.Open(store_.get(), "actor-1", 1, 1);
  for (uint64_t completed = 0; completed < 600; completed += 5) {
    EXPECT_THAT(store_->Announce(completed), IsOk());
    SendAll(&busy);
  }
  v1::RowRange range;
  ASSERT_EQ(store_->ReadRange(0, 0, 5, &range).code(), absl::StatusCode::kNotFound) << "overwritten";
  LosePower();
  silent.Reconnect(store_.get());
  EXPECT_EQ(silent.next[0], 5u);
  EXPECT_EQ(silent.Send(store_.get(), MakeChunk(0, 5, SimpleRows(5, 1))), absl::StatusCode::kOk);
}

TEST_F(PowerLossTest, RowsThatAreNotCommittedAreNeitherAcknowledgedNorReadNorDrawnNorSurvive) {
  Client client;
  client.Open(store_.get(), "actor-0", 1, 1);
  ASSERT_EQ(client.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 8))), absl::StatusCode::kOk);
  client.Hear(store_.get());
  ASSERT_EQ(client.next[0], 8u);
  ASSERT_EQ(client.Send(store_.get(), MakeChunk(0, 8, SimpleRows(8, 3))), absl::StatusCode::kOk);
  v1::InsertReply reply;
  const auto changed = store_->Progress(client.session, client.stream, &client.progress, &reply);
  ASSERT_THAT(changed, IsOk());
  EXPECT_FALSE(*changed) << "neither rows nor the credit that followed them";
  EXPECT_FALSE(store_->Ready(1)) << "update 1 needs 11 rows";
  v1::DrawReply drawn;
  EXPECT_EQ(store_->Draw(1, &drawn).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(store_->Announce(1).ok());
  v1::RowRange range;
  EXPECT_EQ(store_->ReadRange(0, 8, 9, &range).code(), absl::StatusCode::kOutOfRange);
  LosePower();
  client.Reconnect(store_.get());
  EXPECT_EQ(client.next[0], 8u);
  ASSERT_EQ(client.Send(store_.get(), MakeChunk(0, 8, SimpleRows(8, 3))), absl::StatusCode::kOk);
  ASSERT_THAT(store_->Commit(), IsOk());
  EXPECT_THAT(store_->Draw(1, &drawn), IsOk());
}

TEST_F(PowerLossTest, OneGroupCommitsTheRowsOfAllActorsWithTheSyncsOfOne) {
  Client clients[4];
  for (int i = 0; i < 4; ++i) clients[i].Open(store_.get(), "actor-" + std::to_string(i), 1, 1);
  for (const int actors : {1, 4}) {
    const int before = disk.syncs;
    for (int i = 0; i < actors; ++i) {
      const uint64_t next = clients[i].next[0];
      ASSERT_EQ(clients[i].Send(store_.get(), MakeChunk(0, next, SimpleRows(next, 1))), absl::StatusCode::kOk);
      clients[i].next[0] = next + 1;
    }
    ASSERT_THAT(store_->Commit(), IsOk());
    EXPECT_LE(disk.syncs - before, 5) << "rows, failures, the cursor of each, credit";
  }
  EXPECT_EQ(MemberOf(*store_, 0).inserted(), 5u);
}

TEST_F(PowerLossTest, WhileAGroupIsWrittenOthersInsertReadAndAreNotPartOfIt) {
  Client first, second;
  first.Open(store_.get(), "actor-0", 1, 1);
  second.Open(store_.get(), "actor-1", 1, 1);
  ASSERT_EQ(first.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 3))), absl::StatusCode::kOk);
  bool called = false;
  disk.at_next_sync = [&] {
    called = true;
    EXPECT_EQ(second.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 2))), absl::StatusCode::kOk);
    EXPECT_EQ(MemberOf(*store_, 0).inserted(), 0u);
  };
  ASSERT_THAT(store_->Commit(), IsOk());
  EXPECT_TRUE(called);
  EXPECT_EQ(MemberOf(*store_, 0).inserted(), 3u);
  v1::InsertReply reply;
  ASSERT_THAT(store_->Progress(second.session, second.stream, &second.progress, &reply), IsOk());
  EXPECT_EQ(reply.committed_size(), 0);
  second.Hear(store_.get());
  EXPECT_EQ(second.next[0], 2u);
  EXPECT_EQ(MemberOf(*store_, 0).inserted(), 5u);
}

TEST_F(PowerLossTest, ASessionThatEndsWhileItsCreditIsWrittenLeavesNoneToItsSuccessor) {
  for (uint64_t sync = 0; sync < 5; ++sync) {  // in the same slot of the credit file
    Client old, fresh;
    old.Open(store_.get(), "actor-0", 10 * sync + 1, 1);
    ASSERT_EQ(old.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 1))), absl::StatusCode::kOk);
    const auto replace = [&] {
      old.Leave(store_.get());
      const auto registered = store_->Register("actor-0", 10 * sync + 2, 1);
      ASSERT_THAT(registered, IsOk());
      fresh.session = registered->session();
      fresh.incarnation = 10 * sync + 2;
    };
    uint64_t passed = 0;
    std::function<void()> next = [&] {
      if (passed++ == sync) {
        replace();
      } else {
        disk.at_next_sync = next;
      }
    };
    disk.at_next_sync = next;
    ASSERT_THAT(store_->Commit(), IsOk());
    ASSERT_EQ(passed, sync + 1);
    LosePower();
    fresh.Reconnect(store_.get());
    EXPECT_EQ(fresh.next[0], 0u) << "replaced in sync " << sync;
    fresh.Leave(store_.get());
  }
}

TEST_F(PowerLossTest, ALockstepActorContinuesAfterTheRowsThatItsFormerProcessHadNotYetCommitted) {
  store_.reset();
  TemporaryFolder folder;
  options_ = LockstepOptions(1);
  options_.sync = true;
  store_ = MustOpen(options_, folder.path(), &clock_);
  Client former, now;
  former.Open(store_.get(), "actor-0", 1, 1);
  ASSERT_EQ(former.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 3))), absl::StatusCode::kOk);
  former.Leave(store_.get());
  const auto registered = store_->Register("actor-0", 2, 1);
  ASSERT_THAT(registered, IsOk());
  EXPECT_EQ(registered->open_episodes(0).steps(), 3u);
  const auto stream = store_->Connect(registered->session(), 2);
  ASSERT_THAT(stream, IsOk());
  v1::InsertReply reply;
  ASSERT_THAT(store_->Progress(registered->session(), *stream, &now.progress, &reply), IsOk());
  EXPECT_EQ(reply.committed(0).next_sequence(), 3u);
}

// Actors that insert while groups are written, on a disk that fails after any sync, with kills and losses of power.
class GroupModel {
 public:
  GroupModel(Store* store, uint64_t seed) : random_(StreamKey("test.groups", {seed})), store_(store) {
    for (uint64_t i = 0; i < 2; ++i) actors_[i].client.Open(store, "actor-" + std::to_string(i), 1, 1);
  }
  RandomStream* random() { return &random_; }
  void set_store(Store* store) { store_ = store; }

  // Returns whether the disk worked.
  bool InsertAndCommit() {
    Send();
    disk.at_next_sync = [this] { Send(); };
    disk.syncs_left = random_.Below(2) == 0 ? static_cast<int>(random_.Below(6)) : -1;
    const bool committed = store_->Commit().ok();
    disk.syncs_left = -1;
    disk.at_next_sync = nullptr;
    if (!committed) return false;
    Hear();
    if (store_->Ready(completed_ + 1)) {
      EXPECT_THAT(store_->Announce(++completed_), IsOk());
    }
    return true;
  }
  void Reconnect() {
    ASSERT_THAT(store_->Announce(completed_), IsOk()) << "the learner is not ahead of the replay";
    for (Actor& actor : actors_) {
      const uint64_t told = actor.client.next[0];
      actor.client.Reconnect(store_);
      ASSERT_GE(actor.client.next[0], told) << "acknowledged rows are kept";
      ASSERT_LE(actor.client.next[0], actor.sent);
      actor.sent = actor.client.next[0];
    }
  }
  // Each session's rows are in order, none is missing or double, up to what it was told.
  void CheckRows() {
    const uint64_t inserted = MemberOf(*store_, 0).inserted();
    v1::RowRange range;
    const absl::Status read = store_->ReadRange(0, inserted - std::min(inserted, kSmallKept), inserted, &range);
    ASSERT_THAT(read, IsOk());
    std::map<int, uint64_t> next;
    for (uint32_t i = 0; i < range.row_count(); ++i) {
      float value = 0;
      std::memcpy(&value, range.columns().data() + 8 * i, sizeof value);
      const int actor = static_cast<int>(value) / kOfActor;
      const uint64_t sequence = static_cast<uint64_t>(value) % kOfActor;
      ASSERT_TRUE(!next.contains(actor) || next[actor] == sequence) << "row " << i;
      next[actor] = sequence + 1;
    }
    for (const auto& [actor, end] : next) ASSERT_EQ(end, actors_[actor].client.next[0]) << "actor " << actor;
  }
  uint64_t rows() { return MemberOf(*store_, 0).inserted(); }

 private:
  static constexpr int kOfActor = 10000;
  struct Actor {
    Client client;
    uint64_t sent = 0;  // rows
  };

  void Send() {
    for (int i = 0; i < 2; ++i) {
      Actor& actor = actors_[i];
      const auto count = static_cast<uint32_t>(random_.Below(actor.client.limit[0] - actor.sent + 1));
      if (count == 0) continue;
      std::vector<TestRow> rows = SimpleRows(actor.sent, std::min<uint32_t>(count, 3));  // all of them fit the guard
      for (TestRow& row : rows) row.value += static_cast<float>(i * kOfActor);
      if (actor.client.Send(store_, MakeChunk(0, actor.sent, rows)) == absl::StatusCode::kOk) actor.sent += rows.size();
    }
  }
  void Hear() {
    for (Actor& actor : actors_) actor.client.Hear(store_);
  }

  RandomStream random_;
  Store* store_;
  Actor actors_[2];
  uint64_t completed_ = 0;
};

TEST_F(PowerLossTest, NoSyncThatFailsOrIsTheLastOneBeforeAKillOrALossOfPowerLosesOrDoublesARow) {
  GroupModel model(store_.get(), 1);
  int failures = 0;
  for (int round = 0; round < 900 && model.rows() < 900; ++round) {
    const bool worked = model.InsertAndCommit();
    failures += !worked;
    if (worked && model.random()->Below(8) != 0) continue;
    const uint64_t how = model.random()->Below(3);
    if (how == 0) {  // the process is killed, its successor acknowledges what it finds, then power is lost
      store_.reset();
      store_ = MustOpen(options_, folder_.path(), &clock_);
      model.set_store(store_.get());
      ASSERT_NO_FATAL_FAILURE(model.Reconnect()) << "round " << round;
    }
    ASSERT_NO_FATAL_FAILURE(LosePower(how == 1 ? nullptr : model.random())) << "round " << round;
    model.set_store(store_.get());
    ASSERT_NO_FATAL_FAILURE(model.Reconnect()) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(model.CheckRows()) << "round " << round;
  }
  EXPECT_GT(failures, 20);
  EXPECT_GT(model.rows(), 300u) << "the rings wrapped";
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
