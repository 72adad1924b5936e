#include "deploy/cli/summary.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "common/config/experiment.h"
#include "deploy/cli/run_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::cli {
namespace {

using ::datacom::testing::IsOk;
using nlohmann::json;
namespace fs = std::filesystem;

// What every state of a run has.
const std::set<std::string> kKeys = {"run",
                                     "state",
                                     "waiting",
                                     "done",
                                     "env_steps",
                                     "goal_steps",
                                     "update",
                                     "target_update",
                                     "actors",
                                     "pretrain_update",
                                     "pretrain_target",
                                     "repeated_updates",
                                     "restarts",
                                     "eta_seconds",
                                     "elapsed_seconds",
                                     "steps_per_second",
                                     "members",
                                     "replay",
                                     "learner",
                                     "updates_per_second",
                                     "checkpoint_update",
                                     "pending_evaluations"};

std::set<std::string> KeysOf(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

class RunJsonTest : public ::testing::Test {
 protected:
  // A folder with two members, whose first update sees row 501.
  RunJsonTest() {
    EXPECT_THAT(PrepareRunFolder(run_,
                                 "name: \"cartpole/datacom\" task: \"cartpole\" algorithm: \"datacom\" "
                                 "run { env_steps: 2000 steps_per_epoch: 1000 } replay { min_size: 500 } "
                                 "members { seed: 3 } members { seed: 4 }"),
                IsOk());
  }
  void Write(const std::string& name, const std::string& content) const {
    fs::create_directories(fs::path(run_ + "/" + name).parent_path());
    std::ofstream(run_ + "/" + name) << content;
  }

  const datacom::testing::TemporaryFolder folder_;
  const std::string run_ = folder_.path() + "/run";
};

TEST_F(RunJsonTest, ARunThatAnswersARunThatDoesNotAndOneThatHasNotBegunHaveTheSameKeys) {
  const json fresh = RecordedRunJson(run_).value();
  EXPECT_EQ(KeysOf(fresh), kKeys);
  EXPECT_EQ(fresh["state"], "not started");
  EXPECT_EQ(fresh["members"], json::array());
  EXPECT_EQ(fresh["update"], nullptr);
  v1::ReplayInfo replay;
  replay.add_members()->set_inserted(7);
  replay.add_sessions()->set_actor("actor-0");
  const Answers answers{replay, v1::LearnerInfo()};
  ProgressView view = MakeProgress(answers.replay, answers.learner);
  view.title = run_;
  const json answered = AnsweredRunJson(view, answers);
  EXPECT_EQ(KeysOf(answered), kKeys);
  EXPECT_EQ(answered["run"], run_);
  EXPECT_EQ(answered["replay"]["members"][0]["inserted"], 7);
  EXPECT_EQ(answered["replay"]["sessions"][0]["actor"], "actor-0");
  EXPECT_EQ(answered["learner"]["update"], 0);
  EXPECT_EQ(AnsweredRunJson(MakeProgress(std::nullopt, answers.learner), {std::nullopt, answers.learner})["replay"],
            nullptr);
}

TEST_F(RunJsonTest, ARecordedMemberHasItsNewestRowWithWholeNumbersAndNullForWhatIsNotThere) {
  Write("progress.csv",
        "member,seed,epoch,env_steps,updates,wall_seconds,eval_max_violation,train_episodes,delta,status\n"
        "0,3,0,0,0,0,0.5,0,1.5,ok\n1,4,0,0,0,0,0.5,0,1.5,ok\n0,3,1,1000,499,12.5,0.25,4,,ok\n"
        "1,4,1,1000,500,12,0.125,3,2,diverged\n0,3,2,1200,700,20,0.25,2,,ok\n");
  Write("checkpoints/600/learner", "");
  const json run = RecordedRunJson(run_).value();
  EXPECT_EQ(KeysOf(run), kKeys);
  EXPECT_EQ(run["state"], "interrupted");
  EXPECT_EQ(run["env_steps"], 1000) << "of the slowest member";
  EXPECT_EQ(run["goal_steps"], 2000);
  EXPECT_EQ(run["done"], 0.5);
  EXPECT_EQ(run["update"], 700);
  EXPECT_EQ(run["target_update"], 1500);
  EXPECT_EQ(run["elapsed_seconds"], 20);
  EXPECT_EQ(run["checkpoint_update"], 600);
  EXPECT_EQ(run["pretrain_target"], 0);
  EXPECT_EQ(run["restarts"], nullptr);
  ASSERT_EQ(run["members"].size(), 2u);
  const json& first = run["members"][0];
  EXPECT_EQ(first["env_steps"].dump(), "1200");
  EXPECT_EQ(first["seed"].dump(), "3");
  EXPECT_EQ(first["delta"], nullptr) << "an empty cell";
  EXPECT_EQ(first["alpha"], nullptr) << "no column";
  EXPECT_EQ(first["episodes"], 6);
  EXPECT_EQ(first["eval_max_violation"], 0.25);
  EXPECT_EQ(run["members"][1]["status"], "diverged");
}

TEST_F(RunJsonTest, ARunWithItsLastRowsAndItsReportIsComplete) {
  Write("progress.csv", "member,env_steps,status\n0,2000,ok\n1,2000,ok\n");
  EXPECT_EQ(RecordedRunJson(run_).value()["state"], "interrupted") << "its report is missing";
  Write("report.html", "");
  const json run = RecordedRunJson(run_).value();
  EXPECT_EQ(run["state"], "complete");
  EXPECT_EQ(run["done"], 1);
  EXPECT_EQ(run["eta_seconds"], 0);
}

TEST_F(RunJsonTest, DamagedRecordsAreAnError) {
  Write("progress.csv", "member,env_steps,status\n0,many,ok\n");
  EXPECT_THAT(std::string(RecordedRunJson(run_).status().message()), ::testing::HasSubstr("\"many\""));
}

}  // namespace
}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
