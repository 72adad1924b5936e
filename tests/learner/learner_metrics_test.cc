// The learner's series of members.
#include <chrono>
#include <limits>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/learner_metrics.h"

namespace datacom::learner {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::unique_ptr<Metrics> StartMetrics() {
  Metrics::Options options;
  options.role = "learner";
  return *Metrics::Start(options);
}

Stats StatsOf(int members, double constraint_mean, double delta) {
  v1::MemberEpoch member = NoUpdates();
  member.set_policy_loss(0.5);
  member.set_critic_loss(0.25);
  member.set_constraint_loss(0.125);
  member.set_entropy(-1);
  member.set_constraint_mean(constraint_mean);
  member.set_delta(delta);
  member.set_alpha(1);
  member.set_q_mean(7);
  member.set_q_min(-98);
  member.set_q_gap(0.75);
  member.set_actor_gradient_norm(2);
  member.set_critic_gradient_norm(3);
  return Stats(members, member);
}

TEST(LearnerMetricsTest, ShowsTheThreadsAndTheShareOfTheirTimeInWhichTheyWait) {
  const auto metrics = StartMetrics();
  const auto team = std::make_shared<Team>(4);
  LearnerMetrics learner(metrics.get(), 1, "datacom", ".", team);
  EXPECT_EQ(metrics->gauge("datacom_learner_threads").Value(), 4);
  team->OnWorkers(1, [](int) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    while (std::chrono::steady_clock::now() < end) {
    }
  });
  learner.Refresh(1, 0.5, StatsOf(1, 0, 1));
  EXPECT_NEAR(metrics->gauge("datacom_learner_thread_wait_ratio").Value(), 0.75, 0.05);

  const auto single = StartMetrics();
  LearnerMetrics alone(single.get(), 1, "datacom", ".");
  alone.Refresh(1, 0.5, StatsOf(1, 0, 1));
  EXPECT_EQ(single->gauge("datacom_learner_threads").Value(), 1);
  EXPECT_EQ(single->gauge("datacom_learner_thread_wait_ratio").Value(), 0);
}

TEST(LearnerMetricsTest, EachNamedCostOfATaskWithSeveralHasItsSeries) {
  const auto metrics = StartMetrics();
  LearnerMetrics learner(metrics.get(), 2, "datacom", ".");
  learner.NameCosts({"wall", "speed"});
  v1::Episode episode;
  for (const double sum : {1.5, 0.25}) {
    episode.add_named_max_violation(1);
    episode.add_named_sum_cost(sum);
    episode.add_named_violating_steps(static_cast<uint32_t>(4 * sum));
  }
  learner.Episode(1, episode);
  learner.Episode(1, episode);
  EvaluationMeans means;
  means.named = {{0.5, 8, 3}, {0.25, 4, 2}};
  learner.Evaluated(0, means);
  const auto total = [&](const char* member, const char* cost) {
    return metrics->counter("datacom_member_named_cost_total", {{"member", member}, {"cost", cost}}).Value();
  };
  EXPECT_EQ(total("1", "wall"), 3);
  EXPECT_EQ(total("1", "speed"), 0.5);
  EXPECT_EQ(total("0", "wall"), 0);
  EXPECT_EQ(metrics->counter("datacom_member_named_violations_total", {{"member", "1"}, {"cost", "wall"}}).Value(), 12);
  EXPECT_EQ(metrics->gauge("datacom_member_eval_named_cost", {{"member", "0"}, {"cost", "speed"}}).Value(), 4);

  const auto others = StartMetrics();
  LearnerMetrics unnamed(others.get(), 2, "datacom", ".");
  unnamed.NameCosts({});
  unnamed.Episode(1, v1::Episode());
  EXPECT_THAT(others->Scrape(), ::testing::Not(::testing::HasSubstr("named_cost")));
}

TEST(LearnerMetricsTest, ALargePopulationHasQuantilesOfItsNamedCosts) {
  const auto metrics = StartMetrics();
  const int members = LearnerMetrics::kMaxMembers + 1;
  LearnerMetrics learner(metrics.get(), members, "datacom", ".");
  learner.NameCosts({"wall"});
  EvaluationMeans means;
  for (int member = 0; member < members; ++member) {
    means.named = {{0, static_cast<double>(member), 0}};
    learner.Evaluated(member, means);
  }
  learner.Refresh(1, 0.5, StatsOf(members, 0, 1));
  EXPECT_EQ(metrics->gauge("datacom_member_eval_named_cost", {{"member", "median"}, {"cost", "wall"}}).Value(), 64);
}

TEST(LearnerMetricsTest, NamesTheDevice) {
  const auto metrics = StartMetrics();
  LearnerMetrics(metrics.get(), 1, "datacom", ".").SetDevice("cuda");
  EXPECT_THAT(metrics->Scrape(), ::testing::HasSubstr("datacom_learner_device_info{device=\"cuda\"} 1"));
}

TEST(LearnerMetricsTest, ViolationsCountTransitionsAndCostsTheirSum) {
  const auto metrics = StartMetrics();
  LearnerMetrics learner(metrics.get(), 2, "datacom", ".");
  v1::Episode episode;
  episode.set_violating_steps(7);
  episode.set_max_violation(0.5);
  episode.set_sum_cost(1.25);
  learner.Episode(1, episode);
  learner.Episode(1, episode);
  const auto counter = [&](const char* name) { return metrics->counter(name, {{"member", "1"}}).Value(); };
  EXPECT_EQ(counter("datacom_member_episodes_total"), 2);
  EXPECT_EQ(counter("datacom_member_violations_total"), 14);
  EXPECT_EQ(counter("datacom_member_cost_total"), 2.5);
  EXPECT_EQ(metrics->counter("datacom_member_violations_total", {{"member", "0"}}).Value(), 0);
}

TEST(LearnerMetricsTest, CvarIsTheConstraintPlusDeltaAndStaysAfterTheEndOfAnEpoch) {
  const auto metrics = StartMetrics();
  LearnerMetrics learner(metrics.get(), 1, "datacom", ".");
  learner.Refresh(100, 0.5, StatsOf(1, /*constraint_mean=*/-4, /*delta=*/6.5));
  const prometheus::Gauge& cvar = metrics->gauge("datacom_member_cvar", {{"member", "0"}});
  EXPECT_EQ(cvar.Value(), 2.5);
  Stats reset = {NoUpdates()};
  reset[0].set_delta(6.5);
  learner.Refresh(100, 0.5, reset);
  EXPECT_EQ(cvar.Value(), 2.5);
}

TEST(LearnerMetricsTest, LossesAndEntropyAreShownAndStayAfterTheEndOfAnEpoch) {
  const auto metrics = StartMetrics();
  LearnerMetrics learner(metrics.get(), 1, "datacom", ".");
  learner.Refresh(100, 0.5, StatsOf(1, -4, 6.5));
  learner.Refresh(100, 0.75, {NoUpdates()});
  const auto gauge = [&](const char* name) { return metrics->gauge(name, {{"member", "0"}}).Value(); };
  EXPECT_EQ(gauge("datacom_member_policy_loss"), 0.5);
  EXPECT_EQ(gauge("datacom_member_critic_loss"), 0.25);
  EXPECT_EQ(gauge("datacom_member_constraint_loss"), 0.125);
  EXPECT_EQ(gauge("datacom_member_entropy"), -1);
  EXPECT_EQ(gauge("datacom_member_q_mean"), 7);
  EXPECT_EQ(gauge("datacom_member_q_min"), -98);
  EXPECT_EQ(gauge("datacom_member_q_gap"), 0.75);
  EXPECT_EQ(gauge("datacom_member_actor_gradient_norm"), 2);
  EXPECT_EQ(gauge("datacom_member_critic_gradient_norm"), 3);
  EXPECT_EQ(metrics->gauge("datacom_learner_progress_ratio").Value(), 0.75);
  EXPECT_GT(metrics->gauge("datacom_learner_disk_free_bytes").Value(), 0);
}

// The critics of safe_layer_td3 learn only after schedule.policy_warmup.
TEST(LearnerMetricsTest, TheLossOfAnotherNetIsShownBeforeTheCriticsLearn) {
  const auto metrics = StartMetrics();
  LearnerMetrics learner(metrics.get(), 1, "safe_layer_td3", ".");
  v1::MemberEpoch epoch = NoUpdates();
  epoch.set_constraint_loss(0.125);
  learner.Refresh(100, 0.5, {epoch});
  EXPECT_EQ(metrics->gauge("datacom_member_constraint_loss", {{"member", "0"}}).Value(), 0.125);
}

TEST(LearnerMetricsTest, AMemberIsIntroducedWithItsSeedAndSetting) {
  const auto metrics = StartMetrics();
  LearnerMetrics learner(metrics.get(), 2, "datacom", ".");
  learner.Introduce(0, 7, "budget low", 1);
  learner.Introduce(1, 8, "budget low", 2);
  EXPECT_THAT(metrics->Scrape(),
              testing::HasSubstr("datacom_member_info{label=\"budget low\",member=\"1\",seed=\"8\"} 1\n"));
  EXPECT_EQ(metrics->gauge("datacom_member_cost_budget", {{"member", "1"}}).Value(), 2);
}

TEST(LearnerMetricsTest, ACriticThatRunsAwayIsFlaggedAndSetsTheMaximumOfALargePopulation) {
  for (const int members : {2, LearnerMetrics::kMaxMembers + 1}) {
    const auto metrics = StartMetrics();
    LearnerMetrics learner(metrics.get(), members, "datacom", ".");
    const prometheus::Gauge& gauge =
        metrics->gauge("datacom_member_critic_runaway", {{"member", members == 2 ? "1" : "max"}});
    for (const bool runaway : {false, true, false}) {
      for (int m = 0; m < members; ++m) learner.SetCriticRunaway(m, runaway && m == 1);
      learner.Refresh(100, 0.5, StatsOf(members, 1, 0));
      EXPECT_EQ(gauge.Value(), runaway ? 1 : 0) << members;
    }
  }
}

TEST(LearnerMetricsTest, LargePopulationsShowQuantilesAndSums) {
  const int members = LearnerMetrics::kMaxMembers + 1;
  const auto metrics = StartMetrics();
  LearnerMetrics learner(metrics.get(), members, "datacom", ".");
  Stats stats = StatsOf(members, 1, 0);
  for (int m = 0; m < members; ++m) stats[m].set_delta(m);
  learner.Refresh(100, 0.5, stats);
  for (const auto& [quantile, value] : {std::pair<const char*, double>{"min", 1}, {"median", 65}, {"max", 129}}) {
    EXPECT_EQ(metrics->gauge("datacom_member_cvar", {{"member", quantile}}).Value(), value) << quantile;
  }
  v1::Episode episode;
  episode.set_violating_steps(2);
  for (int m = 0; m < members; ++m) learner.Episode(m, episode);
  EXPECT_EQ(metrics->counter("datacom_member_violations_total", {{"member", "all"}}).Value(), 2 * members);
  for (int m = 0; m < members; ++m) learner.Introduce(m, m, "", 1);
  EXPECT_THAT(metrics->Scrape(), testing::Not(testing::HasSubstr("datacom_member_info{")));
}

// A value is NaN for a member that has diverged and for an algorithm without such a value.
TEST(LearnerMetricsTest, QuantilesCoverOnlyTheMembersThatHaveAValue) {
  const int members = LearnerMetrics::kMaxMembers + 2, last = members - 1;
  const auto metrics = StartMetrics();
  LearnerMetrics learner(metrics.get(), members, "datacom", ".");
  const auto show = [&](const char* name) {
    std::vector<double> values;
    for (const char* quantile : {"min", "median", "max"}) {
      values.push_back(metrics->gauge(name, {{"member", quantile}}).Value());
    }
    return values;
  };
  Stats stats = StatsOf(members, kNone, 0);
  stats[last] = NoUpdates();
  stats[7].set_policy_loss(kNone);
  stats[0].set_policy_loss(-3), stats[1].set_policy_loss(9);
  EvaluationMeans means;
  v1::Episode episode;
  for (const int member : {5, 3, 4}) {
    means.sum_cost = member;
    learner.Evaluated(member, means);
    episode.set_return_(10 * member);
    learner.Episode(member, episode);
    learner.Introduce(member, member, "", member);
  }
  learner.Refresh(100, 0.5, stats);
  EXPECT_EQ(show("datacom_member_policy_loss"), (std::vector<double>{-3, 0.5, 9}));
  EXPECT_EQ(show("datacom_member_critic_loss"), (std::vector<double>{0.25, 0.25, 0.25}));
  EXPECT_EQ(show("datacom_member_eval_sum_cost"), (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(show("datacom_member_return"), (std::vector<double>{30, 40, 50}));
  EXPECT_EQ(show("datacom_member_cost_budget"), (std::vector<double>{3, 4, 5}));
  stats[1].set_policy_loss(11);
  learner.Refresh(200, 0.6, stats);
  EXPECT_EQ(show("datacom_member_policy_loss"), (std::vector<double>{-3, 0.5, 11}));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
