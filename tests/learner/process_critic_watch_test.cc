// The rule that says whether a critic runs away.
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "learner/critic_watch.h"

namespace datacom::learner {
namespace {

CriticWatch After(const std::vector<double>& losses) {
  CriticWatch watch;
  for (const double loss : losses) watch.Add(loss);
  return watch;
}

TEST(CriticWatchTest, MoreThanTenTimesTheSmallestOfTheTenEpochsBeforeRunsAway) {
  const std::vector<double> calm{9, 8, 7, 6, 2, 3, 4, 5, 6, 7};
  std::vector<double> tenfold = calm, more = calm;
  tenfold.push_back(20);
  more.push_back(20.1);
  EXPECT_FALSE(After(calm).runaway());
  EXPECT_FALSE(After(tenfold).runaway());
  EXPECT_TRUE(After(more).runaway());
  EXPECT_EQ(After(more).before(), 2);
  EXPECT_EQ(After(more).now(), 20.1);
}

TEST(CriticWatchTest, NothingRunsAwayBeforeTenEpochsOfLearningAreOver) {
  CriticWatch watch;
  double loss = 1e-6;
  for (int epoch = 0; epoch < 10; ++epoch, loss *= 20) {
    watch.Add(std::nan(""));  // nothing was learned
    watch.Add(loss);
    EXPECT_FALSE(watch.runaway()) << epoch;
  }
  watch.Add(loss);
  EXPECT_TRUE(watch.runaway());
}

TEST(CriticWatchTest, TheEpochElevenBackCountsNoMoreAndALossThatStaysHighIsTheNewMeasure) {
  std::vector<double> losses{1, 5, 5, 5, 5, 5, 5, 5, 5, 5, 20};
  EXPECT_TRUE(After(losses).runaway());
  losses.push_back(20);  // ten epochs before it: 5 and 20
  EXPECT_FALSE(After(losses).runaway());
  losses.push_back(51);
  EXPECT_TRUE(After(losses).runaway());
}

TEST(CriticWatchTest, ALossThatIsInfiniteRunsAwayAndTheHistoryOutlivesARestart) {
  std::vector<double> losses(10, 1.0);
  losses.push_back(HUGE_VAL);
  EXPECT_TRUE(After(losses).runaway());
  const CriticWatch whole = After({5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8}), again(whole.losses());
  EXPECT_EQ(again.losses(), (std::vector<double>{4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8}));
}

}  // namespace
}  // namespace datacom::learner
