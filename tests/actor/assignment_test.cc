// Tests what the acting loop does when the replay changes its assignment.
#include <map>
#include <set>

#include "gmock/gmock.h"
#include "tests/actor/rollout_fixture.h"
#include "tests/testing/is_ok.h"

namespace datacom::actor {
namespace {

using ::datacom::testing::IsOk;
using testing::Actor;
using ::testing::ElementsAre;
using testing::FakeSnapshot;
using testing::ReceivedRow;
using testing::SteadyTask;

// An actor whose assignment changes. The episodes of its task end only at the horizon of 40.
struct ChangingActor : Actor {
  ChangingActor(uint32_t members, const std::vector<std::pair<uint32_t, uint32_t>>& lanes) : Actor(members, members) {
    parts.make_task = []() -> absl::StatusOr<std::unique_ptr<Task>> { return std::make_unique<SteadyTask>(40); };
    for (uint32_t m = 0; m < members; ++m) {
      session.limit[m] = 100000;
      subscriber.latest[m] = FakeSnapshot(m, 0);
    }
    session.Assign(1, lanes);
    options.stop = [this] {
      const auto event = events.find(++iteration);
      if (event != events.end()) event->second();
      return false;
    };
    options.wait = [this](std::chrono::nanoseconds) { ++waits; };
  }
  // The rows of each environment of a member: first index of its rows, then episode and step in order.
  std::map<uint32_t, std::vector<ReceivedRow>> RowsOf(uint32_t member) const {
    std::map<uint32_t, std::vector<ReceivedRow>> rows;
    for (const ReceivedRow& row : session.rows) {
      if (row.member == member) rows[row.environment].push_back(row);
    }
    return rows;
  }
  std::map<int, std::function<void()>> events;  // by iteration
  int iteration = 0, waits = 0;
};

TEST(RolloutAssignment, AMemberThatLeavesFinishesItsOpenEpisodesAndIsThenReleased) {
  ChangingActor actor(2, {{0, 3}, {1, 3}});
  uint64_t before = 0;
  actor.events[50] = [&] {
    before = actor.session.produced(1);
    actor.session.Assign(2, {{0, 6}, {1, 0}});
  };
  actor.events[51] = [&] { EXPECT_THAT(actor.subscriber.members, ElementsAre(0, 1)) << "it still acts"; };
  actor.events[100] = [&] {
    EXPECT_THAT(actor.session.released, ElementsAre(std::pair(1u, uint64_t{2})));
    EXPECT_THAT(actor.subscriber.members, ElementsAre(0, 1)) << "no new stream for every member that is released";
    actor.session.Assign(2, {{0, 6}});
  };
  actor.events[102] = [&] { EXPECT_THAT(actor.subscriber.members, ElementsAre(0)); };
  actor.events[300] = [&] { actor.session.run_finished = true; };
  ASSERT_THAT(actor.Run(), IsOk());
  const auto rows = actor.RowsOf(1);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_GT(actor.session.produced(1), before);
  for (const auto& [environment, own] : rows) {
    EXPECT_TRUE(own.back().last) << "environment " << environment;
    EXPECT_GE(own.size(), 48u);  // 49 iterations, of which the last rows may be in the open chunk
    EXPECT_LE(own.size(), 49u + 40);
  }
  EXPECT_EQ(actor.RowsOf(0).size(), 6u);
  EXPECT_EQ(actor.session.released.size(), 1u);
}

TEST(RolloutAssignment, TheReleaseIsRepeatedAfterANewerAssignmentAndNotSentForAMemberThatReturns) {
  ChangingActor actor(2, {{0, 1}, {1, 1}});
  actor.events[2] = [&] { actor.session.Assign(2, {{0, 1}, {1, 0}}); };
  actor.events[60] = [&] { actor.session.Assign(3, {{0, 2}, {1, 0}}); };
  actor.events[80] = [&] { actor.session.Assign(4, {{0, 1}, {1, 1}}); };
  actor.events[200] = [&] { actor.session.run_finished = true; };
  ASSERT_THAT(actor.Run(), IsOk());
  EXPECT_THAT(actor.session.released, ElementsAre(std::pair(1u, uint64_t{2}), std::pair(1u, uint64_t{3})));
  const std::vector<ReceivedRow> rows = actor.RowsOf(1)[0];
  std::set<std::pair<uint32_t, uint32_t>> seen;  // episode, step
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(seen.emplace(rows[i].episode, rows[i].step).second) << "a random stream is used twice";
    if (i > 0 && rows[i - 1].last) {
      EXPECT_EQ(rows[i].episode, rows[i - 1].episode + 1);
    }
  }
  ASSERT_GE(rows.back().episode, 2u);
  uint32_t returned = 0;  // length of the first episode after the return: shortened, with a stream of its own
  for (const ReceivedRow& row : rows) returned += row.episode == 1;
  EXPECT_EQ(returned, 1 + RandomStream(StreamKey("actor.first_length", {7, 101, 3, 0, 1})).Below(40));
}

TEST(RolloutAssignment, ANewMemberBeginsWithItsFirstSnapshotWhileOthersContinue) {
  ChangingActor actor(2, {{0, 2}});
  const auto snapshot = std::exchange(actor.subscriber.latest[1], nullptr);
  actor.events[10] = [&] { actor.session.Assign(2, {{0, 1}, {1, 3}}); };
  actor.events[12] = [&] { EXPECT_EQ(actor.series.environments.Value(), 5) << "one finishes its episode"; };
  actor.events[100] = [&] {
    EXPECT_THAT(actor.subscriber.members, ElementsAre(0, 1));
    EXPECT_EQ(actor.session.produced(1), 0u);
    EXPECT_GT(actor.session.produced(0), 80u);
    actor.subscriber.latest[1] = snapshot;
  };
  actor.events[200] = [&] { actor.session.run_finished = true; };
  ASSERT_THAT(actor.Run(), IsOk());
  EXPECT_EQ(actor.RowsOf(1).size(), 3u);
  EXPECT_EQ(actor.series.environments.Value(), 4);
  const auto rows = actor.RowsOf(0);
  EXPECT_TRUE(rows.at(1).back().last) << "the lane that is not wanted any more finished its episode";
  EXPECT_LT(rows.at(1).size(), 60u);
  EXPECT_GT(rows.at(0).size(), 150u);
}

TEST(RolloutAssignment, AnActorWithoutMembersIsReadyAndWaits) {
  ChangingActor actor(1, {});
  bool ready = false;
  actor.options.on_ready = [&] { ready = true; };
  actor.events[20] = [&] { actor.session.Assign(2, {{0, 2}}); };
  actor.events[60] = [&] { actor.session.run_finished = true; };
  ASSERT_THAT(actor.Run(), IsOk());
  EXPECT_TRUE(ready);
  EXPECT_GE(actor.waits, 19);
  EXPECT_EQ(actor.RowsOf(0).size(), 2u);
}

}  // namespace
}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
