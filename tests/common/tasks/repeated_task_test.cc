// Tests action repeat: how a decision combines its control steps.
#include "common/tasks/repeated_task.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::ElementsAre;

// Plays back the given results, one per step; the observation is the number of steps.
class PlaybackTask : public Task {
 public:
  explicit PlaybackTask(std::vector<StepResult> steps, int horizon = 100) : steps_(std::move(steps)) {
    spec_.obs_dim = spec_.action_dim = 1;
    spec_.horizon = horizon;
    spec_.control_dt = 0.5;
  }
  const TaskSpec& spec() const override { return spec_; }
  void Reset(RandomStream*, double* observation) override {
    taken = 0;
    observation[0] = 0;
  }
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override {
    if (!init.empty()) return absl::InvalidArgumentError("no such key");
    Reset(stream, observation);
    return absl::OkStatus();
  }
  StepResult Step(const double* action, double* observation) override {
    actions.push_back(action[0]);
    observation[0] = ++taken;
    return steps_[(taken - 1) % steps_.size()];
  }
  double Cost() const override { return taken == 0 ? -7 : steps_[(taken - 1) % steps_.size()].cost; }
  bool Success() const override { return taken >= 2; }
  void ScalePhysics(const PhysicsScale& scale) override { mass = scale.mass; }
  const Simulation* simulation() const override { return nullptr; }

  int taken = 0;
  double mass = 1;
  std::vector<double> actions;

 private:
  const std::vector<StepResult> steps_;
  TaskSpec spec_;
};

struct Played {
  explicit Played(std::vector<StepResult> steps, int repeat, int horizon = 100) {
    auto owned = std::make_unique<PlaybackTask>(std::move(steps), horizon);
    inner = owned.get();
    task = std::make_unique<RepeatedTask>(std::move(owned), repeat);
    task->Reset(nullptr, &observation);
  }
  StepResult Decide(double action) { return task->Step(&action, &observation); }
  PlaybackTask* inner;
  std::unique_ptr<Task> task;
  double observation = -1;
};

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(RepeatedTask, AddsRewardsAndKeepsTheLargestCostOfItsStepsUnderOneAction) {
  Played played({{1, -3, false, true}, {20, 5, false, true}, {300, -4, false, true}}, 3);
  EXPECT_EQ(played.task->Cost(), -7) << "the cost of the start";
  const StepResult decision = played.Decide(0.25);
  EXPECT_EQ(decision.reward, 321);
  EXPECT_EQ(decision.cost, 5);
  EXPECT_EQ(played.task->Cost(), 5) << "the cost of the decision, not of the reached state";
  EXPECT_FALSE(decision.absorbing);
  EXPECT_TRUE(decision.valid);
  EXPECT_EQ(played.observation, 3);
  EXPECT_THAT(played.inner->actions, ElementsAre(0.25, 0.25, 0.25));
  EXPECT_TRUE(played.task->Success());
  EXPECT_EQ(played.Decide(0.5).cost, 5);
  played.task->Reset(nullptr, &played.observation);
  EXPECT_EQ(played.task->Cost(), -7);
}

TEST(RepeatedTask, AnAbsorbingOrInvalidStepOrANaNCostEndsTheDecision) {
  Played absorbed({{1, -1, false, true}, {2, -2, true, true}, {4, 9, false, true}}, 3);
  const StepResult end = absorbed.Decide(1);
  EXPECT_TRUE(end.absorbing);
  EXPECT_EQ(end.reward, 3);
  EXPECT_EQ(end.cost, -1);
  EXPECT_EQ(absorbed.inner->taken, 2);
  Played first({{1, -1, true, true}, {2, 3, false, true}}, 2);
  EXPECT_TRUE(first.Decide(1).absorbing);
  EXPECT_EQ(first.inner->taken, 1);
  Played invalid({{1, -1, false, true}, {2, -2, false, false}, {4, 9, false, true}}, 3);
  EXPECT_FALSE(invalid.Decide(1).valid);
  EXPECT_EQ(invalid.inner->taken, 2);
  Played broken({{1, -1, false, true}, {2, kNaN, false, true}, {4, 9, false, true}}, 3);
  EXPECT_TRUE(std::isnan(broken.Decide(1).cost));
}

TEST(RepeatedTask, TheHorizonIsInDecisionsAndTheLastOneIsShorter) {
  Played played({{1, 0, false, true}}, 4, /*horizon=*/10);
  EXPECT_EQ(played.task->spec().horizon, 3);
  EXPECT_EQ(played.task->spec().control_dt, 2);
  for (const double reward : {4, 4, 2}) EXPECT_EQ(played.Decide(1).reward, reward);
  EXPECT_EQ(played.inner->taken, 10);
  EXPECT_EQ(played.Decide(1).reward, 4) << "steps after the horizon are whole decisions again";
  played.task->Reset(nullptr, &played.observation);
  EXPECT_EQ(played.Decide(1).reward, 4);
  ASSERT_THAT(played.task->ResetTo({}, nullptr, &played.observation), IsOk());
  for (const double reward : {4, 4, 2}) EXPECT_EQ(played.Decide(1).reward, reward);
  EXPECT_FALSE(played.task->ResetTo({{"x", 1}}, nullptr, &played.observation).ok());
  EXPECT_EQ(Played({{1, 0, false, true}}, 5, 10).task->spec().horizon, 2);
  EXPECT_EQ(Played({{1, 0, false, true}}, 100, 10).task->spec().horizon, 1);
}

TEST(RepeatedTask, PassesPhysicsOn) {
  Played played({{1, 0, false, true}}, 2);
  played.task->ScalePhysics({3, 1, 1});
  EXPECT_EQ(played.inner->mass, 3);
}

// Every task makes 100 control steps in decisions of 3, against the plain task stepped by hand.
TEST(RepeatedTask, EqualsThePlainTaskSteppedByHand) {
  for (const std::string& name : TaskNames()) {
    v1::TaskOptions options;
    options.set_horizon(100);
    const auto plain = MakeTask(name, options).value();
    options.set_action_repeat(3);
    const auto repeated = MakeTask(name, options).value();
    EXPECT_EQ(MakeTaskModel(name, options)->spec.horizon, 34);
    EXPECT_EQ(repeated->spec().horizon, 34);
    EXPECT_EQ(repeated->spec().control_dt, 3 * plain->spec().control_dt);
    std::vector<double> seen(plain->spec().obs_dim), expected(plain->spec().obs_dim), action(plain->spec().action_dim);
    RandomStream one(4), two(4), actions(5);
    repeated->Reset(&one, seen.data());
    plain->Reset(&two, expected.data());
    EXPECT_EQ(repeated->Cost(), plain->Cost());
    for (int decision = 0; decision < 34; ++decision) {
      for (double& value : action) value = actions.Uniform(-1, 1);
      const StepResult result = repeated->Step(action.data(), seen.data());
      double reward = 0, cost = -1e300;
      bool absorbing = false;
      for (int step = 0; step < (decision < 33 ? 3 : 1) && !absorbing; ++step) {
        const StepResult by_hand = plain->Step(action.data(), expected.data());
        reward += by_hand.reward;
        cost = by_hand.cost > cost ? by_hand.cost : cost;
        absorbing = by_hand.absorbing;
      }
      ASSERT_EQ(seen, expected) << name << " decision " << decision;
      EXPECT_EQ(result.reward, reward);
      EXPECT_EQ(result.cost, cost);
      EXPECT_EQ(result.absorbing, absorbing);
      if (absorbing) break;
    }
  }
}

// A delay of one control step with decisions of two: the second step of a decision is the first with its action.
TEST(RepeatedTask, RandomisationCountsControlSteps) {
  v1::TaskOptions options;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "randomisation { action_delay { low: 1 high: 1 } } action_repeat: 2", &options));
  const auto delayed = MakeTask("cartpole", options).value(), plain = MakeTask("cartpole", {}).value();
  double seen[5], expected[5];
  RandomStream one(4), two(4);
  delayed->Reset(&one, seen);
  plain->Reset(&two, expected);
  const double push = 1, pull = -1, none = 0;
  delayed->Step(&push, seen);
  delayed->Step(&pull, seen);
  for (const double* action : {&none, &push, &push, &pull}) plain->Step(action, expected);
  EXPECT_EQ(std::vector<double>(seen, seen + 5), std::vector<double>(expected, expected + 5));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
