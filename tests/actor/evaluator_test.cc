// Tests the evaluator against a scripted learner.
#include "actor/evaluator.h"

#include <algorithm>
#include <deque>
#include <set>

#include "actor/actor_setup.h"
#include "common/config/experiment.h"
#include "datacom/v1/experiment.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_actor_task.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/snapshots.h"

namespace datacom::actor {
namespace {

using ::datacom::testing::IsOk;
using std::chrono::milliseconds;
using testing::FakeRule;
using testing::FakeSnapshot;
using testing::FakeTask;
using testing::FilteringRule;
using ::testing::HasSubstr;
using testing::JudgingRule;

std::unique_ptr<EpisodePlayer> Player(const Snapshot& snapshot, int batch = 4) {
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < batch; ++i) tasks.push_back(std::make_unique<FakeTask>());
  return std::make_unique<EpisodePlayer>(std::move(tasks), FakeRule::Make(snapshot, batch).value(), 0.9);
}

std::vector<std::string> Texts(const std::vector<v1::EvaluationEpisode>& episodes) {
  std::vector<std::string> texts;
  for (const v1::EvaluationEpisode& episode : episodes) texts.push_back(episode.SerializeAsString());
  return texts;
}

// Attempts that an invalid step cut short.
uint32_t Cut(const std::vector<v1::EvaluationEpisode>& episodes) {
  uint32_t cut = 0;
  for (const v1::EvaluationEpisode& episode : episodes) cut += episode.attempts() - (episode.abandoned() ? 0 : 1);
  return cut;
}

absl::Status Go() { return absl::OkStatus(); }

TEST(EpisodePlayer, MeasuresWhatAlgorithmsSection18Defines) {
  const EpisodePlayer::Seeds seeds = {7, 100, 3};
  const auto player = Player(*FakeSnapshot(0, 12));
  const auto episodes = player->Play(seeds, 30, Go).value();
  ASSERT_EQ(episodes.size(), 30u);
  const auto rule = FakeRule::Make(*FakeSnapshot(0, 12), 1).value();
  int absorbed = 0;
  uint32_t e = 0, attempt = 0;
  while (e < 30) {  // direct implementation of the definitions
    FakeTask task;
    RandomStream stream(attempt == 0 ? StreamKey("eval.episode", {7, 100, 3, e})
                                     : StreamKey("eval.episode.again", {7, 100, 3, e, attempt}));
    double wide[2], j = 0, total = 0, worst = 0, sum = 0;
    task.Reset(&stream, wide);
    uint32_t length = 0, violating = 0;
    bool success = false, cut = false;
    for (uint32_t t = 0; t < 40; ++t) {
      const float seen[2] = {static_cast<float>(wide[0]), static_cast<float>(wide[1])};
      float noise, action;
      FillNormal(attempt == 0 ? StreamKey("eval.noise", {7, 100, 3, e, t})
                              : StreamKey("eval.noise.again", {7, 100, 3, e, attempt, t}),
                 &noise, 1);
      rule->Act(1, {seen, &noise}, &action, {});
      const double applied = action;
      const StepResult result = task.Step(&applied, wide);
      if (!result.valid) {
        cut = true;
        break;
      }
      j += std::pow(0.9, t) * result.reward;
      total += result.reward;
      worst = std::max(worst, std::max(result.cost, 0.0));
      sum += std::max(result.cost, 0.0), violating += result.cost > 0 ? 1 : 0;
      length = t + 1;
      success = task.Success();
      if (result.absorbing) break;
    }
    if (cut) {
      ASSERT_LT(++attempt, 10u);
      continue;
    }
    absorbed += success;
    EXPECT_NEAR(episodes[e].discounted_return(), j, 1e-12);
    EXPECT_NEAR(episodes[e].return_(), total, 1e-12);
    EXPECT_EQ(episodes[e].max_violation(), worst);
    EXPECT_NEAR(episodes[e].sum_cost(), sum, 1e-12);
    EXPECT_EQ(episodes[e].violating_steps(), violating);
    EXPECT_EQ(episodes[e].length(), length);
    EXPECT_EQ(episodes[e].success(), success);
    EXPECT_EQ(episodes[e].absorbed(), success) << "the fake task ends exactly when it succeeds";
    EXPECT_EQ(episodes[e].reached(), success);
    EXPECT_EQ(episodes[e].attempts(), attempt + 1);
    EXPECT_FALSE(episodes[e].abandoned());
    ++e;
    attempt = 0;
  }
  EXPECT_GT(absorbed, 0);
  EXPECT_LT(absorbed, 30);
  EXPECT_GT(Cut(episodes), 0u);
}

// Episodes have four steps; in the first `broken` episodes the second step is invalid.
class BreaksAtFirst : public FakeTask {
 public:
  explicit BreaksAtFirst(int broken) : FakeTask(4), broken_(broken) {}
  void Reset(RandomStream* stream, double* observation) override {
    FakeTask::Reset(stream, observation);
    begun_ += 1;
    steps_ = 0;
  }
  StepResult Step(const double* action, double* observation) override {
    StepResult result = FakeTask::Step(action, observation);
    result.valid = ++steps_ != 2 || begun_ > broken_;
    return result;
  }

 private:
  const int broken_;
  int begun_ = 0, steps_ = 0;
};

TEST(EpisodePlayer, KeepsTheLargestConstraintOfTheAttemptThatCounts) {
  std::vector<std::unique_ptr<Task>> tasks;
  tasks.push_back(std::make_unique<BreaksAtFirst>(1));
  EpisodePlayer player(std::move(tasks), std::make_unique<JudgingRule>(std::deque<double>{9, 9, -3, -1, -2, -4}), 0.9);
  const auto episodes = player.Play({7, 100, 3}, 1, Go).value();
  EXPECT_EQ(episodes[0].attempts(), 2u);
  EXPECT_EQ(episodes[0].largest_constraint(), -1);
  EXPECT_EQ(episodes[0].infeasible_share(), 0);
}

TEST(EpisodePlayer, RepeatsAnEpisodeWithAnInvalidStepUpToTenTimes) {
  struct Case {
    int broken;
    std::vector<uint32_t> attempts, lengths;
    bool abandoned;  // the first
  };
  for (const Case& one :
       {Case{0, {1, 1}, {4, 4}, false}, Case{4, {5, 1}, {4, 4}, false}, Case{9, {10, 1}, {4, 4}, false},
        Case{10, {10, 1}, {1, 4}, true}, Case{12, {10, 3}, {1, 4}, true}}) {
    std::vector<std::unique_ptr<Task>> tasks;
    tasks.push_back(std::make_unique<BreaksAtFirst>(one.broken));
    EpisodePlayer player(std::move(tasks), FakeRule::Make(*FakeSnapshot(0, 0), 1).value(), 0.9);
    const auto episodes = player.Play({7, 100, 3}, 2, Go).value();
    for (int e = 0; e < 2; ++e) {
      EXPECT_EQ(episodes[e].attempts(), one.attempts[e]) << one.broken << " broken, episode " << e;
      EXPECT_EQ(episodes[e].length(), one.lengths[e]) << one.broken << " broken, episode " << e;
      EXPECT_EQ(episodes[e].abandoned(), e == 0 && one.abandoned) << one.broken << " broken, episode " << e;
    }
  }
}

TEST(EpisodePlayer, ShowsTheAttemptThatCounts) {
  const EpisodePlayer::Seeds seeds = {7, 100, 3};
  const auto player = Player(*FakeSnapshot(0, 12));
  const auto episodes = player->Play(seeds, 30, Go).value();
  int again = 0;
  for (uint32_t e = 0; e < 30; ++e) {
    again += episodes[e].attempts() > 1;
    uint32_t states = 0;
    double total = 0;
    ASSERT_THAT(player->Watch(seeds, e,
                              [&](const EpisodeState& state) {
                                EXPECT_TRUE(state.reached.valid);
                                EXPECT_EQ(state.step, states++);
                                total = state.sum_reward;
                                return absl::OkStatus();
                              }),
                IsOk());
    EXPECT_EQ(states, episodes[e].length() + 1);
    EXPECT_EQ(total, episodes[e].return_());
  }
  EXPECT_GT(again, 0);
}

// The same happens in training: the filter's action is executed and the filter sees the cost of the previous step.
TEST(EpisodePlayer, FiltersActionsByTheCostOfThePreviousStep) {
  const auto snapshot = FakeSnapshot(0, 12);
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(std::make_unique<FakeTask>());
  EpisodePlayer player(std::move(tasks), FilteringRule::Make(*snapshot, 3).value(), 0.9);
  const auto episodes = player.Play({7, 100, 3}, 8, Go).value();
  int compared = 0;
  const auto rule = FakeRule::Make(*snapshot, 1).value();
  for (uint32_t e = 0; e < 8; ++e) {
    FakeTask task;
    RandomStream stream(StreamKey("eval.episode", {7, 100, 3, e}));
    double wide[2], total = 0;
    task.Reset(&stream, wide);
    float previous = 0;
    for (uint32_t t = 0; t < 40; ++t) {
      const float seen[2] = {static_cast<float>(wide[0]), static_cast<float>(wide[1])};
      float noise, action;
      FillNormal(StreamKey("eval.noise", {7, 100, 3, e, t}), &noise, 1);
      rule->Act(1, {seen, &noise}, &action, {});
      const double applied = FilteringRule::Filtered(action, previous);
      const StepResult result = task.Step(&applied, wide);
      ASSERT_TRUE(result.valid || episodes[e].attempts() > 1);
      if (!result.valid) break;
      previous = static_cast<float>(result.cost);
      total += result.reward;
      if (result.absorbing) break;
    }
    if (episodes[e].attempts() == 1) {
      EXPECT_NEAR(episodes[e].return_(), total, 1e-12) << e;
      ++compared;
    }
  }
  EXPECT_GT(compared, 4);
}

// Succeeds at one step only.
class PassingTask : public FakeTask {
 public:
  explicit PassingTask(int at) : at_(at) {}
  void Reset(RandomStream* stream, double* observation) override {
    step_ = 0;
    FakeTask::Reset(stream, observation);
  }
  StepResult Step(const double* action, double* observation) override {
    ++step_;
    return FakeTask::Step(action, observation);
  }
  bool Success() const override { return step_ == at_; }

 private:
  const int at_;
  int step_ = 0;
};

TEST(EpisodePlayer, RecordsThatSuccessWasReachedEvenIfLostLater) {
  for (const int at : {3, 41}) {  // the second is beyond the horizon
    std::vector<std::unique_ptr<Task>> tasks;
    tasks.push_back(std::make_unique<PassingTask>(at));
    EpisodePlayer player(std::move(tasks), FakeRule::Make(*FakeSnapshot(0, 0), 1).value(), 0.9);
    const std::vector<v1::EvaluationEpisode> episodes = player.Play({7, 100, 3}, 3, Go).value();
    for (const v1::EvaluationEpisode& episode : episodes) {
      ASSERT_GT(episode.length(), 3u);
      EXPECT_EQ(episode.reached(), at == 3);
      EXPECT_FALSE(episode.success());
    }
  }
}

TEST(EpisodePlayer, AnEpisodeDoesNotDependOnHowManyArePlayed) {
  const EpisodePlayer::Seeds seeds = {7, 100, 3};
  const auto many = Texts(Player(*FakeSnapshot(0, 0))->Play(seeds, 25, Go).value());
  for (const uint32_t count : {1u, 2u, 16u}) {
    const auto few = Texts(Player(*FakeSnapshot(0, 0))->Play(seeds, count, Go).value());
    EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin())) << count;
  }
  EXPECT_EQ(std::set<std::string>(many.begin(), many.end()).size(), 25u) << "episodes must differ from each other";
  EXPECT_NE(Texts(Player(*FakeSnapshot(0, 0))->Play({8, 100, 3}, 25, Go).value()), many);
  EXPECT_NE(Texts(Player(*FakeSnapshot(0, 0))->Play({7, 101, 3}, 25, Go).value()), many);
  EXPECT_NE(Texts(Player(*FakeSnapshot(0, 0))->Play({7, 100, 4}, 25, Go).value()), many);
}

TEST(EpisodePlayer, AnEpisodeDoesNotDependOnHowManyArePlayedSideBySide) {
  const EpisodePlayer::Seeds seeds = {7, 100, 3};
  const auto alone = Texts(Player(*FakeSnapshot(0, 0), 1)->Play(seeds, 25, Go).value());
  for (const int batch : {2, 7, 25, 64}) {
    EXPECT_EQ(Texts(Player(*FakeSnapshot(0, 0), batch)->Play(seeds, 25, Go).value()), alone) << batch;
  }
}

// Uses the real task, rule and widths: a row has the same bits in a batch and by itself.
TEST(EpisodePlayer, ACartPoleEpisodeHasTheSameBitsAloneAndInABatchOfTwentyFive) {
  v1::Experiment experiment;
  experiment.set_task("cartpole");
  experiment.set_algorithm("datacom");
  experiment.mutable_task_options()->set_horizon(400);
  experiment = ResolveExperiment(experiment);
  Snapshot snapshot = testing::SafeMapSnapshot(5, 1, 4, {128, 128}, 5);
  snapshot.task = "cartpole";
  snapshot.scalars["delta"] = 3;  // far inside the safe set, where the map passes on the policy's noise
  const EpisodePlayer::Seeds seeds = {7, 100, 3};
  const auto play = [&](uint32_t batch) {
    return Texts(MakeEpisodePlayer(experiment, snapshot, batch).value()->Play(seeds, 25, Go).value());
  };
  const auto alone = play(1);
  EXPECT_EQ(play(25), alone);
  EXPECT_EQ(play(7), alone);
  EXPECT_EQ(std::set<std::string>(alone.begin(), alone.end()).size(), 25u);
}

// Answers from queues; an empty lease queue means that the run is finished.
class FakeSource : public EvaluationSource {
 public:
  std::deque<absl::StatusOr<v1::LeaseReply>> leases;
  std::deque<absl::Status> fetch_errors, report_errors;  // taken first
  std::vector<v1::ReportRequest> reports;
  bool accept = true;
  bool loses_leases = false;  // a renewal is refused
  int lease_calls = 0;

  absl::StatusOr<v1::LeaseReply> Lease() override {
    ++lease_calls;
    if (loses_leases) held_.Clear();
    if (held_.lease() != 0) return held_;
    if (leases.empty()) {
      v1::LeaseReply finished;
      finished.set_finished(true);
      return finished;
    }
    const absl::StatusOr<v1::LeaseReply> reply = leases.front();
    leases.pop_front();
    if (reply.ok()) held_ = *reply;
    return reply;
  }
  absl::StatusOr<Snapshot> Fetch(uint32_t member, uint32_t epoch) override {
    if (!fetch_errors.empty()) {
      const absl::Status error = fetch_errors.front();
      fetch_errors.pop_front();
      if (absl::IsNotFound(error)) held_.Clear();
      return error;
    }
    return *FakeSnapshot(member, epoch * 10);
  }
  absl::StatusOr<v1::ReportReply> Report(v1::ReportRequest request) override {
    if (!report_errors.empty()) {
      const absl::Status error = report_errors.front();
      report_errors.pop_front();
      return error;
    }
    reports.push_back(request);
    held_.Clear();
    v1::ReportReply reply;
    reply.set_accepted(accept);
    return reply;
  }

 private:
  v1::LeaseReply held_;
};

v1::LeaseReply Item(uint64_t lease, uint32_t member, uint32_t epoch, uint32_t episodes = 4) {
  v1::LeaseReply item;
  item.set_lease(lease);
  item.set_member(member);
  item.set_epoch(epoch);
  item.set_episodes(episodes);
  item.set_lease_seconds(30);
  item.set_experiment("the experiment");
  return item;
}

struct EvaluatorTest : ::testing::Test {
  EvaluatorTest() {
    options.clock = &clock;
    options.wait = [this](milliseconds timeout) {
      waited += timeout;
      return stop;
    };
    options.open_run = [this](const std::string& experiment) {
      EXPECT_EQ(experiment, "the experiment");
      return run;
    };
    run.seed = 7;
    run.make_player = [this](const Snapshot& snapshot, uint32_t) -> absl::StatusOr<std::unique_ptr<EpisodePlayer>> {
      clock.Advance(play_time);
      return Player(snapshot);
    };
    options.on_item = [this](const char* result, uint32_t) { results.push_back(result); };
  }
  absl::Status Run() { return Evaluator(&source, options).Run(); }

  ManualClock clock;
  FakeSource source;
  Evaluator::Options options;
  EvaluatedRun run;
  milliseconds waited{0};
  std::chrono::seconds play_time{0};
  bool stop = false;
  std::vector<std::string> results;
};

TEST_F(EvaluatorTest, ReportsEveryItemOnceAndExitsWhenTheRunIsFinished) {
  source.leases = {Item(1, 0, 0), Item(2, 1, 0), Item(3, 0, 1)};
  ASSERT_THAT(Run(), IsOk());
  ASSERT_EQ(source.reports.size(), 3u);
  EXPECT_EQ(source.reports[1].lease(), 2u);
  EXPECT_EQ(source.reports[1].member(), 1u);
  ASSERT_EQ(source.reports[2].episodes_size(), 4);
  const auto expected = Texts(Player(*FakeSnapshot(0, 10))->Play({7, 100, 1}, 4, Go).value());
  for (int e = 0; e < 4; ++e) EXPECT_EQ(source.reports[2].episodes(e).SerializeAsString(), expected[e]);
  EXPECT_EQ(results, (std::vector<std::string>{"accepted", "accepted", "accepted"}));
}

TEST_F(EvaluatorTest, ReportsHowManyEpisodesWereAbandoned) {
  struct Case {
    int broken;  // attempts in a row that fail, of ten an episode
    std::vector<uint32_t> told;
  };
  for (const Case& one : {Case{0, {}}, Case{9, {}}, Case{10, {1}}, Case{19, {1}}, Case{25, {2}}}) {
    std::vector<uint32_t> told;
    options.on_abandoned = [&told](uint32_t episodes) { told.push_back(episodes); };
    run.make_player = [&one](const Snapshot& snapshot, uint32_t) -> absl::StatusOr<std::unique_ptr<EpisodePlayer>> {
      std::vector<std::unique_ptr<Task>> tasks;
      tasks.push_back(std::make_unique<BreaksAtFirst>(one.broken));
      return std::make_unique<EpisodePlayer>(std::move(tasks), FakeRule::Make(snapshot, 1).value(), 0.9);
    };
    source.leases = {Item(1, 0, 0, 3)};
    ASSERT_THAT(Run(), IsOk());
    EXPECT_EQ(told, one.told) << one.broken << " attempts fail";
  }
}

TEST_F(EvaluatorTest, RetriesTransientErrors) {
  const absl::Status away = absl::UnavailableError("away");
  source.leases = {away, away, Item(1, 0, 0)};
  source.fetch_errors = {away, absl::DataLossError("checksum")};
  source.report_errors = {away, absl::DeadlineExceededError("slow")};
  ASSERT_THAT(Run(), IsOk());
  EXPECT_EQ(source.reports.size(), 1u);
  EXPECT_GT(waited.count(), 0);
}

TEST_F(EvaluatorTest, AsksAgainAfterTheLearnersRetryTime) {
  v1::LeaseReply nothing;
  nothing.set_retry_seconds(1.5);
  source.leases = {nothing, Item(1, 0, 0)};
  ASSERT_THAT(Run(), IsOk());
  EXPECT_EQ(waited, milliseconds(1500));
}

TEST_F(EvaluatorTest, DoesNotRetryALearnerOfAnotherRun) {
  source.leases = {absl::FailedPreconditionError("run a, not b")};
  EXPECT_THAT(Run().ToString(), HasSubstr("run a, not b"));
  EXPECT_EQ(source.lease_calls, 1);
}

TEST_F(EvaluatorTest, RenewsTheLeaseOfALongItem) {
  play_time = std::chrono::seconds(11);  // more than a third of the lease
  source.leases = {Item(1, 0, 0)};
  ASSERT_THAT(Run(), IsOk());
  EXPECT_EQ(source.lease_calls, 3);  // the item, its renewal, finished
  EXPECT_EQ(source.reports.size(), 1u);
}

TEST_F(EvaluatorTest, StopsPlayingWhenTheLeaseCannotBeRenewed) {
  play_time = std::chrono::seconds(31);
  source.loses_leases = true;
  source.leases = {Item(1, 0, 0)};
  ASSERT_THAT(Run(), IsOk());
  EXPECT_TRUE(source.reports.empty());
  EXPECT_EQ(results, (std::vector<std::string>{"stale"}));
}

TEST_F(EvaluatorTest, DropsAnItemThatAnotherEvaluatorReported) {
  source.leases = {Item(1, 0, 0)};
  source.accept = false;
  ASSERT_THAT(Run(), IsOk());
  EXPECT_EQ(results, (std::vector<std::string>{"stale"}));
}

TEST_F(EvaluatorTest, AnItemThatTheLearnerNoLongerKnowsIsNotAnError) {
  source.leases = {Item(1, 0, 5), Item(2, 0, 4)};
  source.fetch_errors = {absl::NotFoundError("epoch 5")};
  ASSERT_THAT(Run(), IsOk());
  EXPECT_EQ(results, (std::vector<std::string>{"stale", "accepted"}));
}

TEST_F(EvaluatorTest, StopsBetweenEpisodesWithoutAReport) {
  source.leases = {Item(1, 0, 0)};
  run.make_player = [this](const Snapshot& snapshot, uint32_t) -> absl::StatusOr<std::unique_ptr<EpisodePlayer>> {
    stop = true;
    return Player(snapshot);
  };
  EXPECT_TRUE(absl::IsCancelled(Run()));
  EXPECT_TRUE(source.reports.empty());
}

TEST_F(EvaluatorTest, ASnapshotThatDoesNotFitIsNamed) {
  source.leases = {Item(1, 2, 6)};
  run.make_player = [](const Snapshot&, uint32_t) -> absl::StatusOr<std::unique_ptr<EpisodePlayer>> {
    return absl::FailedPreconditionError("array w has shape [3], not [2]");
  };
  const absl::Status status = Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.ToString(), HasSubstr("member 2 epoch 6"));
  EXPECT_THAT(status.ToString(), HasSubstr("[3], not [2]"));
}

}  // namespace
}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
