#include "common/records/evaluation_means.h"

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
  const EvaluationMeans means = MeansOf(episodes);
  EXPECT_EQ(means.episodes, 2);
  EXPECT_EQ(means.abandoned, 1);
  EXPECT_EQ(means.discounted_return, 2.5);
  EXPECT_EQ(means.return_, 5);
  EXPECT_EQ(means.max_violation, 0.375);
  EXPECT_EQ(means.sum_cost, 2.5);
  EXPECT_EQ(means.mean_cost, 0.375);  // of 0.5 and 0.25 per step
  EXPECT_EQ(means.length, 6);
  EXPECT_EQ(means.success_rate, 0.5);
}

TEST(EvaluationMeans, AreEmptyCellsWhenEveryEpisodeWasAbandoned) {
  std::vector<v1::EvaluationEpisode> episodes = {Episode(1, 0.5, 4, 8, true)};
  episodes[0].set_abandoned(true);
  const EvaluationMeans means = MeansOf(episodes);
  EXPECT_EQ(means.episodes, 0);
  for (const double value : {means.discounted_return, means.return_, means.max_violation, means.sum_cost,
                             means.mean_cost, means.length, means.success_rate}) {
    EXPECT_EQ(Cell(value), "");
  }
}

}  // namespace
}  // namespace datacom
