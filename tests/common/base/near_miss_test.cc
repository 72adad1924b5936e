#include "common/base/near_miss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace datacom {
namespace {

using ::testing::ElementsAre;

TEST(NearMiss, TheDistanceCountsLettersAddedLeftOutReplacedAndExchanged) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("sac", ""), 3);
  EXPECT_EQ(EditDistance("datcom", "datacom"), 1);
  EXPECT_EQ(EditDistance("horizons", "horizon"), 1);
  EXPECT_EQ(EditDistance("joynt", "joint"), 1);
  EXPECT_EQ(EditDistance("trian", "train"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(NearMiss, AWordIsNearWhereAQuarterOfItsLettersIsWrongOrWhereItIsAPart) {
  EXPECT_EQ(Nearness("tau", "tan"), 1);
  EXPECT_EQ(Nearness("tau", "lab"), std::nullopt);
  EXPECT_EQ(Nearness("cost_bugdet", "cost_budget"), 1);
  EXPECT_EQ(Nearness("budget", "cost_budget"), 3);
  EXPECT_EQ(Nearness("sac", "sac_matched"), std::nullopt) << "three letters are a part of too much";
  EXPECT_EQ(Nearness("", "x"), std::nullopt);
  EXPECT_EQ(Nearness("y", "x"), std::nullopt) << "no letter is right";
  EXPECT_EQ(Nearness(std::string(100'000, 'x'), "cost_budget"), std::nullopt);
}

TEST(NearMiss, OnlyTheNearestNamesAreShownAndAtMostThree) {
  EXPECT_THAT(Nearest("datcom", {{"datacom", "cartpole/datacom"}, {"datcoms", "b"}, {"wcsac", "c"}, {"datacom", "d"}}),
              ElementsAre("cartpole/datacom", "b", "d"));
  EXPECT_THAT(Nearest("sac", {{"sat", "a"}, {"sac", "b"}, {"saw", "c"}}), ElementsAre("b"));
  EXPECT_THAT(Nearest("aa", {{"ab", "1"}, {"ac", "2"}, {"ad", "3"}, {"ae", "4"}}), ElementsAre("1", "2", "3"));
  EXPECT_EQ(DidYouMean("trian", {"train", "sweep"}), "; did you mean train?");
  EXPECT_EQ(DidYouMean("from_scratch", {"a/from_scratch", "b/from_scratch", "b/sac"}),
            "; did you mean a/from_scratch or b/from_scratch?");
  EXPECT_EQ(DidYouMean("fly", {"train", "sweep"}), "");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
