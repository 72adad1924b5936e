// Untrained policies: their actions, how `eval` and `rollout` play them, and the scores of the scripted ones.
#include "deploy/tools/play/actions.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/config/experiment.h"
#include "deploy/tools/play/commands.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "tests/testing/is_ok.h"

namespace datacom::tools {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

TaskModel ModelOf(const std::string& task) { return MakeTaskModel(task, v1::TaskOptions()).value(); }

TEST(UntrainedPolicy, ZerosPlaysZeroActions) {
  const UntrainedPolicy policy = MakeUntrainedPolicy("zeros", ModelOf("navigation")).value();
  ASSERT_EQ(policy.rule->noise_dim(), 0);
  const std::vector<float> observations(44, 1);
  float actions[4] = {1, 2, 3, 4};
  policy.rule->Act(2, {observations.data(), nullptr, nullptr}, actions, {});
  for (const float action : actions) EXPECT_EQ(action, 0);
}

// A standard normal number is below 1.28155 in 90 % and below -1.95996 in 2.5 % of cases.
TEST(UntrainedPolicy, RandomIsUniformWithinTheActionBounds) {
  const UntrainedPolicy policy = MakeUntrainedPolicy("random", ModelOf("navigation")).value();
  ASSERT_EQ(policy.rule->noise_dim(), 2);
  const std::vector<float> observations(66, 1);
  const float noise[6] = {0, 0, 1.2815516f, 1.2815516f, -1.9599640f, -8};
  float actions[6];
  policy.rule->Act(3, {observations.data(), noise, nullptr}, actions, {});
  const double turn = 1.0471975511965976;  // pi / 3
  const double expected[6] = {0, 0, 0.8, 0.8 * turn, -0.95, -turn};
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(actions[i], expected[i], 1e-6) << i;
}

TEST(UntrainedPolicy, ScriptedIsTheTasksFirstControllerAndEachHasAName) {
  const TaskModel model = ModelOf("navigation");
  std::vector<float> observation(22,
                                 0);  // both robots and the hand at one place, the target 1 m ahead and 1 m to the left
  observation[0] = observation[1] = observation[4] = observation[11] = 1;
  const auto act = [&](const std::string& name) {
    float action[2];
    const UntrainedPolicy policy = MakeUntrainedPolicy(name, model).value();
    EXPECT_THAT(policy.title, HasSubstr(name == "scripted" ? "back_off: " : name + ": "));
    policy.rule->Act(1, {observation.data(), nullptr, nullptr}, action, {});
    return std::vector<float>(action, action + 2);
  };
  EXPECT_EQ(act("turn_and_drive"), (std::vector<float>{std::sqrt(0.5f), static_cast<float>(M_PI / 3)}));
  EXPECT_EQ(act("back_off")[0], 1) << "flees";
  EXPECT_EQ(act("scripted"), act("back_off"));
}

TEST(UntrainedPolicy, AnUnknownPolicyListsThoseOfTheTask) {
  EXPECT_EQ(
      MakeUntrainedPolicy("scripted", ModelOf("cartpole")).status(),
      absl::InvalidArgumentError("--policy scripted: task cartpole has no scripted policy; it has: zeros, random"));
  EXPECT_EQ(MakeUntrainedPolicy("zero", ModelOf("cartpole")).status(),
            absl::InvalidArgumentError("--policy zero: task cartpole has no such policy; it has: zeros, random"));
  EXPECT_EQ(MakeUntrainedPolicy("best", ModelOf("navigation")).status(),
            absl::InvalidArgumentError("--policy best: task navigation has no such policy; it has: zeros, random, "
                                       "scripted, back_off, turn_and_drive"));
}

testing::GoldenTable Table(const std::string& text) {
  const std::string path = (fs::path(::testing::TempDir()) / "untrained.csv").string();
  std::ofstream(path) << text;
  return testing::ReadGoldenCsv(path);
}

absl::Status Evaluate(const EvalCommand& command, std::string* text) {
  std::ostringstream out;
  const absl::Status status = RunEvalCommand(command, &out);
  *text = out.str();
  return status;
}

testing::GoldenTable Evaluated(EvalCommand command) {
  std::string text;
  command.form = EvalCommand::Form::kCsv;
  const absl::Status status = Evaluate(command, &text);
  EXPECT_THAT(status, IsOk());
  return Table(text);
}

// CartPole starts at rest and upright and stays there without a push: cost -1, no reward.
TEST(EvalOfATask, PlaysAPolicyWithTheTaskOptions) {
  EvalCommand command;
  command.what = "cartpole";
  command.policy = "zeros";
  command.episodes = 2;
  command.set = {"task_options.horizon=20", "task_options.action_repeat=3"};
  const testing::GoldenTable table = Evaluated(command);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.value(1, "length"), 7) << "20 steps, 3 per decision";
  for (const char* column : {"member", "epoch", "return", "max_violation", "success", "reached", "absorbed"}) {
    EXPECT_EQ(table.value(1, column), 0) << column;
  }
  command.episodes.reset();
  EXPECT_EQ(Evaluated(command).rows.size(), 25u) << "the schema's default";
  std::string text;
  ASSERT_THAT(Evaluate(command, &text), IsOk());
  EXPECT_THAT(text, AllOf(HasSubstr("cartpole, zeros: zero actions\ntask_options { horizon: 20 action_repeat: 3 }\n"),
                          HasSubstr("absorbed: ended early by the task (never in this task)")));
}

TEST(EvalOfATask, NamesTheWrongArgument) {
  std::string text;
  const auto error = [&text](const EvalCommand& command) { return Evaluate(command, &text).ToString(); };
  EvalCommand command;
  command.what = "navigation";
  EXPECT_THAT(error(command), HasSubstr("navigation is a task, not a run: name a policy too"));
  command.policy = "scripted";
  command.epoch = "last";
  EXPECT_THAT(error(command),
              HasSubstr("--member, --epoch and --shield belong to a run's policy, not to --policy scripted"));
  command.epoch.reset();
  command.set = {"task_options.mismatch_sigma=1"};
  EXPECT_THAT(error(command), HasSubstr("mismatch_sigma"));
  command.set = {"task_options.action_repeat=0"};
  EXPECT_THAT(error(command), HasSubstr("task_options.action_repeat: 0 is below 1"));
  command.set.clear();
  command.what = "moon";
  EXPECT_THAT(error(command), HasSubstr("\"moon\" does not exist"));
  EXPECT_EQ(text, "");
}

TEST(EvalOfARun, PlaysAnotherPolicyWithTheRunsOptions) {
  const fs::path folder = fs::path(::testing::TempDir()) / "untrained_run";
  fs::create_directories(folder);
  v1::Experiment experiment;
  experiment.set_name("test");
  experiment.set_task("cartpole");
  experiment.set_algorithm("sac");
  experiment.mutable_task_options()->set_horizon(9);
  experiment.mutable_run()->set_eval_episodes(4);
  std::ofstream((folder / "experiment.textproto").string()) << PrintExperiment(experiment);
  EvalCommand command;
  command.what = folder.string();
  command.policy = "random";
  const testing::GoldenTable table = Evaluated(command);
  ASSERT_EQ(table.rows.size(), 4u) << "the run has no policy";
  EXPECT_EQ(table.value(3, "length"), 9);
  EXPECT_NE(table.value(0, "mean_cost"), 1);
  command.seed = 1;
  EXPECT_EQ(Evaluated(command).rows.size(), 4u);
}

std::string Rollout(const RolloutCommand& command) {
  std::ostringstream out;
  const absl::Status status = RunRolloutCommand(command, &out);
  return status.ok() ? out.str() : status.ToString();
}

TEST(RolloutOfAPolicy, EqualsTheRolloutOfItsActionsAndEndsAtTheHorizon) {
  const std::string file = (fs::path(::testing::TempDir()) / "zeros.csv").string();
  std::ofstream(file) << "action\n0\n0\n0\n";
  RolloutCommand recorded, played;
  recorded.task = played.task = "cartpole";
  recorded.csv = played.csv = true;
  recorded.set = played.set = {"task_options.horizon=3"};
  recorded.init = played.init = "theta=0.5";
  recorded.actions = file;
  played.policy = "zeros";
  EXPECT_EQ(Rollout(played), Rollout(recorded));
  played.actions = file;
  EXPECT_THAT(Rollout(played), HasSubstr("either --actions FILE or --policy NAME"));
  EXPECT_THAT(Rollout({}), HasSubstr("either --actions FILE or --policy NAME"));
  played.actions.clear();
  played.policy = "scripted";
  EXPECT_THAT(Rollout(played), HasSubstr("task cartpole has no scripted policy"));
}

TEST(RolloutOfAPolicy, DependsOnItsSeedAndEndsWithTheEpisode) {
  RolloutCommand command;
  command.task = "navigation";
  command.policy = "random";
  command.csv = true;
  const std::string fixed = Rollout(command);
  EXPECT_EQ(Rollout(command), fixed);
  command.seed = 4;
  const std::string four = Rollout(command);
  EXPECT_NE(four, fixed);
  EXPECT_EQ(Rollout(command), four);
  command.init = "tiago_x=0,tiago_y=0,tiago_yaw=0,fetch_x=2,fetch_y=1.8,fetch_yaw=0,target_x=1,target_y=1";
  command.seed = 5;
  const testing::GoldenTable five = Table(Rollout(command));
  EXPECT_NE(five.value(1, "action0"), Table(four).value(1, "action0")) << "random actions depend on the seed too";
  EXPECT_NE(five.value(1, "action0"), five.value(2, "action0"));
  // Drives straight into a wall, which ends the episode.
  command.policy = "turn_and_drive";
  command.init = "tiago_x=3.0,tiago_y=0,tiago_yaw=0,fetch_x=-2,fetch_y=0,fetch_idle=1,target_x=4.5,target_y=0";
  const testing::GoldenTable table = Table(Rollout(command));
  ASSERT_LT(table.rows.size(), 100u);
  for (size_t row = 0; row < table.rows.size(); ++row) {
    EXPECT_EQ(table.value(row, "absorbing"), row + 1 == table.rows.size()) << row;
  }
}

// Means of 1,000 episodes with other starts than this test's, measured once; `deviation` is the one of a single
// episode.
struct Expected {
  const char* column;
  double mean, deviation;
};
struct Controller {
  const char* policy;
  std::vector<Expected> expected;
};

// Plays $DATACOM_SCRIPTED_EPISODES episodes (default 100). The bounds are four standard errors of the difference.
TEST(Scripted, KeepsItsScoresOnNavigation) {
  const char* const text = std::getenv("DATACOM_SCRIPTED_EPISODES");
  uint32_t episodes = 100;
  ASSERT_TRUE(text == nullptr || absl::SimpleAtoi(text, &episodes)) << text;
  const Controller controllers[] = {
      {"zeros", {{"discounted_return", -356.3, 210.6}, {"reached", 0.007, 0.083}, {"absorbed", 0.395, 0.489}}},
      {"random", {{"discounted_return", -371.3, 202.1}, {"reached", 0.020, 0.140}, {"absorbed", 0.438, 0.496}}},
      {"turn_and_drive", {{"discounted_return", -69.0, 415.4}, {"reached", 0.735, 0.441}, {"absorbed", 0.459, 0.498}}},
      {"back_off", {{"discounted_return", -12.6, 329.6}, {"reached", 0.856, 0.351}, {"absorbed", 0.171, 0.377}}}};
  for (const Controller& controller : controllers) {
    EvalCommand command;
    command.what = "navigation";
    command.policy = controller.policy;
    command.episodes = episodes;
    command.seed = 77;
    const testing::GoldenTable table = Evaluated(command);
    ASSERT_EQ(table.rows.size(), episodes);
    for (const Expected& expected : controller.expected) {
      double mean = 0;
      for (size_t row = 0; row < table.rows.size(); ++row) mean += table.value(row, expected.column) / episodes;
      EXPECT_NEAR(mean, expected.mean, 4 * expected.deviation * std::sqrt(1.0 / episodes + 1.0 / 1000))
          << controller.policy << ' ' << expected.column;
    }
  }
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
