#include "common/tasks/randomised_task.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::ElementsAre;

// Records its calls; the observation is [start, step] without noise, the cost is the step.
class RecordingTask : public Task {
 public:
  RecordingTask() {
    spec_.name = "recording";
    spec_.obs_dim = 2;
    spec_.action_dim = 2;
  }
  const TaskSpec& spec() const override { return spec_; }
  void Reset(RandomStream* stream, double* observation) override {
    start = stream->Uniform();
    step = 0;
    scale = told;
    actions.clear();
    Observe(observation);
  }
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override {
    if (init.count("start") != init.size()) return absl::InvalidArgumentError("no such key");
    Reset(stream, observation);
    if (!init.empty()) start = init.at("start");
    Observe(observation);
    return absl::OkStatus();
  }
  StepResult Step(const double* action, double* observation) override {
    actions.emplace_back(action, action + 2);
    ++step;
    Observe(observation);
    return {-static_cast<double>(step), Cost(), false, true};
  }
  double Cost() const override { return step; }
  bool Success() const override { return step > 3; }
  void ScalePhysics(const PhysicsScale& scale) override { told = scale; }
  const Simulation* simulation() const override { return nullptr; }

  PhysicsScale told, scale;
  std::vector<std::vector<double>> actions;
  double start = 0;
  int step = 0;

 private:
  void Observe(double* observation) const {
    observation[0] = start;
    observation[1] = step;
  }
  TaskSpec spec_;
};

v1::Randomisation Ranges(const std::string& text) {
  v1::Randomisation ranges;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &ranges)) << text;
  return ranges;
}

struct Randomised {
  explicit Randomised(const std::string& ranges) {
    auto owned = std::make_unique<RecordingTask>();
    inner = owned.get();
    task = std::make_unique<RandomisedTask>(std::move(owned), Ranges(ranges));
  }
  void Reset(uint64_t episode) {
    RandomStream stream(StreamKey("test.episode", {episode}));
    task->Reset(&stream, observation);
  }
  // Commands (1, -1), (2, -2), ...; returns the first entries of the actions that the task executed.
  std::vector<double> Executed(int steps) {
    for (int i = 1; i <= steps; ++i) {
      const double action[] = {static_cast<double>(i), -static_cast<double>(i)};
      task->Step(action, observation);
    }
    std::vector<double> first;
    for (const auto& action : inner->actions) {
      EXPECT_EQ(action[1], -action[0]);
      first.push_back(action[0]);
    }
    return first;
  }
  RecordingTask* inner;
  std::unique_ptr<RandomisedTask> task;
  double observation[2] = {};
};

TEST(RandomisedTask, DrawsPhysicsWithinTheirRangesAtEveryReset) {
  Randomised drawn("mass { low: 0.8 high: 1.2 } damping { low: 0 high: 3 } friction { low: 0.5 high: 0.5 }");
  std::set<double> masses;
  double lowest = 3, highest = 0;
  for (uint64_t episode = 0; episode < 200; ++episode) {
    drawn.Reset(episode);
    masses.insert(drawn.inner->scale.mass);
    lowest = testing::SmallerOrNan(drawn.inner->scale.damping, lowest);
    highest = testing::LargerOrNan(drawn.inner->scale.damping, highest);
    EXPECT_EQ(drawn.inner->scale.friction, 0.5);
  }
  EXPECT_EQ(masses.size(), 200u);
  EXPECT_GE(*masses.begin(), 0.8);
  EXPECT_LT(*masses.rbegin(), 1.2);
  EXPECT_GE(lowest, 0);
  EXPECT_LT(lowest, 0.1) << "of 200 draws from [0, 3)";
  EXPECT_GT(highest, 2.9);
  EXPECT_LT(highest, 3);
}

TEST(RandomisedTask, DependsOnlyOnTheEpisodesStreamAndTheActions) {
  const char* const all =
      "mass { low: 0.8 high: 1.2 } action_delay { low: 0 high: 5 } observation_noise { low: 0.1 high: 0.2 }";
  Randomised one(all), two(all);
  two.Reset(77);
  two.Executed(13);
  for (uint64_t episode = 0; episode < 20; ++episode) {
    one.Reset(episode);
    two.Reset(episode);
    for (int i = 0; i < 7; ++i) {
      EXPECT_THAT(two.observation, ElementsAre(one.observation[0], one.observation[1]));
      EXPECT_EQ(two.Executed(1), one.Executed(1));
    }
    EXPECT_EQ(two.inner->scale.mass, one.inner->scale.mass);
  }
}

// Turning one on or off changes neither the draws of the others nor the task's start.
TEST(RandomisedTask, EveryQuantityHasItsOwnStream) {
  const std::vector<std::string> parts = {"mass { low: 0.8 high: 1.2 }", "damping { low: 0 high: 3 }",
                                          "friction { low: 0.1 high: 2 }", "action_delay { low: 0 high: 9 }",
                                          "observation_noise { low: 0.1 high: 0.2 }"};
  // Mass, damping, friction, delay, true start, noise of the reset.
  const auto draws = [](const std::string& ranges, uint64_t episode) {
    Randomised drawn(ranges);
    drawn.Reset(episode);
    const double noise = drawn.observation[0] - drawn.inner->start;
    const std::vector<double> executed = drawn.Executed(10);
    const double delay = static_cast<double>(std::count(executed.begin(), executed.end(), 0));
    return std::vector<double>{
        drawn.inner->scale.mass, drawn.inner->scale.damping, drawn.inner->scale.friction, delay, noise,
        drawn.inner->start};
  };
  std::string all;
  for (const std::string& part : parts) all += part + " ";
  bool delays_differ = false;
  for (uint64_t episode = 0; episode < 10; ++episode) {
    const std::vector<double> together = draws(all, episode), none = draws("", episode);
    EXPECT_EQ(none, (std::vector<double>{1, 1, 1, 0, 0, together[5]}));
    delays_differ |= together[3] != draws(all, 0)[3];
    for (size_t i = 0; i < parts.size(); ++i) {
      std::vector<double> expected = none;
      expected[i] = together[i];
      EXPECT_EQ(draws(parts[i], episode), expected) << parts[i];
    }
    const std::set<double> distinct(together.begin(), together.begin() + 3);
    EXPECT_EQ(distinct.size(), 3u);
  }
  EXPECT_TRUE(delays_differ);
}

TEST(RandomisedTask, DelaysActionsByWholeStepsOfZeros) {
  EXPECT_THAT(Randomised("").Executed(3), ElementsAre(1, 2, 3));
  Randomised three("action_delay { low: 3 high: 3 }");
  three.Reset(0);
  EXPECT_THAT(three.Executed(8), ElementsAre(0, 0, 0, 1, 2, 3, 4, 5));
  three.Reset(1);
  EXPECT_THAT(three.Executed(4), ElementsAre(0, 0, 0, 1)) << "no action is left from the previous episode";
  std::set<size_t> delays;
  Randomised some("action_delay { low: 0.5 high: 3 }");
  for (uint64_t episode = 0; episode < 100; ++episode) {
    some.Reset(episode);
    const std::vector<double> executed = some.Executed(5);
    const size_t delay = static_cast<size_t>(std::count(executed.begin(), executed.end(), 0));
    delays.insert(delay);
    for (size_t i = delay; i < 5; ++i) EXPECT_EQ(executed[i], static_cast<double>(i - delay + 1));
  }
  EXPECT_THAT(delays, ElementsAre(0, 1, 2)) << "rounded down";
}

TEST(RandomisedTask, NoiseChangesOnlyTheObservationAndHasTheDrawnDeviation) {
  Randomised noisy("observation_noise { low: 0.3 high: 0.3 }");
  noisy.Reset(4);
  EXPECT_NE(noisy.observation[0], noisy.inner->start) << "the start is observed with noise too";
  double sum = 0, squares = 0;
  constexpr int kSteps = 20000;
  const double action[] = {0, 0};
  for (int i = 0; i < kSteps; ++i) {
    const StepResult result = noisy.task->Step(action, noisy.observation);
    EXPECT_EQ(result.reward, -noisy.inner->step);
    EXPECT_EQ(result.cost, noisy.inner->step);
    EXPECT_EQ(noisy.task->Cost(), noisy.inner->step);
    for (const double error : {noisy.observation[0] - noisy.inner->start, noisy.observation[1] - noisy.inner->step}) {
      sum += error;
      squares += error * error;
    }
  }
  // 40,000 draws: the mean is within 5 standard errors (0.0015), the deviation within 5 of its standard errors
  // (0.0011).
  EXPECT_NEAR(sum / (2 * kSteps), 0, 0.0075);
  EXPECT_NEAR(std::sqrt(squares / (2 * kSteps)), 0.3, 0.0055);
}

TEST(RandomisedTask, ASetStartIsObservedWithTheSameNoise) {
  Randomised noisy("mass { low: 0.8 high: 1.2 } observation_noise { low: 0.3 high: 0.4 }");
  noisy.Reset(5);
  const double mass = noisy.inner->scale.mass, error = noisy.observation[0] - noisy.inner->start;
  RandomStream stream(StreamKey("test.episode", {5}));
  ASSERT_THAT(noisy.task->ResetTo({{"start", 0.25}}, &stream, noisy.observation), IsOk());
  EXPECT_EQ(noisy.inner->start, 0.25);
  EXPECT_EQ(noisy.inner->scale.mass, mass);
  EXPECT_NEAR(noisy.observation[0] - 0.25, error, 1e-15);
  EXPECT_FALSE(noisy.task->ResetTo({{"end", 0.25}}, &stream, noisy.observation).ok());
}

TEST(RandomisedTask, MultipliesAGivenScale) {
  Randomised drawn("mass { low: 2 high: 2 }");
  drawn.task->ScalePhysics({3, 5, 7});
  drawn.Reset(0);
  EXPECT_EQ(drawn.inner->scale.mass, 6);
  EXPECT_EQ(drawn.inner->scale.damping, 5);
  EXPECT_EQ(drawn.inner->scale.friction, 7);
}

TEST(MakeTask, RandomisesOnlyWhenTheOptionIsSet) {
  v1::TaskOptions options;
  EXPECT_EQ(dynamic_cast<RandomisedTask*>(MakeTask("cartpole", options)->get()), nullptr);
  options.mutable_randomisation();
  EXPECT_NE(dynamic_cast<RandomisedTask*>(MakeTask("cartpole", options)->get()), nullptr);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
