// Tests the acting loop against a replay and a learner that answer during its waits.
#include "actor/rollout.h"

#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actor/rollout_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"

namespace datacom::actor {
namespace {

using ::datacom::testing::IsOk;
using testing::Actor;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeSnapshot;
using testing::FakeTask;
using testing::FilteringRule;
using testing::FirstLength;
using ::testing::HasSubstr;
using testing::Lockstep;
using testing::OpenAfter;
using testing::ReceivedRow;
using testing::RememberingRule;
using testing::SteadyTask;

TEST(Rollout, ProducesExactlyTheRowsThatWereGranted) {
  Actor actor(1, 16);
  ASSERT_THAT(actor.RunFor(1003), IsOk());
  EXPECT_EQ(actor.session.rows.size(), 1003u);
  EXPECT_EQ(actor.series.rows.Value(), 1003);
}

TEST(Rollout, RowsOfAnEnvironmentAreInOrderAndHaveTheirIdentity) {
  Actor actor(1, 4);
  actor.subscriber.latest[0] = FakeSnapshot(0, 9, 2);
  ASSERT_THAT(actor.RunFor(3000), IsOk());
  struct Expected {
    uint32_t episode = 0, step = 0;
    std::vector<float> observation;
  };
  std::vector<Expected> next(4);
  int time_limits = 0, absorbed = 0, abandoned = 0;
  for (const ReceivedRow& row : actor.session.rows) {
    ASSERT_LT(row.environment, 4u);
    EXPECT_EQ(row.policy_incarnation, 2u);
    EXPECT_EQ(row.policy_update, 9u);
    Expected& expected = next[row.environment];
    if (row.episode != expected.episode) {  // abandoned: the simulator called its next step invalid
      EXPECT_GT(row.episode, expected.episode);
      abandoned += static_cast<int>(row.episode - expected.episode);
      expected = {row.episode, 0, {}};
    }
    ASSERT_EQ(row.step, expected.step);
    if (row.step > 0) {
      ASSERT_EQ(row.observation, expected.observation);
    }
    EXPECT_EQ(row.absorbing, row.next_observation[0] > 1);
    const uint32_t length = row.episode == 0 ? FirstLength(row.environment, 40) : 40;
    EXPECT_EQ(row.last, row.absorbing || row.step + 1 == length);
    EXPECT_GT(row.next_observation[0], -1);
    time_limits += row.last && !row.absorbing;
    absorbed += row.absorbing;
    expected = row.last ? Expected{row.episode + 1, 0, {}} : Expected{row.episode, row.step + 1, row.next_observation};
  }
  EXPECT_GT(time_limits, 0);
  EXPECT_GT(absorbed, 0);
  EXPECT_GT(abandoned, 0);
  EXPECT_EQ(actor.series.episodes.Value(), time_limits + absorbed);
  EXPECT_GE(actor.series.abandoned_invalid.Value(), abandoned);
}

TEST(Rollout, ActsOnTheObservationRoundedToFloat32) {
  Actor actor(1, 1);
  ASSERT_THAT(actor.RunFor(500), IsOk());
  const EnvironmentBatch::Seeds seeds = {7, 100, 3};
  FakeTask task;
  for (const ReceivedRow& row : actor.session.rows) {
    double wide[2];
    if (row.step == 0) {
      RandomStream stream(StreamKey("actor.episode", {seeds.run, seeds.member, seeds.session, 0, row.episode}));
      task.Reset(&stream, wide);
      EXPECT_EQ(row.observation[0], static_cast<float>(wide[0]));
    }
    float noise = 0;
    FillNormal(StreamKey("actor.noise", {seeds.run, seeds.member, seeds.session, 0, row.episode, row.step}), &noise, 1);
    EXPECT_EQ(row.action[0], std::tanh(-0.5f * row.observation[0] + 0.25f * row.observation[1] + 3 * noise));
    const double action = row.action[0];
    const StepResult result = task.Step(&action, wide);
    EXPECT_EQ(row.next_observation[0], static_cast<float>(wide[0]));
    EXPECT_EQ(row.next_observation[1], static_cast<float>(wide[1]));
    EXPECT_EQ(row.reward, static_cast<float>(result.reward));
    EXPECT_EQ(row.cost, static_cast<float>(result.cost));
  }
}

TEST(Rollout, EnvironmentsTakeTurnsWhenCreditIsShort) {
  Actor actor(1, 4);
  actor.subscriber.latest[0] = FakeSnapshot(0, 0);
  actor.on_wait = [&] {
    if (actor.session.rows.size() >= 120) {
      actor.session.run_finished = true;
    } else {
      actor.session.limit[0] += 3;
    }
  };
  ASSERT_THAT(actor.Run(), IsOk());
  std::map<uint32_t, int> steps;
  for (const ReceivedRow& row : actor.session.rows) ++steps[row.environment];
  ASSERT_EQ(steps.size(), 4u);
  for (const auto& [environment, count] : steps) EXPECT_NEAR(count, 30, 2) << environment;
}

TEST(Rollout, AppendsAllRowsBeforeItWaits) {
  Actor actor(2, 8);
  for (uint32_t m : {0u, 1u}) actor.subscriber.latest[m] = FakeSnapshot(m, 0);
  uint64_t granted = 0;
  actor.on_wait = [&] {
    EXPECT_EQ(actor.session.rows.size(), 2 * granted) << "granted rows must be appended before a wait";
    granted += 1 + granted % 5;
    for (uint32_t m : {0u, 1u}) actor.session.limit[m] = granted;
    actor.session.run_finished = granted > 200;
  };
  EXPECT_THAT(actor.Run(), IsOk());
}

TEST(Rollout, SendsTheRowsOfAllMembersTogether) {
  Actor actor(3, 3);
  for (uint32_t m : {0u, 1u, 2u}) actor.subscriber.latest[m] = FakeSnapshot(m, 0);
  actor.on_wait = [&] {
    for (uint32_t m : {0u, 1u, 2u}) ++actor.session.limit[m];
    actor.session.run_finished = actor.session.rows.size() == 12;
  };
  ASSERT_THAT(actor.Run(), IsOk());
  EXPECT_THAT(actor.session.chunk_rows, Each(1));
  EXPECT_THAT(actor.session.sent, ElementsAre(3, 6, 9, 12));
}

TEST(Rollout, AppendsTheRowsOfABlockedMemberWhileAnotherContinues) {
  for (const bool credit : {true, false}) {
    Actor actor(2, 8);
    for (uint32_t m : {0u, 1u}) actor.subscriber.latest[m] = FakeSnapshot(m, 0);
    actor.session.limit = {{0, credit ? 3 : 500}, {1, 1000}};
    int iterations = 0;
    actor.options.stop = [&] {
      if (++iterations == 2 && !credit) actor.session.min_policy_update[0] = 1;
      return false;
    };
    const uint64_t owed = credit ? 3 : 4;  // rows of the first iteration
    actor.on_wait = [&] {
      EXPECT_EQ(actor.session.produced(1), 1000u);
      actor.session.run_finished = true;
    };
    ASSERT_THAT(actor.Run(), IsOk());
    ASSERT_EQ(actor.session.rows.size(), owed + 1000);
    for (uint64_t row = 0; row < owed; ++row) EXPECT_EQ(actor.session.rows[row].member, 0u) << "credit " << credit;
  }
}

// Sixteen environments that stayed in step would start all their episodes under the same policies.
TEST(Rollout, EnvironmentsStartLaterEpisodesUnderDifferentPolicies) {
  static constexpr uint32_t kHorizon = 200, kEnvironments = 16;
  Actor actor(1, kEnvironments);
  actor.parts.make_task = []() -> absl::StatusOr<std::unique_ptr<Task>> {
    return std::make_unique<SteadyTask>(kHorizon);
  };
  actor.on_wait = [&] {
    actor.session.limit[0] = actor.session.rows.size() + kEnvironments;
    actor.subscriber.latest[0] = FakeSnapshot(0, actor.session.rows.size());
    actor.session.run_finished = actor.session.rows.size() >= 15 * kHorizon * kEnvironments;
  };
  ASSERT_THAT(actor.Run(), IsOk());
  std::vector<uint64_t> starts;
  std::map<uint32_t, uint32_t> first_lengths;
  for (const ReceivedRow& row : actor.session.rows) {
    if (row.step == 0) starts.push_back(row.policy_update);
    if (row.last) {
      EXPECT_FALSE(row.absorbing);
      if (row.episode == 0) {
        first_lengths[row.environment] = row.step + 1;
      } else {
        EXPECT_EQ(row.step + 1, kHorizon);
      }
    }
  }
  ASSERT_EQ(first_lengths.size(), kEnvironments);
  for (const auto& [environment, length] : first_lengths) EXPECT_EQ(length, FirstLength(environment, kHorizon));
  ASSERT_GE(starts.size(), 200u);
  EXPECT_GE((std::set<uint64_t>(starts.end() - 200, starts.end()).size()), 150u);
}

TEST(Rollout, ANewSessionDrawsNewFirstEpisodeLengths) {
  EXPECT_NE(FirstLength(0, 1000, 3), FirstLength(0, 1000, 4));
  for (const uint32_t session : {3u, 4u}) {
    EnvironmentBatch batch([] { return std::make_unique<SteadyTask>(1000); }, {7, 100, session});
    ASSERT_THAT(batch.SetWanted(1), IsOk());
    RowChunk chunk(RowSchema::For(2, 1), 1000);
    const float action = 0;
    ActedBatch acted;
    acted.actions = acted.executed = &action;
    while (batch.Step(0, acted, 0, &chunk) == EnvironmentBatch::Outcome::kContinues) {
    }
    EXPECT_EQ(chunk.rows(), FirstLength(0, 1000, session));
  }
}

TEST(Rollout, ChunksAreNeitherLargeNorTiny) {
  Actor actor(1, 16);
  ASSERT_THAT(actor.RunFor(6400), IsOk());
  for (const uint32_t rows : actor.session.chunk_rows) EXPECT_LE(rows, 64u);
  EXPECT_LT(actor.session.chunk_rows.size(), 6400u / 40);
}

TEST(Rollout, WaitsForASnapshotThatIsFreshEnough) {
  Actor actor(1, 4);
  actor.session.limit[0] = 10;
  actor.session.min_policy_update[0] = 5;
  int published = 0;
  actor.on_wait = [&] {
    if (published == 3) {
      actor.session.run_finished = true;
      return;
    }
    EXPECT_TRUE(actor.session.rows.empty());
    actor.subscriber.latest[0] = FakeSnapshot(0, 3 + published++);
  };
  ASSERT_THAT(actor.Run(), IsOk());
  EXPECT_EQ(published, 3);  // none, 3 and 4 were too old
  ASSERT_EQ(actor.session.rows.size(), 10u);
  for (const ReceivedRow& row : actor.session.rows) EXPECT_EQ(row.policy_update, 5u);
}

TEST(Rollout, ActsWithTheNewestSnapshotAndRecordsItInTheRows) {
  Actor actor(1, 1);
  actor.subscriber.latest[0] = FakeSnapshot(0, 0);
  actor.on_wait = [&] {
    const uint64_t rows = actor.session.rows.size();
    actor.session.limit[0] = rows + 1;
    actor.subscriber.latest[0] = FakeSnapshot(0, rows);
    actor.session.run_finished = rows == 20;
  };
  ASSERT_THAT(actor.Run(), IsOk());
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(actor.session.rows[i].policy_update, i);
}

TEST(Rollout, ASnapshotOfAnotherShapeIsNamedAndNotUsed) {
  Actor actor(1, 1);
  actor.subscriber.latest[0] = FakeSnapshot(0, 0);
  actor.session.limit[0] = 5;
  actor.on_wait = [&] {
    auto wrong = std::make_shared<Snapshot>(*FakeSnapshot(0, 17));
    wrong->arrays[0] = {"w", {3}, {1, 2, 3}};
    actor.subscriber.latest[0] = wrong;
    actor.session.limit[0] = 10;
  };
  const absl::Status status = actor.Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.ToString(), HasSubstr("member 0 at update 17"));
  EXPECT_THAT(status.ToString(), HasSubstr("array w"));
  EXPECT_EQ(actor.session.rows.size(), 5u);
}

TEST(Rollout, AnEndedSessionLeadsToANewRegistration) {
  Actor actor(1, 4);
  actor.subscriber.latest[0] = FakeSnapshot(0, 0);
  actor.session.limit[0] = 8;
  actor.on_wait = [&] { actor.session.state = absl::NotFoundError("session 3 ended"); };
  EXPECT_TRUE(absl::IsNotFound(actor.Run()));
}

TEST(Rollout, ARefusalByTheLearnerEndsTheRun) {
  Actor actor(1, 4);
  actor.on_wait = [&] { actor.subscriber.state = absl::FailedPreconditionError("run a, not b"); };
  actor.session.limit[0] = 8;
  EXPECT_THAT(actor.Run().ToString(), HasSubstr("run a, not b"));
}

TEST(Rollout, StoppingHandsOverEveryRow) {
  Actor actor(1, 4);
  actor.subscriber.latest[0] = FakeSnapshot(0, 0);
  actor.session.limit[0] = 1000;
  int polls = 0;
  actor.options.stop = [&] { return ++polls > 10; };
  EXPECT_TRUE(absl::IsCancelled(actor.Run()));
  EXPECT_EQ(actor.session.rows.size(), actor.series.rows.Value());
  EXPECT_GE(actor.session.rows.size(), 30u);
}

TEST(Rollout, SplitsEnvironmentsAmongMembersWithAtLeastOneEach) {
  Actor many(4, 16);
  ASSERT_THAT(many.RunFor(400), IsOk());
  std::map<uint32_t, std::set<uint32_t>> environments;
  for (const ReceivedRow& row : many.session.rows) environments[row.member].insert(row.environment);
  ASSERT_EQ(environments.size(), 4u);
  for (const auto& [member, seen] : environments) EXPECT_EQ(seen, (std::set<uint32_t>{0, 1, 2, 3})) << member;

  Actor few(3, 2, false, {}, 5);
  ASSERT_THAT(few.RunFor(10), IsOk());
  EXPECT_EQ(few.session.rows.size(), 30u);
  for (const ReceivedRow& row : few.session.rows) EXPECT_EQ(row.environment, 0u);
}

TEST(Rollout, CountsWaitsByReasonAndReportsReadiness) {
  Actor actor(1, 2);
  ManualClock clock;
  actor.options.clock = &clock;
  bool ready = false;
  actor.options.on_ready = [&] { ready = true; };
  actor.session.limit[0] = 4;
  int waits = 0;
  actor.on_wait = [&] {
    if (++waits <= 2) {  // waits for the snapshot, which comes at the second wait, then for credit
      EXPECT_FALSE(ready);
      clock.Advance(std::chrono::seconds(6));
      if (waits == 2) actor.subscriber.latest[0] = FakeSnapshot(0, 0);
    } else {
      clock.Advance(std::chrono::seconds(3));
      actor.session.run_finished = true;
    }
  };
  ASSERT_THAT(actor.Run(), IsOk());
  EXPECT_TRUE(ready);
  EXPECT_DOUBLE_EQ(actor.series.wait_snapshot.Value(), 12);
  EXPECT_DOUBLE_EQ(actor.series.wait_credit.Value(), 3);
}

TEST(Rollout, LockstepContinuesBitIdenticallyAfterAStopAtAnyRow) {
  Actor straight(1, 16, /*lockstep=*/true);
  const std::vector<ReceivedRow> rows = Lockstep(&straight, 0, 1500);
  ASSERT_EQ(rows.size(), 1500u);
  int boundaries = 0;
  for (size_t stopped = 1; stopped < 1440; stopped += stopped < 300 ? 1 : 7) {
    const v1::OpenEpisode open = OpenAfter(rows, stopped);
    boundaries += open.steps() == 0;
    Actor again(1, 16, /*lockstep=*/true, {open});
    const std::vector<ReceivedRow> more = Lockstep(&again, stopped, 60);  // longer than an episode
    ASSERT_EQ(more.size(), 60u);
    for (size_t i = 0; i < more.size(); ++i)
      ASSERT_EQ(more[i], rows[stopped + i]) << "stopped after " << stopped << ", row " << i;
  }
  EXPECT_GT(boundaries, 3);
}

TEST(Rollout, StoresChosenAndFilteredActionAndRepeatsTheFilteredOne) {
  const RowSchema schema = RowSchema::For(2, 1, FilteringRule::Columns());
  Actor straight(1, 1, /*lockstep=*/true, {}, 0, schema);
  straight.parts.make_rule = FilteringRule::Make;
  const std::vector<ReceivedRow> rows = Lockstep(&straight, 0, 300);
  ASSERT_EQ(rows.size(), 300u);
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].previous_cost, rows[i].step == 0 ? 0 : rows[i - 1].cost) << "raw, and 0 after a reset";
    EXPECT_EQ(rows[i].executed[0], FilteringRule::Filtered(rows[i].action[0], rows[i].previous_cost));
    // The fake task: velocity' = 0.9 velocity + 0.1 (a + 0.02).
    const double velocity = 0.9 * rows[i].observation[1] + 0.1 * (rows[i].executed[0] + 0.02);
    EXPECT_NEAR(rows[i].next_observation[1], velocity, 1e-6);
  }
  for (const size_t stopped : {5, 57, 131}) {
    Actor again(1, 1, /*lockstep=*/true, {OpenAfter(rows, stopped)}, 0, schema);
    again.parts.make_rule = FilteringRule::Make;
    const std::vector<ReceivedRow> more = Lockstep(&again, stopped, 60);
    ASSERT_EQ(more.size(), 60u);
    for (size_t i = 0; i < more.size(); ++i) ASSERT_EQ(more[i], rows[stopped + i]) << stopped << ", row " << i;
  }
}

TEST(Rollout, KeepsTheMemoryOfAnEpisodeAndContinuesWithIt) {
  const RowSchema schema = RowSchema::For(2, 1, RememberingRule::Columns());
  Actor straight(1, 1, /*lockstep=*/true, {}, 0, schema);
  straight.parts.make_rule = RememberingRule::Make;
  const std::vector<ReceivedRow> rows = Lockstep(&straight, 0, 300);
  ASSERT_EQ(rows.size(), 300u);
  for (size_t i = 0; i < rows.size(); ++i) {
    const float before = rows[i].step == 0 ? 0 : rows[i - 1].memory[0];
    EXPECT_EQ(rows[i].memory[1], before) << "0 at the start of an episode";
    EXPECT_EQ(rows[i].memory[0], 0.9f * before + rows[i].action[0]);
  }
  for (const size_t stopped : {5, 57, 131}) {
    Actor again(1, 1, /*lockstep=*/true, {OpenAfter(rows, stopped)}, 0, schema);
    again.parts.make_rule = RememberingRule::Make;
    const std::vector<ReceivedRow> more = Lockstep(&again, stopped, 60);
    ASSERT_EQ(more.size(), 60u);
    for (size_t i = 0; i < more.size(); ++i) ASSERT_EQ(more[i], rows[stopped + i]) << stopped << ", row " << i;
  }
}

TEST(Rollout, EveryEnvironmentHasAMemoryOfItsOwn) {
  const RowSchema schema = RowSchema::For(2, 1, RememberingRule::Columns());
  Actor actor(2, 6, false, {}, 0, schema);
  actor.parts.make_rule = RememberingRule::Make;
  ASSERT_THAT(actor.RunFor(200), IsOk());
  std::map<std::pair<uint32_t, uint32_t>, float> kept;
  for (const ReceivedRow& row : actor.session.rows) {
    float& memory = kept[{row.member, row.environment}];
    EXPECT_EQ(row.memory[1], row.step == 0 ? 0 : memory);
    memory = row.memory[0];
  }
  EXPECT_EQ(kept.size(), 6u);
}

TEST(Rollout, MeasuresTheFiltersChangeInOneIterationOf64) {
  Actor filtered(1, 4, false, {}, 0, RowSchema::For(2, 1, FilteringRule::Columns()));
  filtered.parts.make_rule = FilteringRule::Make;
  ASSERT_THAT(filtered.RunFor(4 * 64 * 3 - 40), IsOk());  // abandoned steps leave no row
  const prometheus::ClientMetric::Histogram measured = filtered.series.intervention.Collect().histogram;
  EXPECT_EQ(measured.sample_count, 4u * 3);
  EXPECT_GT(measured.sample_sum, 0);
  EXPECT_LE(measured.sample_sum, 1.5 * measured.sample_count);  // 1.5 |tanh|
}

// What a task in another process has to tell apart: prepared actions, and when its first step comes.
class OtherProcess : public SteadyTask {
 public:
  struct Record {
    int prepared = 0, most = 0;
    bool fails = false;
  };
  explicit OtherProcess(Record* record) : record_(record) {}
  void Prepare(const double* action) override {
    action_ = action[0];
    record_->most = std::max(record_->most, ++record_->prepared);
  }
  StepResult Step(const double* action, double* observation) override {
    EXPECT_EQ(action[0], action_);
    record_->prepared = 0;
    StepResult result = SteadyTask::Step(action, observation);
    result.truncated = observation[0] > 0.25;
    result.valid = !record_->fails;
    return result;
  }
  absl::Status status() const override {
    return record_->fails ? absl::InternalError("the other process is gone") : absl::OkStatus();
  }

 private:
  Record* const record_;
  double action_ = 0;
};

TEST(Rollout, PreparesAllEnvironmentsBeforeItStepsTheFirst) {
  OtherProcess::Record record;
  Actor actor(1, 5);
  actor.parts.make_task = [&record] { return std::make_unique<OtherProcess>(&record); };
  ASSERT_THAT(actor.RunFor(1000), IsOk());
  EXPECT_EQ(record.most, 5);
}

TEST(Rollout, ATruncatedStepIsTheLastAndNotAbsorbing) {
  OtherProcess::Record record;
  Actor actor(1, 2);
  actor.parts.make_task = [&record] { return std::make_unique<OtherProcess>(&record); };
  ASSERT_THAT(actor.RunFor(2000), IsOk());
  int truncated = 0;
  for (const ReceivedRow& row : actor.session.rows) {
    EXPECT_FALSE(row.absorbing);
    if (row.next_observation[0] <= 0.25f) continue;
    EXPECT_TRUE(row.last);
    ++truncated;
  }
  EXPECT_GT(truncated, 10);
}

TEST(Rollout, ATaskThatCannotGoOnEndsTheRunWithItsStatus) {
  OtherProcess::Record record;
  Actor actor(1, 2);
  actor.parts.make_task = [&record] { return std::make_unique<OtherProcess>(&record); };
  record.fails = true;
  EXPECT_EQ(actor.RunFor(2000), absl::InternalError("the other process is gone"));
}

TEST(Rollout, RefusesAnOpenEpisodeThatCannotBeRepeated) {
  v1::OpenEpisode open;
  open.set_steps(2);
  open.set_actions("abcd");
  EXPECT_THAT(Actor(1, 1, true, {open}).Run().ToString(), HasSubstr("4 bytes of actions, not 8"));
  open.set_steps(45);
  open.set_actions(std::string(45 * 4, '\0'));
  EXPECT_THAT(Actor(1, 1, true, {open}).Run().ToString(),
              HasSubstr("its replay ends at step " + std::to_string(FirstLength(0, 40))));
  open.set_environment(3);
  EXPECT_THAT(Actor(1, 1, true, {open}).Run().ToString(), HasSubstr("environment 3"));
}

}  // namespace
}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
