// Tests the range of discounted returns against literals and against what episodes of every task earn.
#include "common/tasks/task.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/tasks/text/task_file.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/text_tasks.h"

namespace datacom {
namespace {

using ::testing::HasSubstr;

ReturnRange RangeOf(const RewardRange& rewards, double discount) {
  TaskSpec spec;
  spec.rewards = rewards;
  return ReturnRangeOf(spec, discount).value();
}

ReturnRange RangeOf(const std::string& task, const v1::TaskOptions& options, double discount) {
  return ReturnRangeOf(MakeTaskModel(task, options).value().spec, discount).value();
}

TEST(ReturnRange, HoldsStepsForEverAndAnEndAtOnce) {
  const ReturnRange steps = RangeOf({-2, 3, -1, 1}, 0.75);  // four steps for ever
  EXPECT_DOUBLE_EQ(steps.low, -8);
  EXPECT_DOUBLE_EQ(steps.high, 12);
  const ReturnRange end = RangeOf({-2, 3, -50, 40}, 0.75);
  EXPECT_DOUBLE_EQ(end.low, -50);
  EXPECT_DOUBLE_EQ(end.high, 40);
}

TEST(ReturnRange, AnEndThatEarnsLessThanGoingOnLowersARangeOfPositiveRewards) {
  const ReturnRange range = RangeOf({1, 2, 1, 2}, 0.75);
  EXPECT_DOUBLE_EQ(range.low, 1);
  EXPECT_DOUBLE_EQ(range.high, 8);
}

TEST(ReturnRange, DifferencesOfAPotentialAddWhatTheirSumCanBe) {
  const ReturnRange range = RangeOf({0, 0, 0, 10, -3, 5}, 0.99);
  EXPECT_DOUBLE_EQ(range.low, -3);
  EXPECT_DOUBLE_EQ(range.high, 15);
}

TEST(ReturnRange, OfADecisionAddsItsStepsAndThoseBeforeAnEnd) {
  const RewardRange decision = RepeatedRewards({-2, 3, -100, 50, -7, 8}, 5);
  EXPECT_DOUBLE_EQ(decision.step_low, -10);
  EXPECT_DOUBLE_EQ(decision.step_high, 15);
  EXPECT_DOUBLE_EQ(decision.final_low, -108);  // four steps before it
  EXPECT_DOUBLE_EQ(decision.final_high, 62);
  EXPECT_DOUBLE_EQ(decision.sum_low, -7);
  EXPECT_DOUBLE_EQ(decision.sum_high, 8);
  const RewardRange positive = RepeatedRewards({1, 3, 1, 3}, 2);
  EXPECT_DOUBLE_EQ(positive.final_low, 1) << "the first of the held steps may end it";
}

TEST(ReturnRange, OfTheRegisteredTasksIsThatOfTheirSpecifications) {
  const ReturnRange cartpole = RangeOf("cartpole", {}, 0.99);
  EXPECT_NEAR(cartpole.low, 0, 1e-9);
  EXPECT_NEAR(cartpole.high, 100, 1e-9);
  const ReturnRange hockey = RangeOf("air_hockey", {}, 0.99);
  EXPECT_NEAR(hockey.low, -96.1, 1e-9);
  EXPECT_NEAR(hockey.high, 238.8, 1e-9);
  const ReturnRange navigation = RangeOf("navigation", {}, 0.99);
  EXPECT_NEAR(navigation.low, -1000, 1e-9);
  EXPECT_NEAR(navigation.high, 1000, 1e-9);
  v1::TaskOptions options;
  options.set_reward("paper");
  const ReturnRange paper = RangeOf("navigation", options, 0.99);
  EXPECT_NEAR(paper.low, -820, 1e-9);
  EXPECT_NEAR(paper.high, 0, 1e-9);
  options.clear_reward();
  options.set_action_repeat(5);
  const ReturnRange repeated = RangeOf("navigation", options, 0.95);
  EXPECT_NEAR(repeated.low, -1033.2, 1e-9);  // four steps of -8.3, then a collision
  EXPECT_NEAR(repeated.high, 1000, 1e-9);
}

TEST(ReturnRange, ATaskThatDoesNotStateItsRewardsIsNamed) {
  TaskSpec spec;
  spec.name = "crane";
  const absl::Status status = ReturnRangeOf(spec, 0.9).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("task crane does not state the range of its rewards"));
}

// The rewards of an episode, with random actions or those of the task's best controller.
std::vector<double> Rewards(Task* task, const ScriptedPolicy* controller, uint64_t episode) {
  const TaskSpec& spec = task->spec();
  std::vector<double> observation(spec.obs_dim), action(spec.action_dim), rewards;
  RandomStream start(StreamKey("test.returns", {episode})), actions(episode);
  task->Reset(&start, observation.data());
  for (int step = 0; step < std::min(spec.horizon, 400); ++step) {
    for (int i = 0; i < spec.action_dim; ++i) action[i] = actions.Uniform(spec.action_low[i], spec.action_high[i]);
    if (controller != nullptr) controller->act(observation.data(), action.data());
    const StepResult result = task->Step(action.data(), observation.data());
    rewards.push_back(result.reward);
    if (result.absorbing) break;
  }
  return rewards;
}

// Rewards outside of the stated range would be hidden by learners that bound their targets.
TEST(ReturnRange, HoldsWhatEpisodesOfEveryTaskEarnFromEachOfTheirSteps) {
  std::vector<std::string> tasks = TaskNames();
  for (const char* example : {"arm_reach", "cartpole", "quadrotor"}) {
    tasks.push_back("deploy/examples/" + std::string(example) + "/task.textproto");
  }
  for (const std::string& file : tasks) {
    for (const uint32_t repeat : {1, 3}) {
      SCOPED_TRACE(file);
      std::string name = file;
      v1::TaskOptions options;
      ASSERT_THAT(LoadTaskOf("", &name, &options), datacom::testing::IsOk());
      options.set_action_repeat(repeat);
      const TaskModel model = MakeTaskModel(name, options).value();
      const std::unique_ptr<Task> task = MakeTask(name, options).value();
      for (uint64_t episode = 0; episode < 6; ++episode) {
        const bool scripted = episode % 2 == 1 && !model.scripted.empty();
        const std::vector<double> rewards = Rewards(task.get(), scripted ? &model.scripted[0] : nullptr, episode);
        for (const double discount : {0.5, 0.99}) {
          const ReturnRange range = ReturnRangeOf(task->spec(), discount).value();
          double sum = 0;  // what follows the last step is not known; 0 is in the range of all these tasks
          for (size_t i = rewards.size(); i-- > 0;) {
            sum = rewards[i] + discount * sum;
            EXPECT_TRUE(sum >= range.low - 1e-9 && sum <= range.high + 1e-9)
                << sum << " at step " << i << " of episode " << episode << ", discount " << discount;
          }
        }
      }
    }
  }
}

TEST(ReturnRange, ATaskFileClipsItsRewardToTheRangeThatItStates) {
  const std::string model = R"(<mujoco><worldbody>
    <body><joint name="a" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body></worldbody>
    <actuator><motor name="a" joint="a" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>)";
  const std::string task = R"(name: "pair" model: "model.xml" observation { joint: "*" } reward: "3 * action.a"
    cost { name: "c" value: "0" } )";
  const datacom::testing::TaskFolder folder(model, task + "reward_range { low: -1 high: 2 }");
  datacom::testing::LoadedTask slider(folder.task());
  RandomStream stream(1);
  slider.task->Reset(&stream, slider.observation.data());
  const auto reward = [&](double action) { return slider.task->Step(&action, slider.observation.data()).reward; };
  EXPECT_EQ(reward(-1), -1);
  EXPECT_EQ(reward(0.5), 1.5);
  EXPECT_EQ(reward(1), 2);
  const ReturnRange range = ReturnRangeOf(slider.task->spec(), 0.5).value();
  EXPECT_EQ(range.low, -2);
  EXPECT_EQ(range.high, 4);
  const datacom::testing::TaskFolder wrong(model, task + "reward_range { low: 1 high: 1 }");
  EXPECT_THAT(wrong.Error(), HasSubstr("reward_range.high: 1 is not above low, 1"));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
