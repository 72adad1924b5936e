#include <gtest/gtest.h>

#include "learner/evaluations.h"
#include "tests/testing/manual_clock.h"

namespace datacom::learner {
namespace {

class EvaluationsTest : public ::testing::Test {
 protected:
  EvaluationsTest() : evaluations_(Options()) {}
  Evaluations::Options Options() const {
    Evaluations::Options options;
    options.clock = &clock_;
    options.episodes = 2;
    options.lease_seconds = 60;
    options.incarnation = 3;
    return options;
  }
  static v1::EpochRecord Epoch(uint32_t epoch, int members) {
    v1::EpochRecord record;
    record.set_epoch(epoch);
    for (int i = 0; i < members; ++i) record.add_members();
    return record;
  }
  absl::StatusOr<bool> Report(const v1::LeaseReply& item, double value = 1, int episodes = 2) {
    v1::ReportRequest request;
    request.set_lease(item.lease());
    request.set_member(item.member());
    request.set_epoch(item.epoch());
    for (int i = 0; i < episodes; ++i) request.add_episodes()->set_return_(value);
    return evaluations_.Report(request);
  }
  ManualClock clock_;
  Evaluations evaluations_;
};

TEST_F(EvaluationsTest, ItemsAreHandedOutInOrderOfEpochAndMember) {
  evaluations_.Add(Epoch(0, 2));
  evaluations_.Add(Epoch(1, 2));
  for (const auto& [epoch, member] : {std::pair<uint32_t, uint32_t>{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
    const v1::LeaseReply item = evaluations_.Lease("evaluator of " + std::to_string(epoch) + std::to_string(member));
    EXPECT_NE(item.lease(), 0u);
    EXPECT_EQ(item.epoch(), epoch);
    EXPECT_EQ(item.member(), member);
    EXPECT_EQ(item.episodes(), 2u);
  }
  EXPECT_EQ(evaluations_.Lease("another").lease(), 0u);
}

TEST_F(EvaluationsTest, AskingAgainRenewsTheLeaseOfTheSameItem) {
  evaluations_.Add(Epoch(0, 2));
  const v1::LeaseReply first = evaluations_.Lease("a");
  clock_.Advance(std::chrono::seconds(50));
  EXPECT_EQ(evaluations_.Lease("a").lease(), first.lease());
  clock_.Advance(std::chrono::seconds(50));  // 100 s after the first lease, 50 s after its renewal
  EXPECT_EQ(evaluations_.Lease("b").member(), 1u);
  EXPECT_EQ(evaluations_.Lease("c").lease(), 0u);
}

TEST_F(EvaluationsTest, ALeaseThatIsRenewedForAnHourGoesToAnotherEvaluator) {
  evaluations_.Add(Epoch(0, 1));
  const uint64_t held = evaluations_.Lease("a").lease();
  for (int i = 0; i < 119; ++i) {
    clock_.Advance(std::chrono::seconds(30));
    ASSERT_EQ(evaluations_.Lease("a").lease(), held);
    ASSERT_EQ(evaluations_.Lease("b").lease(), 0u);
  }
  clock_.Advance(std::chrono::seconds(30));
  EXPECT_EQ(evaluations_.Lease("a").lease(), 0u) << "b asks, too";
  const v1::LeaseReply other = evaluations_.Lease("b");
  EXPECT_NE(other.lease(), 0u);
  EXPECT_TRUE(*Report(other));
}

TEST_F(EvaluationsTest, TheOnlyEvaluatorGetsAnItemBackThatItHeldForAnHour) {
  evaluations_.Add(Epoch(0, 1));
  const uint64_t held = evaluations_.Lease("a").lease();
  for (int i = 0; i < 120; ++i) {
    clock_.Advance(std::chrono::seconds(30));
    if (i < 119) ASSERT_EQ(evaluations_.Lease("a").lease(), held);
  }
  const uint64_t again = evaluations_.Lease("a").lease();
  EXPECT_NE(again, 0u);
  EXPECT_NE(again, held);
}

TEST_F(EvaluationsTest, AReportWhoseCostsCannotBeIsRefused) {
  evaluations_.Add(Epoch(0, 1));
  const v1::LeaseReply item = evaluations_.Lease("a");
  for (const auto& [violation, cost] : {std::pair(-0.5, 1.0), std::pair(2.0, 1.0)}) {
    v1::ReportRequest request;
    request.set_lease(item.lease());
    for (int i = 0; i < 2; ++i) {
      request.add_episodes()->set_max_violation(violation);
      request.mutable_episodes(i)->set_sum_cost(cost);
    }
    EXPECT_TRUE(absl::IsInvalidArgument(evaluations_.Report(request).status())) << violation << " " << cost;
  }
  v1::ReportRequest more_than_all;
  more_than_all.set_lease(item.lease());
  for (int i = 0; i < 2; ++i) {
    more_than_all.add_episodes()->set_length(3);
    more_than_all.mutable_episodes(i)->set_violating_steps(4);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(evaluations_.Report(more_than_all).status()));
  EXPECT_TRUE(*Report(item));
}

TEST_F(EvaluationsTest, ALeaseThatRanOutIsHandedOutAgainAndTheLateReportIsStale) {
  evaluations_.Add(Epoch(0, 1));
  const v1::LeaseReply late = evaluations_.Lease("a");
  clock_.Advance(std::chrono::seconds(61));
  const v1::LeaseReply again = evaluations_.Lease("b");
  EXPECT_EQ(again.member(), late.member());
  EXPECT_NE(again.lease(), late.lease());
  EXPECT_FALSE(*Report(late, /*value=*/-1));
  EXPECT_TRUE(*Report(again, /*value=*/5));
  EXPECT_FALSE(*Report(late, /*value=*/-1));
  const auto record = evaluations_.PopCompleted();
  ASSERT_TRUE(record.has_value());
  ASSERT_EQ(record->members(0).evaluation_size(), 2);
  EXPECT_EQ(record->members(0).evaluation(0).return_(), 5);
}

TEST_F(EvaluationsTest, ALateReportCountsWhileNobodyElseHoldsTheItem) {
  evaluations_.Add(Epoch(0, 1));
  const v1::LeaseReply item = evaluations_.Lease("a");
  clock_.Advance(std::chrono::seconds(1000));
  EXPECT_TRUE(*Report(item));
}

TEST_F(EvaluationsTest, ARepeatedReportIsAcceptedOnceAndStoredOnce) {
  evaluations_.Add(Epoch(0, 2));
  const v1::LeaseReply item = evaluations_.Lease("a");
  EXPECT_TRUE(*Report(item, /*value=*/1));
  EXPECT_TRUE(*Report(item, /*value=*/2));  // the answer was lost; the first report stays
  EXPECT_EQ(evaluations_.Pending()[0].members(0).evaluation(0).return_(), 1);
  EXPECT_EQ(evaluations_.pending_items(), 1u);
}

TEST_F(EvaluationsTest, EpochsCompleteInOrderThoughReportsDoNot) {
  evaluations_.Add(Epoch(0, 1));
  evaluations_.Add(Epoch(1, 1));
  const v1::LeaseReply first = evaluations_.Lease("a"), second = evaluations_.Lease("b");
  EXPECT_TRUE(*Report(second));
  EXPECT_FALSE(evaluations_.PopCompleted().has_value());
  EXPECT_TRUE(*Report(first));
  EXPECT_EQ(evaluations_.PopCompleted()->epoch(), 0u);
  EXPECT_EQ(evaluations_.PopCompleted()->epoch(), 1u);
  EXPECT_FALSE(evaluations_.PopCompleted().has_value());
}

TEST_F(EvaluationsTest, WrongReportsAreRefusedWithReasons) {
  evaluations_.Add(Epoch(4, 1));
  const v1::LeaseReply item = evaluations_.Lease("a");
  const absl::Status few = Report(item, 1, /*episodes=*/1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(few));
  EXPECT_NE(few.message().find("1 episodes, expected 2"), absl::string_view::npos) << few;
  EXPECT_TRUE(absl::IsInvalidArgument(Report(item, std::nan("")).status()));
  v1::LeaseReply foreign = item;
  foreign.set_lease(item.lease() + 1);
  EXPECT_FALSE(*Report(foreign));
  foreign.set_lease(0);
  EXPECT_FALSE(*Report(foreign));
  EXPECT_EQ(evaluations_.pending_items(), 1u);
}

TEST_F(EvaluationsTest, EvaluatorsLeaveOnlyOnceNothingCanCome) {
  evaluations_.Add(Epoch(0, 1));
  const v1::LeaseReply item = evaluations_.Lease("a");
  evaluations_.Finish();
  EXPECT_FALSE(evaluations_.Lease("b").finished());  // a may still fail
  EXPECT_TRUE(*Report(item));
  EXPECT_FALSE(evaluations_.everyone_told());
  EXPECT_TRUE(evaluations_.Lease("a").finished());
  EXPECT_TRUE(evaluations_.Lease("b").finished());
  EXPECT_TRUE(evaluations_.everyone_told());
}

TEST_F(EvaluationsTest, MoreEvaluatorsThanItRemembersGetNoWorkUntilOthersStopAsking) {
  evaluations_.Add(Epoch(0, 2));
  for (size_t i = 0; i < Evaluations::kMaxEvaluators; ++i) evaluations_.Lease("evaluator " + std::to_string(i));
  const v1::LeaseReply refused = evaluations_.Lease("one more");
  EXPECT_EQ(refused.lease(), 0u);
  EXPECT_FALSE(refused.finished());
  EXPECT_GT(refused.retry_seconds(), 0);
  clock_.Advance(std::chrono::seconds(61));  // all leases have run out, and nobody has asked
  EXPECT_NE(evaluations_.Lease("one more").lease(), 0u);
}

TEST_F(EvaluationsTest, WhatWaitsForEvaluatorsNamesTheOneThatAskedLast) {
  EXPECT_EQ(evaluations_.WaitingFor(0), "");
  evaluations_.Add(Epoch(0, 2));
  EXPECT_EQ(evaluations_.WaitingFor(30), "");
  clock_.Advance(std::chrono::seconds(30));
  EXPECT_EQ(evaluations_.WaitingFor(30), "2 evaluations to be reported (no evaluator has connected)");
  const v1::LeaseReply item = evaluations_.Lease("a");
  EXPECT_EQ(evaluations_.WaitingFor(30), "");
  EXPECT_EQ(evaluations_.WaitingFor(0), "2 evaluations to be reported (a asked 0 s ago)");
  clock_.Advance(std::chrono::seconds(31));
  EXPECT_EQ(evaluations_.WaitingFor(30), "2 evaluations to be reported (a asked 31 s ago)");
  EXPECT_TRUE(*Report(item));
  evaluations_.Lease("b");
  clock_.Advance(std::chrono::seconds(40));
  EXPECT_EQ(evaluations_.WaitingFor(30), "1 evaluation to be reported (b asked 40 s ago, the others earlier)");
}

TEST_F(EvaluationsTest, LeasesOfAnEarlierStartOfTheLearnerAreStale) {
  evaluations_.Add(Epoch(0, 1));
  const v1::LeaseReply now = evaluations_.Lease("a");
  v1::LeaseReply before = now;
  before.set_lease((uint64_t{2} << 32) | 1);
  EXPECT_FALSE(*Report(before));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
