// Tests how an episode sums up the named costs of its rows, and which episodes count as abandoned.
#include "replay/episodes.h"

#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/row_offsets.h"

namespace datacom::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Rows {
 public:
  explicit Rows(const RowSchema& schema) : offsets_(schema), row_(schema.stored_row_bytes()) {}

  // The row of step `step`; `next` is its next_observation.
  const char* Row(uint32_t episode, uint32_t step, float cost, const std::vector<float>& next, bool last) {
    Set(offsets_.episode, episode);
    Set(offsets_.step, step);
    Set(offsets_.cost, cost);
    std::memcpy(&row_[offsets_.next_observation], next.data(), next.size() * sizeof(float));
    row_[offsets_.last] = last ? 1 : 0;
    return row_.data();
  }
  // The first row of an environment.
  const char* First(uint32_t session, uint32_t environment) {
    Set(offsets_.session, session);
    Set(offsets_.environment, environment);
    return Row(0, 0, -1, {0, 0, 0, 0}, false);
  }
  const RowOffsets& offsets() const { return offsets_; }

 private:
  template <typename T>
  void Set(size_t offset, T value) {
    std::memcpy(&row_[offset], &value, sizeof value);
  }

  const RowOffsets offsets_;
  std::vector<char> row_;
};

TEST(Episodes, HaveTheLargestViolationTheSumAndTheViolatingStepsOfEachNamedCost) {
  Rows rows(RowSchema::For(4, 1, {}, {{"wall", "speed"}, 1}));
  EpisodeTracker tracker(rows.offsets(), 0.5);
  tracker.Feed(0, rows.Row(0, 0, -1, {99, -1, -2, 99}, false));
  tracker.Feed(1, rows.Row(0, 1, 0.5, {99, 0.5, 0.25, 99}, false));
  tracker.Feed(2, rows.Row(0, 2, 1.5, {99, -3, 1.5, 99}, true));
  tracker.Feed(3, rows.Row(1, 0, -1, {99, -1, -1, 99}, true));
  const std::vector<EpisodeSummary> episodes = tracker.Finished(0, 4);
  ASSERT_EQ(episodes.size(), 2u);
  EXPECT_THAT(episodes[0].facts.named_max_violation(), ElementsAre(0.5, 1.5));
  EXPECT_THAT(episodes[0].facts.named_sum_cost(), ElementsAre(0.5, 1.75));
  EXPECT_EQ(episodes[0].facts.sum_cost(), 2);
  EXPECT_EQ(episodes[0].facts.violating_steps(), 2u) << "a step in which both are above 0 counts once";
  EXPECT_THAT(episodes[0].facts.named_violating_steps(), ElementsAre(1, 2));
  EXPECT_THAT(episodes[1].facts.named_sum_cost(), ElementsAre(0, 0)) << "a new episode begins with nothing";
  EXPECT_THAT(episodes[1].facts.named_violating_steps(), ElementsAre(0, 0));
}

TEST(Episodes, OfAnEnvironmentWithALargeNumberTakeTheRoomOfOne) {
  Rows rows(RowSchema::For(4, 1));
  EpisodeTracker tracker(rows.offsets(), 0.5);
  // Of a foreign ring: an array for each session would fill the memory.
  for (uint32_t session = 1; session <= 2000; ++session) {
    tracker.Feed(session - 1, rows.First(session, kMaxEnvironments - 1));
  }
  tracker.Abandon(7);
  EXPECT_EQ(tracker.abandoned_count(), 1u);
  EXPECT_FALSE(tracker.Newest(7, kMaxEnvironments - 1).known);
  EXPECT_TRUE(tracker.Newest(8, kMaxEnvironments - 1).known);
  EXPECT_FALSE(tracker.Newest(8, 0).known);
  tracker.AbandonAllBut({1, 2000});
  EXPECT_EQ(tracker.abandoned_count(), 1998u);
}

TEST(Episodes, HaveTheMeanOfWhatTheTaskLogs) {
  Rows rows(RowSchema::For(4, 1, {}, {}, {{"speed", "effort"}, 2}));
  EpisodeTracker tracker(rows.offsets(), 0.5);
  tracker.Feed(0, rows.Row(0, 0, -1, {99, 99, -1, 0.5}, false));
  tracker.Feed(1, rows.Row(0, 1, -1, {99, 99, 2, 0.25}, true));
  tracker.Feed(2, rows.Row(1, 0, -1, {99, 99, 8, 1}, true));
  const std::vector<EpisodeSummary> episodes = tracker.Finished(0, 3);
  ASSERT_EQ(episodes.size(), 2u);
  EXPECT_THAT(episodes[0].facts.log_mean(), ElementsAre(0.5, 0.375));
  EXPECT_THAT(episodes[1].facts.log_mean(), ElementsAre(8, 1));
}

TEST(Episodes, OfATaskWithOneCostHaveNoNamedOnes) {
  Rows rows(RowSchema::For(4, 1));
  EpisodeTracker tracker(rows.offsets(), 0.5);
  tracker.Feed(0, rows.Row(0, 0, 2, {1, 1, 1, 1}, true));
  ASSERT_EQ(tracker.Finished(0, 1).size(), 1u);
  EXPECT_THAT(tracker.Finished(0, 1)[0].facts.named_sum_cost(), IsEmpty());
}

TEST(Episodes, WithAnInvalidStepCountAtTheRowThatBeginsTheNextOneAlsoIfTheyLeftNoRow) {
  Rows rows(RowSchema::For(4, 1));
  EpisodeTracker tracker(rows.offsets(), 0.5);
  const std::vector<float> next(4);
  tracker.Feed(0, rows.Row(0, 0, -1, next, true));
  tracker.Feed(1, rows.Row(1, 0, -1, next, false));
  tracker.Feed(2, rows.Row(2, 0, -1, next, true));   // after 1, which is not finished
  tracker.Feed(3, rows.Row(5, 0, -1, next, false));  // after 3 and 4
  tracker.Feed(4, rows.Row(5, 1, -1, next, false));
  tracker.Feed(5, rows.Row(9, 0, -1, next, true));  // after 5 to 8
  EXPECT_EQ(tracker.Invalid(0, 2), 0u);
  EXPECT_EQ(tracker.Invalid(0, 3), 1u);
  EXPECT_EQ(tracker.Invalid(3, 4), 2u);
  EXPECT_EQ(tracker.Invalid(3, 6), 6u);
  EXPECT_EQ(tracker.Invalid(0, 6), 7u);
  EXPECT_EQ(tracker.abandoned_count(), 7u);
  EXPECT_EQ(tracker.finished_count(), 3u);
  tracker.Forget(4);
  EXPECT_EQ(tracker.Invalid(0, 6), 4u);
}

TEST(Episodes, OfASessionThatEndedHaveNoInvalidStep) {
  Rows rows(RowSchema::For(4, 1));
  EpisodeTracker tracker(rows.offsets(), 0.5);
  tracker.Feed(0, rows.Row(3, 0, -1, {0, 0, 0, 0}, false));
  tracker.Abandon(0);
  tracker.Feed(1, rows.Row(0, 0, -1, {0, 0, 0, 0}, false));
  EXPECT_EQ(tracker.Invalid(0, 2), 0u);
  EXPECT_EQ(tracker.abandoned_count(), 1u);
}

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
