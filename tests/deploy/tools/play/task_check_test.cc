// Tests what `task new` and `task check` say of range finders and of a mistyped field, what a task in the working
// folder is called, that the lines of a check fit the terminal, and what `eval` says of a task without usable numbers.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "deploy/tools/play/commands.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mujoco/mujoco.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::tools {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLidar[] = R"(<mujoco>
  <option timestep="0.002"/>
  <worldbody><body name="cart"><joint name="cart" type="slide" axis="0 1 0" damping="1"/><geom size="0.05"/>
    <site name="ahead" zaxis="1 0 0"/></body></worldbody>
  <actuator><motor name="cart" joint="cart" ctrllimited="true" ctrlrange="-1 1"/></actuator>
  <sensor><rangefinder name="eye" site="ahead"/><rangefinder name="far" site="ahead" cutoff="7"/></sensor>
</mujoco>)";

class TaskCheck : public ::testing::Test {
 protected:
  TaskCheck() {
    std::ofstream(folder_.path() + "/lidar.xml") << kLidar;
    std::ostringstream out;
    EXPECT_THAT(RunNewTaskCommand({folder_.path() + "/lidar", folder_.path() + "/lidar.xml"}, &out),
                datacom::testing::IsOk());
  }
  std::string Check(int width) const {
    std::ostringstream out;
    EXPECT_THAT(RunCheckTaskCommand({file_, 300, 1, width}, &out), datacom::testing::IsOk()) << out.str();
    return out.str();
  }

  const datacom::testing::TemporaryFolder folder_;
  const std::string file_ = folder_.path() + "/lidar/task.textproto";
};

TEST_F(TaskCheck, ATaskInTheWorkingFolderIsCalledLikeTheFolder) {
  const std::filesystem::path here = std::filesystem::current_path(), there = folder_.path() + "/My cart";
  std::filesystem::create_directory(there);
  std::filesystem::current_path(there);
  std::ostringstream out;
  EXPECT_THAT(RunNewTaskCommand({".", "../lidar.xml"}, &out), datacom::testing::IsOk());
  std::filesystem::current_path(here);
  EXPECT_THAT(ReadFile(there.string() + "/task.textproto").value(), HasSubstr("name: \"my_cart\""));
}

TEST_F(TaskCheck, ARangeFinderWithoutACutoffIsNamedByTheDraftAndTheCheck) {
  EXPECT_THAT(
      ReadFile(file_).value(),
      AllOf(
          HasSubstr("extra { sensor: \"eye\" }  # 1 number; -1 where it hits nothing: give it a cutoff in the model\n"),
          HasSubstr("extra { sensor: \"far\" }  # 1 number; its cutoff, 7, where it hits nothing\n"),
          HasSubstr("# `datacom explain task_file` explains every field."), Not(HasSubstr(".proto "))));
  EXPECT_THAT(Check(0), AllOf(HasSubstr("\nthe sensor eye reads -1 where it hits nothing; give it a cutoff in the "
                                        "model, then it reads that\n"),
                              Not(HasSubstr("the sensor far"))));
}

#if mjVERSION_HEADER >= 4000000
TEST_F(TaskCheck, ARangeFinderWithSeveralNumbersIsNamedAlsoWithACutoff) {
  std::string model = kLidar;
  ASSERT_EQ(absl::StrReplaceAll({{"cutoff=\"7\"", "cutoff=\"7\" data=\"dist dir\""}}, &model), 1);
  std::ofstream(folder_.path() + "/wide.xml") << model;
  std::ostringstream out;
  ASSERT_THAT(RunNewTaskCommand({folder_.path() + "/wide", folder_.path() + "/wide.xml"}, &out),
              datacom::testing::IsOk());
  const std::string file = folder_.path() + "/wide/task.textproto";
  EXPECT_THAT(ReadFile(file).value(),
              HasSubstr("\"far\" }  # 4 numbers; a distance is -1 where it hits nothing, also"));
  EXPECT_THAT(RunCheckTaskCommand({file, 300, 1}, &out), datacom::testing::IsOk());
  EXPECT_THAT(out.str(), HasSubstr("\nthe sensor far reads -1 where it hits nothing; a cutoff does not change that"));
}
#endif

TEST_F(TaskCheck, AMistypedFieldIsNamedWithTheOneThatItMayStandFor) {
  std::string text = ReadFile(file_).value();
  ASSERT_EQ(absl::StrReplaceAll({{"observation { joint: \"cart\" }", "observation { joynt: \"cart\" }"}}, &text), 1);
  std::ofstream(file_) << text;
  std::ostringstream out;
  EXPECT_THAT(std::string(RunCheckTaskCommand({file_, 300, 1}, &out).message()),
              HasSubstr(": no field named \"joynt\" in Signal; did you mean joint? (datacom explain "
                        "task_file.observation)"));
}

TEST_F(TaskCheck, KnownRowsThatTheStartsViolateAreNamed) {
  const auto row = [](const std::string& name, int offset, const std::string& more) {
    return absl::StrCat("known { name: \"", name, "\" site: \"ahead\" half_space { normal { y: 1 } offset: ", offset,
                        " } ", more, "}\n");
  };
  std::ofstream(file_, std::ios::app) << row("above", -3, "") << row("below", 3, "")
                                      << row("plane", 5, "equality: true ");
  EXPECT_THAT(Check(0), AllOf(HasSubstr("known row above_ahead: starts violate it by up to 3.0"),
                              ContainsRegex("known row plane_ahead: starts miss its equation by up to (4.99|5|5.01);"),
                              Not(HasSubstr("known row below_ahead"))));
}

TEST_F(TaskCheck, AnEvaluationWhoseEpisodesAreAllAbandonedFailsAndShowsNoMeans) {
  std::string text = ReadFile(file_).value();
  ASSERT_EQ(absl::StrReplaceAll({{"\nreward: \"", "\nreward: \"log(cart - 9) + "}}, &text), 1);
  std::ofstream(file_) << text;
  EvalCommand command;
  command.what = file_;
  command.policy = "zeros";
  command.episodes = 2;
  std::ostringstream table, json;
  EXPECT_EQ(RunEvalCommand(command, &table),
            absl::DataLossError("--policy zeros: 2 of 2 episodes were abandoned, because the simulator warned or a "
                                "number was not usable; `datacom task check` names such numbers of a task file"));
  EXPECT_THAT(table.str(), AllOf(HasSubstr(" absorbed  abandoned\n"), HasSubstr("         -          2\nShares of"),
                                 Not(HasSubstr("nan"))));
  command.form = EvalCommand::Form::kJson;
  EXPECT_TRUE(absl::IsDataLoss(RunEvalCommand(command, &json)));
  EXPECT_THAT(json.str(), AllOf(HasSubstr("\"abandoned\": 2"), HasSubstr("\"return\": null")));
}

TEST_F(TaskCheck, ItsLinesFitTheTerminal) {
  const std::string narrow = Check(60);
  for (const absl::string_view line : absl::StrSplit(narrow, '\n')) EXPECT_LE(line.size(), 60u) << line;
  EXPECT_THAT(narrow, AllOf(HasSubstr("time         control step 0.02 s (10 time steps of 0.002 s),\n"
                                      "             horizon 500 steps = 10 s\n"),
                            HasSubstr("All numbers were finite.\n")));
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
