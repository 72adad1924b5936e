#include "common/records/evaluation_means.h"

#include <cmath>
#include <string>
#include <vector>

#include "common/records/csv.h"
#include "gtest/gtest.h"

namespace datacom {
namespace {

v1::EvaluationEpisode Episode(double discounted, double violation, double cost, uint32_t length, bool success) {
  v1::EvaluationEpisode episode;
  episode.set_discounted_return(discounted);
  episode.set_return_(2 * discounted);
  episode.set_max_violation(violation);
  episode.set_sum_cost(cost);
  episode.set_length(length);
  episode.set_success(success);
  return episode;
}

TEST(EvaluationMeans, CountOnlyCompleteEpisodes) {
  std::vector<v1::EvaluationEpisode> episodes = {Episode(1, 0.5, 4, 8, true), Episode(100, 9, 900, 2, true),
                                                 Episode(4, 0.25, 1, 4, false)};
  episodes[1].set_abandoned(true);
  episodes[0].set_violating_steps(3), episodes[1].set_violating_steps(2), episodes[2].set_violating_steps(4);
  for (int i = 0; i < 3; ++i) episodes[i].add_log_mean(i);
  const EvaluationMeans means = MeansOf(episodes);
  EXPECT_EQ(means.episodes, 2);
  EXPECT_EQ(means.violating_steps, 3.5);
  EXPECT_EQ(means.logs, (std::vector<double>{1})) << "of 0 and 2";
  EXPECT_EQ(means.abandoned, 1);
  EXPECT_EQ(means.discounted_return, 2.5);
  EXPECT_EQ(means.return_, 5);
  EXPECT_EQ(means.max_violation, 0.375);
  EXPECT_EQ(means.sum_cost, 2.5);
  EXPECT_EQ(means.mean_cost, 0.375);  // of 0.5 and 0.25 per step
  EXPECT_EQ(means.length, 6);
  EXPECT_EQ(means.success_rate, 0.5);
}

TEST(EvaluationMeans, OfTheConstraintExistOnlyIfEveryEpisodeHasOne) {
  std::vector<v1::EvaluationEpisode> episodes(3, Episode(1, 0.5, 4, 8, true));
  episodes[0].set_largest_constraint(-3), episodes[1].set_largest_constraint(90), episodes[2].set_largest_constraint(2);
  episodes[1].set_abandoned(true);
  EXPECT_EQ(MeansOf(episodes).largest_constraint, -0.5);
  EXPECT_TRUE(std::isnan(MeansOf(episodes).infeasible_share));
  episodes[2].clear_largest_constraint();
  EXPECT_TRUE(std::isnan(MeansOf(episodes).largest_constraint));
}

TEST(EvaluationMeans, OfNamedCostsCountOnlyCompleteEpisodesToo) {
  std::vector<v1::EvaluationEpisode> episodes(3, Episode(1, 3, 5, 8, true));
  for (int i = 0; i < 3; ++i) {
    for (const double cost : {1.0, 2.0}) {
      episodes[i].add_named_max_violation(cost * i);
      episodes[i].add_named_sum_cost(10 * cost * i);
      episodes[i].add_named_violating_steps(4 * i);
    }
  }
  episodes[1].set_abandoned(true);
  std::vector<std::string> cells;
  AppendNamedCosts(MeansOf(episodes).named, 2, &cells);
  EXPECT_EQ(cells, (std::vector<std::string>{"1", "10", "4", "2", "20", "4"}));
  EXPECT_EQ(
      NamedCostColumns({"wall", "speed"}, "eval_"),
      (std::vector<std::string>{"eval_max_violation.wall", "eval_sum_cost.wall", "eval_violating_steps.wall",
                                "eval_max_violation.speed", "eval_sum_cost.speed", "eval_violating_steps.speed"}));
}

TEST(EvaluationMeans, OfNamedCostsAreEmptyCellsWhereAnEpisodeLacksThem) {
  std::vector<v1::EvaluationEpisode> episodes(2, Episode(1, 3, 5, 8, true));
  episodes[0].add_named_max_violation(1);
  episodes[0].add_named_sum_cost(1);
  episodes[0].add_named_violating_steps(1);
  episodes[0].add_log_mean(2);
  std::vector<std::string> cells;
  AppendNamedCosts(MeansOf(episodes).named, 1, &cells);
  AppendLogs(MeansOf(episodes).logs, 1, &cells);
  EXPECT_EQ(cells, (std::vector<std::string>{"", "", "", ""}));
}

TEST(EvaluationMeans, OfLogsHaveAColumnForEachName) {
  EXPECT_EQ(LogColumns({"speed", "effort"}, "eval_"), (std::vector<std::string>{"eval_log.speed", "eval_log.effort"}));
  std::vector<std::string> cells;
  AppendLogs(std::vector<double>{0.5, -2}, 2, &cells);
  EXPECT_EQ(cells, (std::vector<std::string>{"0.5", "-2"}));
}

TEST(EvaluationMeans, AreEmptyCellsWhenEveryEpisodeWasAbandoned) {
  std::vector<v1::EvaluationEpisode> episodes = {Episode(1, 0.5, 4, 8, true)};
  episodes[0].set_abandoned(true);
  const EvaluationMeans means = MeansOf(episodes);
  EXPECT_EQ(means.episodes, 0);
  for (const double value : {means.discounted_return, means.return_, means.max_violation, means.sum_cost,
                             means.violating_steps, means.mean_cost, means.length, means.success_rate}) {
    EXPECT_EQ(Cell(value), "");
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
