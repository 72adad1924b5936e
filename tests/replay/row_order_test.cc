// Rows that cannot follow those that a member holds are refused by name, and none of their chunk is stored.
#include "replay/row_order.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"

namespace datacom::replay::testing {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

class RowOrderTest : public ::testing::Test {
 protected:
  RowOrderTest() {
    options_.horizon = 30;
    store_ = MustOpen(options_, folder_.path(), &clock_);
    actor_.Open(store_.get(), "actor-0", 1, 2);
  }
  static TestRow Row(uint32_t episode, uint32_t step, bool last = false, uint32_t environment = 0) {
    TestRow row;
    row.episode = episode, row.step = step, row.last = last, row.environment = environment;
    return row;
  }
  // The refusal of a chunk with these rows, empty if it is stored.
  std::string Send(const std::vector<TestRow>& rows) {
    actor_.Hear(store_.get());
    const uint64_t held = MemberOf(*store_, 0).inserted();
    std::string refusal;
    const absl::StatusCode code = actor_.Send(store_.get(), MakeChunk(0, actor_.next[0], rows), &refusal);
    EXPECT_TRUE(code == absl::StatusCode::kOk || code == absl::StatusCode::kInvalidArgument);
    actor_.Hear(store_.get());
    EXPECT_EQ(MemberOf(*store_, 0).inserted(), held + (code == absl::StatusCode::kOk ? rows.size() : 0));
    return refusal;
  }

  TemporaryFolder folder_;
  ManualClock clock_;
  Options options_ = SmallOptions(1);
  std::unique_ptr<Store> store_;
  Client actor_;
};

TEST_F(RowOrderTest, StepsFollowEachOtherInEachEnvironment) {
  EXPECT_EQ(Send({Row(0, 0), Row(7, 0, false, 1), Row(0, 1)}), "");
  EXPECT_EQ(Send({Row(7, 1, true, 1), Row(0, 2, true)}), "");
  EXPECT_EQ(Send({Row(1, 0), Row(9, 0, false, 1)}), "") << "numbers of episodes may be left out";
  EXPECT_EQ(Send({Row(2, 0)}), "") << "an episode may be given up";
}

TEST_F(RowOrderTest, TheFirstRowOfAnEnvironmentBeginsAnEpisode) {
  EXPECT_EQ(Send({Row(0, 5)}), "column step, row 0: 5 is the first of its environment, which begins with 0");
  EXPECT_EQ(Send({Row(0, 0), Row(3, 1, false, 1)}),
            "column step, row 1: 1 is the first of its environment, which begins with 0");
}

TEST_F(RowOrderTest, AStepIsNeitherRepeatedNorLeftOutAndEpisodesDoNotReturn) {
  ASSERT_EQ(Send({Row(7, 0), Row(7, 1)}), "");
  EXPECT_EQ(Send({Row(7, 1)}), "column step, row 0: 1 of episode 7 follows step 1 of episode 7");
  EXPECT_EQ(Send({Row(7, 3)}), "column step, row 0: 3 of episode 7 follows step 1 of episode 7");
  EXPECT_EQ(Send({Row(3, 0)}), "column step, row 0: 0 of episode 3 follows step 1 of episode 7");
  EXPECT_EQ(Send({Row(8, 2)}), "column step, row 0: 2 of episode 8 follows step 1 of episode 7");
  EXPECT_EQ(Send({Row(7, 2, true), Row(7, 3)}),
            "column step, row 1: 3 of episode 7 follows step 2 of episode 7, its last");
  EXPECT_EQ(Send({Row(7, 2, true), Row(8, 0)}), "") << "refused rows have changed nothing";
}

TEST_F(RowOrderTest, NoStepIsBeyondTheHorizonAndNoPolicyBeyondTheRun) {
  std::vector<TestRow> rows;
  for (uint32_t step = 0; step <= 30; ++step) rows.push_back(Row(0, step));
  std::string refusal;
  for (uint32_t from = 0; refusal.empty() && from <= 30; from += 4) {
    refusal = Send({rows.begin() + from, rows.begin() + std::min<uint32_t>(from + 4, 31)});
    (void)store_->Announce(MemberOf(*store_, 0).inserted() > 10 ? MemberOf(*store_, 0).inserted() - 10 : 0);
  }
  EXPECT_EQ(refusal, "column step, row 2: 30 is beyond the horizon of 30 steps");
  TestRow late = Row(1, 0);
  late.policy_update = uint64_t{1} << 60;
  EXPECT_EQ(Send({late}), "column policy_update, row 0: 1152921504606846976 is beyond the run's last update, 990");
}

TEST_F(RowOrderTest, ALargeNumberIsRefused) {
  TestRow row = Row(0, 0);
  row.reward = 3e38f;
  EXPECT_THAT(Send({row}), HasSubstr("column reward, row 0: 3e+38 is larger than 1e+18"));
  row.reward = -1e30f;
  EXPECT_THAT(Send({row}), HasSubstr("column reward, row 0: -1e+30 is larger than 1e+18"));
  row.reward = 1e18f;
  EXPECT_EQ(Send({row}), "");
}

TEST_F(RowOrderTest, AReplayThatStartsAgainKnowsWhereItsEnvironmentsAre) {
  ASSERT_EQ(Send({Row(4, 0), Row(4, 1), Row(2, 0, true, 1)}), "");
  store_.reset();
  store_ = MustOpen(options_, folder_.path(), &clock_);
  actor_.Reconnect(store_.get());
  EXPECT_EQ(Send({Row(4, 0)}), "column step, row 0: 0 of episode 4 follows step 1 of episode 4");
  EXPECT_EQ(Send({Row(2, 1, false, 1)}), "column step, row 0: 1 of episode 2 follows step 0 of episode 2, its last");
  EXPECT_EQ(Send({Row(4, 2), Row(3, 0, false, 1)}), "");
}

// The number of the first row that cannot follow, from the rule alone; the count if there is none.
size_t FirstWrong(const std::vector<TestRow>& rows) {
  std::map<uint32_t, TestRow> newest;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto before = newest.find(rows[i].environment);
    const bool begins = rows[i].step == 0 && (before == newest.end() || rows[i].episode > before->second.episode);
    const bool continues = before != newest.end() && !before->second.last &&
                           rows[i].episode == before->second.episode && rows[i].step == before->second.step + 1;
    if (!begins && !continues) return i;
    newest[rows[i].environment] = rows[i];
  }
  return rows.size();
}

TEST(RowOrder, AgreesWithTheRuleOnChunksOfEnvironmentsThatTakeTurnsWithOneChange) {
  const RowSchema schema = SmallSchema();
  const EpisodeTracker held(RowOffsets(schema), 0.99);
  std::mt19937 random(7);
  const auto below = [&random](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  int sound = 0, wrong = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const uint32_t lanes = 1 + below(5);
    std::vector<TestRow> newest(lanes), rows(1 + below(60));
    for (size_t i = 0; i < rows.size(); ++i) {
      TestRow& lane = newest[i % lanes];
      const bool begins = i < lanes || lane.last || below(9) == 0;
      lane.episode += begins && i >= lanes ? 1 + below(2) : 0;
      lane.step = begins ? 0 : lane.step + 1;
      lane.last = below(9) == 0;
      lane.environment = static_cast<uint32_t>(i % lanes);
      rows[i] = lane;
    }
    TestRow& changed = rows[below(static_cast<uint32_t>(rows.size()))];
    const uint32_t change = below(6);
    if (change == 0) changed.step = below(3);
    if (change == 1) changed.episode = below(4) == 0 ? 0xffffffffu : below(4);
    if (change == 2) changed.last = !changed.last;
    if (change == 3) changed.environment = below(lanes + 1);
    RowOrder order(schema, {1000, 0});
    const absl::Status status = order.Check(held, 1, Columns(rows), static_cast<uint32_t>(rows.size()), 0);
    const size_t first = FirstWrong(rows);
    (first == rows.size() ? sound : wrong) += 1;
    ASSERT_EQ(status.ok(), first == rows.size()) << "trial " << trial << ": " << status;
    if (status.ok()) continue;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(", row ", first, ":")));
  }
  EXPECT_GT(sound, 1000);
  EXPECT_GT(wrong, 1000);
}

// The learner waits for rows that a connected session could send and does not.
TEST(SilentSession, LosesItsMembersToAnotherActorAfterTwoMinutes) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallOptions(2), folder.path(), &clock);
  Client silent, busy;
  silent.Open(store.get(), "actor-0", 1, 1);
  busy.Open(store.get(), "actor-1", 1, 1);
  const auto served = [](Client* client) { return *client->served.begin(); };
  store->SetLearnerConnected(true);
  busy.Hear(store.get());
  silent.Hear(store.get());
  const uint32_t held = served(&silent), other = 1 - held;
  ASSERT_EQ(served(&busy), other);
  v1::DrawReply reply;
  uint64_t sent = 0;
  const auto pass = [&](int seconds) {
    for (int i = 0; i < seconds; i += 10) {
      clock.Advance(std::chrono::seconds(10));
      ASSERT_THAT(store->Tick(), IsOk());
      busy.Hear(store.get());
      if (busy.limit[other] > sent) {
        ASSERT_EQ(busy.Send(store.get(), MakeChunk(other, sent, SimpleRows(sent, 1))), absl::StatusCode::kOk);
        ++sent;
      }
      (void)store->Draw(1, &reply);  // waits
    }
  };
  pass(110);
  busy.Hear(store.get());
  EXPECT_EQ(busy.served.count(held), 0u);
  silent.Hear(store.get());
  pass(20);
  busy.Hear(store.get());
  EXPECT_EQ(busy.served.count(held), 1u);
  EXPECT_EQ(silent.Send(store.get(), MakeChunk(held, 0, SimpleRows(0, 1))), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
