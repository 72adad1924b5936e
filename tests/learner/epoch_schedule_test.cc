#include <gtest/gtest.h>

#include "learner/run_settings.h"

namespace datacom::learner {
namespace {

EpochSchedule Make(double utd, uint64_t min_size, uint64_t steps_per_epoch, uint64_t env_steps) {
  return EpochSchedule({env_steps, min_size, utd}, steps_per_epoch);
}

TEST(EpochSchedule, TheFirstUpdateSeesTheRowAfterTheMinimum) {
  const EpochSchedule schedule = Make(/*utd=*/1, /*min_size=*/2000, /*steps_per_epoch=*/10000, /*env_steps=*/1000000);
  EXPECT_EQ(schedule.RowsSeen(1), 2001u);
  EXPECT_EQ(schedule.last_update(), 998000u);
  EXPECT_EQ(schedule.RowsSeen(schedule.last_update()), 1000000u);
  EXPECT_EQ(schedule.last_epoch(), 100u);
  EXPECT_EQ(schedule.EpochUpdate(0), 0u);
  EXPECT_EQ(schedule.EpochUpdate(1), 8000u);
  EXPECT_EQ(schedule.EpochUpdate(100), 998000u);
}

TEST(EpochSchedule, ARunThatEndsInsideAnEpochHasAShorterLastOne) {
  const EpochSchedule schedule = Make(1, 100, 1000, 2500);
  EXPECT_EQ(schedule.last_epoch(), 3u);
  EXPECT_EQ(schedule.EpochSteps(2), 2000u);
  EXPECT_EQ(schedule.EpochSteps(3), 2500u);
  EXPECT_EQ(schedule.EpochUpdate(3), 2400u);
  EXPECT_FALSE(schedule.EndsEarly(2));
  EXPECT_TRUE(schedule.EndsEarly(3));
  EXPECT_FALSE(Make(1, 100, 1000, 3000).EndsEarly(3));
}

TEST(EpochSchedule, EpochsBeforeTheFirstUpdateEndAtUpdateZero) {
  const EpochSchedule schedule = Make(1, 2000, 1000, 4000);
  EXPECT_EQ(schedule.EpochUpdate(1), 0u);
  EXPECT_EQ(schedule.EpochUpdate(2), 0u);
  EXPECT_EQ(schedule.EpochUpdate(3), 1000u);
}

TEST(EpochSchedule, EachEpochEndsWhenItsLastRowIsSeen) {
  for (const double utd : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    const EpochSchedule schedule = Make(utd, 200, 1000, 10000);
    for (uint32_t epoch = 1; epoch <= 10; ++epoch) {
      EXPECT_EQ(schedule.RowsSeen(schedule.EpochUpdate(epoch)), epoch * 1000u) << "UTD " << utd << " epoch " << epoch;
      EXPECT_LE(schedule.RowsSeen(schedule.EpochUpdate(epoch) + 1), 10000u);
    }
  }
}

TEST(EpochSchedule, RatiosWithoutAnExactBinaryFormCountAsWritten) {
  const EpochSchedule schedule = Make(/*utd=*/0.7, /*min_size=*/0, /*steps_per_epoch=*/10, /*env_steps=*/1000);
  EXPECT_EQ(schedule.EpochUpdate(1), 7u);
  EXPECT_EQ(schedule.RowsSeen(7), 10u);
  EXPECT_EQ(schedule.last_update(), 700u);
}

TEST(EpochSchedule, ARowBelongsToTheEpochOfItsStep) {
  const EpochSchedule schedule = Make(1, 0, 1000, 5000);
  EXPECT_EQ(schedule.EpochOfRow(1), 1u);
  EXPECT_EQ(schedule.EpochOfRow(1000), 1u);
  EXPECT_EQ(schedule.EpochOfRow(1001), 2u);
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
