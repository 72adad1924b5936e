// Tests of the commands: rollout against the golden trajectories, eval against the evaluator's player.
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/str_split.h"
#include "actor/actor_setup.h"
#include "actor/episode_player.h"
#include "common/acting/acting_rule.h"
#include "common/base/random.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/nn/snapshot.h"
#include "deploy/tools/play/commands.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mujoco/mujoco.h"
#include "nlohmann/json.hpp"
#include "tests/testing/damaged_csv.h"
#include "tests/testing/golden.h"
#include "tests/testing/is_ok.h"

namespace datacom::tools {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string WriteTemporary(const std::string& name, const std::string& content) {
  const std::string path = (fs::path(::testing::TempDir()) / name).string();
  std::ofstream(path) << content;
  return path;
}

// Tolerances for the numbers of 2.2.2; later solvers of joint limits differ (tests/common/tasks/cartpole_test.cc,
// air_hockey_golden_test.cc).
constexpr double kCartPole = mjVERSION_HEADER >= 300 ? 1e-6 : 1e-9, kAirHockey = mjVERSION_HEADER >= 300 ? 1e-7 : 1e-9;

testing::GoldenTable Parse(const std::string& text) {
  return testing::ReadGoldenCsv(WriteTemporary("rollout_output.csv", text));
}

TEST(Golden, CartpoleThroughTheRolloutCommand) {
  DATACOM_GOLDEN_FILES(files, "cartpole_");
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const testing::GoldenTable golden = testing::ReadGoldenCsv(file);
    RolloutCommand command;
    command.task = "cartpole";
    command.actions = WriteTemporary("actions.csv", testing::ReadGolden(file));
    command.init = "x=" + golden.text(0, "qpos_x") + ",theta=" + golden.text(0, "qpos_theta");
    command.csv = true;
    std::ostringstream out;
    const absl::Status status = RunRolloutCommand(command, &out);
    ASSERT_THAT(status, IsOk());
    const testing::GoldenTable played = Parse(out.str());
    ASSERT_EQ(played.rows.size(), golden.rows.size());
    const char* const observations[] = {"obs0_x", "obs1_sin", "obs2_cos", "obs3_xdot", "obs4_thetadot"};
    for (size_t row = 0; row < golden.rows.size(); ++row) {
      for (int i = 0; i < 5; ++i) {
        ASSERT_NEAR(played.value(row, "obs" + std::to_string(i)), golden.value(row, observations[i]), kCartPole)
            << "row " << row;
      }
      ASSERT_NEAR(played.value(row, "cost"), golden.value(row, "cost"), kCartPole) << "row " << row;
      ASSERT_EQ(played.text(row, "absorbing"), golden.text(row, "absorbing"));
      if (row == 0) {
        EXPECT_EQ(played.text(row, "action0") + played.text(row, "reward"), "");
        continue;
      }
      ASSERT_EQ(played.value(row, "action0"), golden.value(row, "action")) << "row " << row;
      ASSERT_NEAR(played.value(row, "reward"), golden.value(row, "reward_wrapper"), kCartPole) << "row " << row;
    }
  }
}

// Compares observations up to the first contact (the task's golden test bounds the rest) and the step that ends it.
TEST(Golden, AirHockeyThroughTheRolloutCommand) {
  DATACOM_GOLDEN_FILES(files, "hockey_");
  for (const std::string& file : files) {
    const testing::GoldenTable golden = testing::ReadGoldenCsv(file);
    if (!golden.has("a0") || golden.has("eps0")) continue;  // substeps, or noise that no command can replay
    SCOPED_TRACE(file);
    RolloutCommand command;
    command.task = "air_hockey";
    command.actions = WriteTemporary("actions.csv", testing::ReadGolden(file));
    command.init = "puck_x=" + golden.text(0, "puck_x") + ",puck_y=" + golden.text(0, "puck_y") +
                   ",puck_yaw=" + golden.text(0, "puck_yaw");
    command.csv = true;
    std::ostringstream out;
    const absl::Status status = RunRolloutCommand(command, &out);
    ASSERT_THAT(status, IsOk());
    const testing::GoldenTable played = Parse(out.str());
    ASSERT_EQ(played.rows.size(), golden.rows.size());
    bool touched = false;
    for (size_t row = 0; row < golden.rows.size(); ++row) {
      touched |= golden.text(row, "hit_mallet") != "0" || golden.text(row, "hit_rim") != "0";
      for (int i = 0; i < 16 && !touched; ++i) {
        const std::string name = "obs" + std::to_string(i);
        ASSERT_NEAR(played.value(row, name), golden.value(row, name), kAirHockey) << "row " << row;
      }
      if (row > 0) {
        ASSERT_EQ(played.value(row, "action2"), golden.value(row, "a2")) << "row " << row;
      }
      ASSERT_EQ(played.text(row, "absorbing"), golden.text(row, "absorbing")) << "row " << row;
      if (golden.text(row, "absorbing") == "1") break;
    }
  }
}

TEST(RolloutCommand, AcceptsAllActionColumnNamesAndSkipsRowsWithoutAction) {
  std::string first;
  for (const std::string name : {"action0", "action", "a0"}) {
    RolloutCommand command;
    command.task = "cartpole";
    command.actions = WriteTemporary("actions.csv", "step," + name + "\n0,0\n1,0.5\n2,\n3,-0.25\n");
    command.csv = true;
    std::ostringstream out;
    ASSERT_THAT(RunRolloutCommand(command, &out), IsOk());
    if (first.empty()) first = out.str();
    EXPECT_EQ(out.str(), first);
  }
  const std::vector<std::string> lines = absl::StrSplit(first, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "step,action0,obs0,obs1,obs2,obs3,obs4,reward,cost,absorbing");
  EXPECT_EQ(lines[1].substr(0, 6), "0,,-1,");
  EXPECT_EQ(lines[3].substr(0, 8), "2,-0.25,");
}

TEST(RolloutCommand, NamesTheWrongArgument) {
  const std::string good = WriteTemporary("good.csv", "action\n0.5\n");
  const auto error = [](const std::string& task, const std::string& file, const std::string& init,
                        const std::string& set) {
    RolloutCommand command;
    command.task = task;
    command.actions = file;
    command.init = init;
    if (!set.empty()) command.set = {set};
    std::ostringstream out;
    const std::string text = RunRolloutCommand(command, &out).ToString();
    EXPECT_EQ(out.str(), "") << text;
    return text;
  };
  EXPECT_THAT(error("cartpoll", good, "", ""), HasSubstr("cartpoll"));
  EXPECT_THAT(error("cartpole", "absent.csv", "", ""), HasSubstr("absent.csv"));
  EXPECT_THAT(error("cartpole", WriteTemporary("b1.csv", "step,b\n1,2\n"), "", ""), HasSubstr("action0 | a0 | action"));
  EXPECT_THAT(error("cartpole", WriteTemporary("b2.csv", "action\nnan\n"), "", ""),
              HasSubstr("b2.csv line 2, column action: \"nan\" is not a finite number"));
  for (const testing::DamagedCsv& damaged : testing::DamagedCsvFiles("action", "action,step", "0.5", "1")) {
    EXPECT_THAT(error("cartpole", WriteTemporary("b3.csv", damaged.text), "", ""),
                HasSubstr("b3.csv" + damaged.message));
  }
  EXPECT_THAT(error("cartpole", good, "phi=1", ""), HasSubstr("phi"));
  EXPECT_THAT(error("cartpole", good, "theta", ""), HasSubstr("theta"));
  EXPECT_THAT(error("cartpole", good, "", "task_options.colour=red"), HasSubstr("colour"));
  EXPECT_THAT(error("cartpole", good, "", "task=navigation"), HasSubstr("--set task=navigation: only task_options."));
}

NamedArray RandomArray(const std::string& name, const std::vector<uint32_t>& shape, float scale) {
  NamedArray array = {name, shape, {}};
  size_t count = 1;
  for (const uint32_t extent : shape) count *= extent;
  array.values.resize(count);
  FillNormal(StreamKey(name, {count}), array.values.data(), static_cast<int64_t>(count));
  for (float& value : array.values) value *= scale;
  return array;
}

// A Gaussian policy with random weights for CartPole.
Snapshot Policy(uint32_t member, uint64_t update) {
  Snapshot snapshot;
  snapshot.run_id = "run";
  snapshot.member = member;
  snapshot.member_seed = 40 + member;
  snapshot.version = {1, update};
  snapshot.task = "cartpole";
  snapshot.acting_rule = FindAlgorithm("sac")->acting_rule;
  for (const std::string net : {"actor.mean", "actor.log_std"}) {
    snapshot.arrays.push_back(RandomArray(net + ".0.weight", {5, 16}, 0.3f));
    snapshot.arrays.push_back(RandomArray(net + ".0.bias", {16}, 0.1f));
    snapshot.arrays.push_back(RandomArray(net + ".1.weight", {16, 1}, 0.3f));
    snapshot.arrays.push_back(RandomArray(net + ".1.bias", {1}, 0.1f));
  }
  return snapshot;
}

class EvalCommandTest : public ::testing::Test {
 protected:
  EvalCommandTest() : folder_(fs::path(::testing::TempDir()) / "eval_run") {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "policies");
    experiment_.set_name("test");
    experiment_.set_task("cartpole");
    experiment_.set_algorithm("sac");
    experiment_.mutable_task_options()->set_horizon(300);
    experiment_.mutable_run()->set_seed(5);
    experiment_.mutable_run()->set_eval_episodes(3);
    experiment_.mutable_run()->set_env_steps(30);
    experiment_.mutable_run()->set_steps_per_epoch(10);
    experiment_.mutable_replay()->set_min_size(10);
    for (const uint64_t seed : {40, 41}) experiment_.add_members()->set_seed(seed);
    experiment_ = ResolveExperiment(experiment_);
    std::ofstream((folder_ / "experiment.textproto").string()) << PrintExperiment(experiment_);
    for (const uint32_t epoch : {0u, 2u}) {
      Write(epoch, {Policy(0, epoch == 0 ? 0 : 10), Policy(1, epoch == 0 ? 0 : 10)});
    }
    command_.what = folder_.string();
    command_.form = EvalCommand::Form::kCsv;
  }
  void Write(uint32_t epoch, const std::vector<Snapshot>& policies) const {
    const std::string name = epoch == 0 ? "epoch_0000.snapshot" : "epoch_0002.snapshot";
    EXPECT_THAT(WriteSnapshotFile((folder_ / "policies" / name).string(), policies), IsOk());
  }
  std::string Output() {
    std::ostringstream out;
    const absl::Status status = RunEvalCommand(command_, &out);
    EXPECT_THAT(status, IsOk());
    return out.str();
  }
  std::string Error() {
    std::ostringstream out;
    return RunEvalCommand(command_, &out).ToString();
  }

  const fs::path folder_;
  v1::Experiment experiment_;
  EvalCommand command_;
};

TEST_F(EvalCommandTest, RepeatsTheEvaluationEpisodesOfTheRun) {
  const auto player = actor::MakeEpisodePlayer(experiment_, Policy(1, 10), 3).value();
  const auto episodes = player->Play({5, 41, 2}, 3, [] { return absl::OkStatus(); }).value();
  const testing::GoldenTable table = Parse(Output());
  ASSERT_EQ(table.rows.size(), 6u);  // every member, three episodes
  for (size_t e = 0; e < 3; ++e) {
    EXPECT_EQ(table.value(3 + e, "member"), 1);
    EXPECT_EQ(table.value(3 + e, "epoch"), 2);
    EXPECT_EQ(table.value(3 + e, "discounted_return"), episodes[e].discounted_return());
    EXPECT_EQ(table.value(3 + e, "sum_cost"), episodes[e].sum_cost());
    EXPECT_EQ(table.value(3 + e, "violating_steps"), episodes[e].violating_steps());
    EXPECT_EQ(table.value(3 + e, "length"), 300);
  }
}

TEST_F(EvalCommandTest, AppliesMemberEpochEpisodesSeedAndSet) {
  command_.member = 1;
  command_.epoch = "0";
  command_.episodes = 2;
  command_.set = {"task_options.horizon=7"};
  const testing::GoldenTable table = Parse(Output());
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.value(0, "length"), 7);
  EXPECT_EQ(table.value(0, "epoch"), 0);
  command_.set.clear();
  const std::string base = Output();
  command_.seed = 99;
  EXPECT_NE(Output(), base);
  command_.form = EvalCommand::Form::kTable;
  EXPECT_THAT(Output(), HasSubstr("discounted_return"));
}

TEST_F(EvalCommandTest, StartsEveryEpisodeWhereItIsTold) {
  command_.set = {"task_options.horizon=7"};
  command_.init = "theta=3";  // the pole hangs down
  const testing::GoldenTable table = Parse(Output());
  ASSERT_EQ(table.rows.size(), 6u);
  for (size_t row = 0; row < 6; ++row) EXPECT_EQ(table.value(row, "violating_steps"), 7) << row;
  command_.init = "theta";
  EXPECT_THAT(Error(), HasSubstr("--init: \"theta\" is not key=number"));
  command_.init = "angle=3";
  EXPECT_THAT(Error(), HasSubstr("cartpole has no start value \"angle\"; there are: x, theta"));
  command_.init = "theta=3";
  command_.policy = "zeros";
  EXPECT_EQ(Parse(Output()).value(0, "violating_steps"), 7);
}

TEST_F(EvalCommandTest, PlaysTheBestEpochOfEachMemberAsTheRunEvaluatedIt) {
  // SAC has no budget: member 0 was safer at epoch 0, member 1 at epoch 2.
  std::ofstream((folder_ / "progress.csv").string())
      << "member,env_steps,epoch,eval_episodes,eval_discounted_return,eval_max_violation,eval_sum_cost\n"
         "0,0,0,3,1,0.5,4\n1,0,0,3,9,0.5,4\n0,20,2,3,9,0.5,5\n1,20,2,3,1,0.5,3\n";
  command_.epoch = "best";
  const std::string best = Output();
  const testing::GoldenTable table = Parse(best);
  ASSERT_EQ(table.rows.size(), 6u);
  for (size_t row = 0; row < 6; ++row) EXPECT_EQ(table.value(row, "epoch"), row < 3 ? 0 : 2) << row;
  const auto rows = [this](uint32_t member, const std::string& epoch) {
    command_.member = member;
    command_.epoch = epoch;
    const std::string text = Output();
    return text.substr(text.find('\n') + 1);
  };
  EXPECT_EQ(best.substr(best.find('\n') + 1), rows(0, "0") + rows(1, "2"));
  EXPECT_EQ(rows(1, "best"), rows(1, "2"));
}

TEST_F(EvalCommandTest, ExplainsWhyThereIsNoBestEpoch) {
  command_.epoch = "best";
  EXPECT_THAT(Error(), HasSubstr("progress.csv"));
  const std::string header =
      "member,env_steps,epoch,eval_episodes,eval_discounted_return,eval_max_violation,eval_sum_cost\n";
  std::ofstream((folder_ / "progress.csv").string()) << header << "0,0,0,0,,,\n";
  EXPECT_THAT(Error(), HasSubstr("member 0: no epoch was evaluated yet"));
  std::ofstream((folder_ / "progress.csv").string()) << header << "0,0,1,3,1,0,0\n";
  EXPECT_THAT(Error(), HasSubstr("no policy of epoch 1; the epochs are 0 to 2"));
}

TEST_F(EvalCommandTest, NamesTheMissingEpochMemberOrRun) {
  command_.epoch = "1";
  EXPECT_THAT(Error(), HasSubstr("no policy of epoch 1; the epochs are 0 to 2"));
  command_.epoch = "newest";
  EXPECT_THAT(Error(), HasSubstr("newest"));
  command_.epoch = "last";
  command_.member = 7;
  EXPECT_THAT(Error(), HasSubstr("--member: no member 7"));
  fs::rename(folder_ / "policies", folder_ / "moved");
  EXPECT_THAT(Error(), HasSubstr("policies: no policies"));
  std::ofstream((folder_ / "policies").string()) << "no folder, as one that is closed to the user cannot be listed";
  EXPECT_THAT(Error(), AllOf(HasSubstr("list "), HasSubstr("policies: Not a directory")));
  command_.what = "absent_run";
  EXPECT_THAT(Error(), HasSubstr("absent_run is not a run folder"));
}

// An update for each row after the first ten: epoch 2 ends with update 10.
TEST_F(EvalCommandTest, RefusesPoliciesThatAreNotOfThisRunOrEpoch) {
  std::ofstream((folder_ / "run_id").string()) << "run\n";
  EXPECT_NE(Output(), "");
  Write(2, {Policy(0, 10)});
  EXPECT_THAT(Error(), HasSubstr("epoch_0002.snapshot: holds 1 snapshots, the run has 2 members"));
  Write(2, {Policy(0, 10), Policy(1, 9)});
  EXPECT_THAT(Error(), HasSubstr("epoch_0002.snapshot: policy of member 1: of update 9, which does not end epoch 2"));
  Snapshot other = Policy(1, 10);
  other.run_id = "fork";
  Write(2, {Policy(0, 10), other});
  EXPECT_THAT(Error(), HasSubstr("epoch_0002.snapshot: policy of member 1: of run \"fork\", not \"run\""));
  other = Policy(1, 10);
  other.member_seed = 7;
  Write(2, {Policy(0, 10), other});
  EXPECT_THAT(Error(), HasSubstr("policy of member 1: of seed 7, which no such member has"));
  experiment_.set_algorithm("of_a_plugin");
  std::ofstream((folder_ / "experiment.textproto").string()) << PrintExperiment(experiment_);
  EXPECT_THAT(Error(), HasSubstr("algorithm: \"of_a_plugin\" of the run is not one of datacom, "));
}

TEST_F(EvalCommandTest, EvaluatesTheOtherMembersAndRefusesADivergedOne) {
  Snapshot diverged = Policy(0, 10);
  diverged.arrays[2].values[3] = std::numeric_limits<float>::quiet_NaN();
  Write(2, {diverged, Policy(1, 10)});
  std::ostringstream out;
  const absl::Status status = RunEvalCommand(command_, &out);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("member 0: array actor.mean.1.weight holds nan"));
  const testing::GoldenTable table = Parse(out.str());
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.value(0, "member"), 1);
  command_.form = EvalCommand::Form::kJson;
  std::ostringstream text;
  EXPECT_TRUE(absl::IsDataLoss(RunEvalCommand(command_, &text)));
  const nlohmann::json list = nlohmann::json::parse(text.str());
  ASSERT_EQ(list.size(), 5u) << "the diverged member, three episodes of the other one and their means";
  EXPECT_EQ(list[0], (nlohmann::json{{"member", 0},
                                     {"seed", list[0]["seed"]},
                                     {"epoch", 2},
                                     {"error", "member 0: array actor.mean.1.weight holds nan"}}));
  EXPECT_EQ(list[4]["episodes"], 3);
  command_.member = 0;
  std::ostringstream alone;
  EXPECT_TRUE(absl::IsDataLoss(RunEvalCommand(command_, &alone)));
  EXPECT_EQ(nlohmann::json::parse(alone.str()).size(), 1u);
}

TEST_F(EvalCommandTest, RefusesToSetAnythingButTaskOptions) {
  for (const std::string set : {"run.eval_episodes=1", "hyper.cost_budget=3", "task_options=1"}) {
    command_.set = {"task_options.horizon=7", set};
    EXPECT_THAT(Error(), HasSubstr("--set " + set + ": only task_options."));
  }
  command_.set = {" task_options.horizon = 7"};
  EXPECT_EQ(Parse(Output()).value(0, "length"), 7);
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
