#include "common/metrics/statistics.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace datacom {
namespace {

using ::testing::Contains;
using ::testing::Not;

std::vector<std::string> Names(const std::vector<EpochStatistic>& statistics) {
  std::vector<std::string> names;
  for (const EpochStatistic& statistic : statistics) names.push_back(statistic.name());
  return names;
}

TEST(Statistics, HaveNamesAndTagsOfTheirOwn) {
  std::set<std::string> names, tags;
  for (const EpochStatistic& statistic : Statistics()) {
    EXPECT_TRUE(names.insert(statistic.name()).second) << statistic.name();
    EXPECT_TRUE(tags.insert(statistic.tag()).second) << statistic.tag();
  }
  EXPECT_GT(names.size(), 15u);
}

TEST(Statistics, OnlyNumbersThatUpdatesComputeHaveAGauge) {
  for (const EpochStatistic& statistic : Statistics()) {
    EXPECT_TRUE(statistic.from_updates() || !statistic.about().has_help()) << statistic.name();
  }
}

TEST(Statistics, AnAlgorithmHasThoseOfAllAlgorithmsAndItsOwn) {
  EXPECT_THAT(Names(StatisticsOf("sac")), Not(Contains("toy_prediction")));
  EXPECT_THAT(Names(StatisticsOf("toy")), Contains("toy_prediction"));
  const auto others = std::count_if(Statistics().begin(), Statistics().end(), [](const EpochStatistic& statistic) {
    const auto& users = statistic.about().used_by();
    return !users.empty() && std::find(users.begin(), users.end(), "sac") == users.end();
  });
  EXPECT_EQ(StatisticsOf("sac").size() + others, Statistics().size());
}

TEST(Statistics, BeforeAnUpdateOnlyCountsAndSumsHaveAValue) {
  EXPECT_TRUE(std::isnan(NoUpdates().critic_loss()));
  EXPECT_TRUE(std::isnan(NoUpdates().delta()));
  EXPECT_EQ(NoUpdates().train_return(), 0);
  EXPECT_EQ(NoUpdates().lanes(), 0u);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
