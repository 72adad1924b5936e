// Tests the rows and episodes of a draw, and when it is refused.
#include <cmath>
#include <functional>

#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"

namespace datacom::replay::testing {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

class StoreDrawTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = MustOpen(options_, folder_.path(), &clock_);
    client_.Open(store_.get(), "actor-0", 1, 1);
  }
  // Inserts up to `rows` rows and announces every update that becomes possible.
  void Fill(uint64_t rows) {
    Fill(rows, [](uint64_t first, uint32_t count) { return SimpleRows(first, count); });
  }
  void Fill(uint64_t rows, const std::function<std::vector<TestRow>(uint64_t first, uint32_t count)>& make) {
    while (client_.next[0] < rows) {
      client_.Hear(store_.get());
      const uint64_t count = std::min(client_.limit[0] - client_.next[0], rows - client_.next[0]);
      if (count > 0) {
        const auto chunk = MakeChunk(0, client_.next[0], make(client_.next[0], static_cast<uint32_t>(count)));
        ASSERT_EQ(client_.Send(store_.get(), chunk), absl::StatusCode::kOk);
      }
      client_.Hear(store_.get());
      while (store_->Ready(completed_ + 1) && completed_ < rows) EXPECT_THAT(store_->Announce(++completed_), IsOk());
    }
  }
  v1::DrawReply Draw(uint64_t update) {
    v1::DrawReply reply;
    const absl::Status status = store_->Draw(update, &reply);
    EXPECT_THAT(status, IsOk());
    return reply;
  }
  static std::vector<float> Values(const std::string& columns, size_t rows) {
    std::vector<float> values(rows);
    for (size_t i = 0; i < rows; ++i) std::memcpy(&values[i], columns.data() + 8 * i, sizeof(float));
    return values;
  }

  Options options_ = SmallOptions(1);
  TemporaryFolder folder_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  Client client_;
  uint64_t completed_ = 0;
};

TEST_F(StoreDrawTest, DrawsAreTheSameAfterReopeningInAnyOrderAndWithMoreRows) {
  Fill(60);
  std::vector<std::string> first;
  for (uint64_t update = 1; update <= 40; ++update) first.push_back(testing::PureBytes(Draw(update)));
  Fill(90);
  store_.reset();
  store_ = MustOpen(options_, folder_.path(), &clock_);
  for (uint64_t update = 40; update >= 1; --update)
    EXPECT_EQ(testing::PureBytes(Draw(update)), first[update - 1]) << update;
}

TEST_F(StoreDrawTest, ANumberThatAStrangerMadeUpLocksTheLearnerOutOnlyWhileItIsConnected) {
  Fill(60);
  store_->SetLearnerConnected(true);
  EXPECT_THAT(store_->Announce(completed_, 3), IsOk());
  const absl::Status absurd = store_->Announce(completed_, 4294967295u);
  EXPECT_TRUE(absl::IsInvalidArgument(absurd)) << absurd;
  EXPECT_THAT(store_->Announce(completed_, 3), IsOk()) << "the learner goes on";
  store_->SetLearnerConnected(false);
  EXPECT_THAT(store_->Announce(completed_, 4294967295u), IsOk()) << "nothing is known of it";
  EXPECT_THAT(store_->Announce(completed_, 4), IsOk()) << "the stranger has left";
  store_->SetLearnerConnected(true);
  EXPECT_TRUE(absl::IsAlreadyExists(store_->Announce(completed_, 3)));
}

// Sum of (observed - expected)^2 / expected over ages 1 .. `ages`; a draw of another age fails the test.
double ChiSquare(const std::map<int, int>& counts, int ages, double expected) {
  double sum = 0;
  for (int age = 1; age <= ages; ++age) {
    const auto found = counts.find(age);
    sum += std::pow((found == counts.end() ? 0 : found->second) - expected, 2) / expected;
  }
  EXPECT_GE(counts.begin()->first, 1);
  EXPECT_LE(counts.rbegin()->first, ages);
  return sum;
}

TEST_F(StoreDrawTest, RowsAreUniformOverTheNewestCapacityWhileTheRingsWrap) {
  std::map<int, int> main, failure;  // by age: 1 is the newest row that the update may use
  for (uint64_t update = 100; update < 900; ++update) {
    Fill(10 + update);
    const v1::DrawReply reply = Draw(update);
    const int seen = static_cast<int>(reply.batches(0).rows_seen()), failures = (seen + 2) / 3;
    ASSERT_EQ(seen, static_cast<int>(10 + update));
    for (const float value : Values(reply.batches(0).main(), 8)) ++main[seen - static_cast<int>(value)];
    for (const float value : Values(reply.batches(0).failure(), 3)) {
      ASSERT_EQ(static_cast<int>(value) % 3, 0) << "only failures";
      ++failure[failures - static_cast<int>(value) / 3];
    }
  }
  EXPECT_LT(ChiSquare(main, 100, 800 * 8 / 100.0), 182.0);  // 99 degrees of freedom, alpha 1e-6
  EXPECT_LT(ChiSquare(failure, 20, 800 * 3 / 20.0), 65.0);  // 19 degrees of freedom, alpha 1e-6
}

TEST(StoreTest, AMemberDrawsTheSameRowsAloneAndInAPopulation) {
  const auto draws = [](const std::vector<uint64_t>& seeds, uint64_t wanted) {
    Options options = SmallOptions(static_cast<int>(seeds.size()));
    int place = 0;
    for (size_t i = 0; i < seeds.size(); ++i) {
      options.members[i].seed = seeds[i];
      if (seeds[i] == wanted) place = static_cast<int>(i);
    }
    TemporaryFolder folder;
    ManualClock clock;
    auto store = MustOpen(options, folder.path(), &clock);
    Client client;
    client.Open(store.get(), "actor-0", 1, static_cast<uint32_t>(seeds.size()));
    std::string bytes;
    for (uint64_t update = 1; update <= 250; ++update) {
      EXPECT_THAT(store->Announce(update - 1), IsOk());
      client.Hear(store.get());
      for (uint32_t member = 0; member < seeds.size(); ++member) {
        for (; client.next[member] < 10 + update; client.Hear(store.get())) {
          EXPECT_EQ(
              client.Send(store.get(), MakeChunk(member, client.next[member], SimpleRows(client.next[member], 1))),
              absl::StatusCode::kOk);
        }
      }
      v1::DrawReply reply;
      EXPECT_THAT(store->Draw(update, &reply), IsOk());
      bytes += reply.batches(place).SerializeAsString();
    }
    return bytes;
  };
  const std::string alone = draws({7}, 7);
  EXPECT_EQ(alone, draws({3, 7, 9}, 7)) << "position and population do not matter";
  EXPECT_NE(alone, draws({8}, 8)) << "the seed matters";
}

TEST_F(StoreDrawTest, EpisodesComeOnceInRowOrderWithDataForDelta) {
  Fill(60);
  std::vector<uint64_t> ends;
  for (uint64_t update = 1; update <= 50; ++update) {
    const v1::DrawReply reply = Draw(update);
    for (const v1::Episode& episode : reply.batches(0).episodes()) {
      ends.push_back(episode.last_row());
      EXPECT_LE(episode.last_row(), reply.batches(0).rows_seen());
      EXPECT_EQ(episode.length(), 10u);
      EXPECT_EQ(episode.return_(), 10);
      EXPECT_NEAR(episode.discounted_return(), (1 - std::pow(0.99, 10)) / 0.01, 1e-12);
      EXPECT_EQ(episode.max_violation(), 0.25);
      uint32_t violations = 0;  // every third row has a cost
      for (uint64_t row = episode.last_row() - 10; row < episode.last_row(); ++row) violations += row % 3 == 0;
      EXPECT_EQ(episode.violating_steps(), violations);
      if (episode.last_row() - 1 <= 15) {  // delta_warmup
        EXPECT_TRUE(episode.observations().empty());
        continue;
      }
      ASSERT_EQ(episode.observations().size(), 11 * 2 * sizeof(float));
      ASSERT_EQ(episode.costs().size(), 11 * sizeof(float));
      std::vector<float> observations(22), costs(11);
      std::memcpy(observations.data(), episode.observations().data(), episode.observations().size());
      std::memcpy(costs.data(), episode.costs().data(), episode.costs().size());
      const float start = static_cast<float>(episode.last_row() - 10);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(observations[2 * i], start + static_cast<float>(i));
      EXPECT_EQ(observations[20], start + 9.5f) << "the state that the last row reached";
      EXPECT_EQ(costs[0], 0);
      for (int i = 0; i < 10; ++i)
        EXPECT_EQ(costs[i + 1], static_cast<int>(start + static_cast<float>(i)) % 3 == 0 ? 0.25f : -0.5f);
    }
  }
  EXPECT_THAT(ends, ::testing::ElementsAre(10, 20, 30, 40, 50, 60));
}

// Environment 0 takes one step, stands still for 498 rows of environment 1, and then ends its episode. Rings keep 100
// rows (replay.capacity), and the slack for learners that resume.
TEST_F(StoreDrawTest, AnEpisodeOverMoreRowsThanTheCapacityComesWithoutDataForDelta) {
  client_.Leave(store_.get());
  client_.Open(store_.get(), "actor-0", 2, 2);
  Fill(500, [](uint64_t first, uint32_t count) {
    std::vector<TestRow> rows = SimpleRows(first, count);
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t sequence = first + i;
      if (sequence == 0 || sequence == 499) {
        rows[i].episode = 0;
        rows[i].step = sequence == 0 ? 0 : 1;
        rows[i].last = sequence == 499;
      } else {
        rows[i].environment = 1;
        rows[i].episode = static_cast<uint32_t>((sequence - 1) / 10);
        rows[i].step = static_cast<uint32_t>((sequence - 1) % 10);
        rows[i].last = rows[i].step == 9;
      }
    }
    return rows;
  });
  const v1::DrawReply reply = Draw(490);  // sees 500 rows
  ASSERT_EQ(reply.batches(0).episodes_size(), 1);
  const v1::Episode& episode = reply.batches(0).episodes(0);
  EXPECT_EQ(episode.last_row(), 500u);
  EXPECT_EQ(episode.length(), 2u);
  EXPECT_EQ(episode.return_(), 2);
  EXPECT_TRUE(episode.observations().empty());
  EXPECT_TRUE(episode.costs().empty());
  const v1::DrawReply whole = Draw(481);  // sees 491 rows; environment 1 has ended an episode of 10
  ASSERT_EQ(whole.batches(0).episodes_size(), 1);
  EXPECT_EQ(whole.batches(0).episodes(0).observations().size(), 11 * 2 * sizeof(float));
}

TEST_F(StoreDrawTest, OverwrittenRowsAndUpdatesBeyondTheRunAreRefused) {
  Fill(600);
  v1::DrawReply reply;
  const absl::Status old = store_->Draw(5, &reply);
  EXPECT_EQ(old.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(old.message()),
              HasSubstr("update 5 of member 0 draws from rows 0 to 15, but rows below 424 are overwritten"));
  EXPECT_THAT(std::string(old.message()), HasSubstr("resume from one of the two newest checkpoints"));
  EXPECT_EQ(store_->Draw(991, &reply).code(), absl::StatusCode::kInvalidArgument);
  v1::RowRange range;  // 600 rows, of which 100 + 16 + 2 * 20 + 20 are kept
  const absl::Status read = store_->ReadRange(0, 423, 600, &range);
  EXPECT_EQ(read.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(read.message()), HasSubstr("row 423 of member 0 is overwritten; rows 424 to 600 are held"));
  EXPECT_THAT(store_->ReadRange(0, 424, 600, &range), IsOk());
  EXPECT_EQ(range.row_count(), 176u);
  EXPECT_EQ(store_->ReadRange(0, 424, 601, &range).code(), absl::StatusCode::kOutOfRange);
}

// The worst case of a resumed learner: the actors used all credit, and the newest checkpoint is lost.
TEST(StoreTest, ALearnerResumedFromTheOlderCheckpointFindsItsRows) {
  struct Case {
    double ratio;  // updates per row
    uint64_t slack, done;
  };
  // The slack for tolerance_steps=16, checkpoint_updates=20 and steps_per_epoch=20 (setup_test.cc).
  for (const auto& [ratio, slack, done] : {Case{0.25, 196, 240}, Case{1, 76, 600}, Case{4, 46, 2400}}) {
    Options options = SmallOptions(1);
    options.limits.schedule.updates_per_step = ratio;
    options.layout.slack = slack;
    TemporaryFolder folder;
    ManualClock clock;
    auto store = MustOpen(options, folder.path(), &clock);
    Client client;
    client.Open(store.get(), "actor-0", 1, 1);
    for (uint64_t completed = 0; completed <= done; ++completed) {
      EXPECT_THAT(store->Announce(completed), IsOk());
      for (client.Hear(store.get()); client.next[0] < client.limit[0]; client.Hear(store.get())) {
        const auto count = static_cast<uint32_t>(client.limit[0] - client.next[0]);
        ASSERT_EQ(client.Send(store.get(), MakeChunk(0, client.next[0], SimpleRows(client.next[0], count))),
                  absl::StatusCode::kOk);
      }
    }
    EXPECT_EQ(MemberOf(*store, 0).inserted(), MemberOf(*store, 0).allowed());
    store.reset();
    store = MustOpen(options, folder.path(), &clock);
    const uint64_t resumed = done - 2 * 20;  // checkpoint_updates = 20
    EXPECT_THAT(store->Announce(resumed), IsOk());
    for (uint64_t update = resumed + 1; update <= done; ++update) {
      v1::DrawReply reply;
      const absl::Status drawn = store->Draw(update, &reply);
      ASSERT_THAT(drawn, IsOk()) << "ratio " << ratio;
      EXPECT_EQ(reply.batches(0).failure().size(), 3 * SmallSchema().learning_row_bytes());
    }
  }
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
