// Tests `task new` and `task check`: the draft of a task file loads for models of many kinds, and the check finds what
// is wrong with a task.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/base/files.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "deploy/tools/play/check_task.h"
#include "deploy/tools/play/new_task.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::tools {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kArm[] = R"(<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping="0.3" armature="0.02"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04"/>
      <body name="lower" pos="0.4 0 0">
        <joint name="elbow" axis="0 1 0" range="10 120" limited="true" damping="0.1" armature="0.02"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
        <site name="hand" pos="0.3 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="shoulder" joint="shoulder" gear="3" ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="elbow" joint="elbow" ctrllimited="true" ctrlrange="-2 2"/>
  </actuator>
  <sensor><jointpos name="elbow" joint="elbow"/><touch name="touch" site="hand"/></sensor>
</mujoco>)";

class TaskCommands : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name, const std::string& content) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return Path(name);
  }
  std::string Read(const std::string& name) const { return ReadFile(Path(name)).value(); }
  // Makes the task `name` of a model and returns its file.
  std::string New(const std::string& name, const std::string& model) {
    std::ostringstream out;
    const absl::Status status = RunNewTaskCommand({Path(name), Write("source/model.xml", model)}, &out);
    EXPECT_THAT(status, IsOk()) << '\n' << Read(name + "/task.textproto");
    return Path(name + "/task.textproto");
  }
  absl::Status Check(const std::string& file) {
    std::ostringstream out;
    absl::Status status = RunCheckTaskCommand({file, 300, 1}, &out);
    printed_ = out.str();
    return status;
  }

  const testing::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  std::string printed_;
};

TEST_F(TaskCommands, ANewTaskHasTheModelsJointsActuatorsAndSensorsAndPasses) {
  const std::string file = New("My-Arm", kArm);
  const auto task = text::LoadTask(file);
  ASSERT_THAT(task, IsOk());
  EXPECT_EQ(task->definition().name(), "my_arm");
  EXPECT_EQ(task->definition().horizon(), 500u);
  const v1::ResolvedTask& resolved = task->resolved();
  EXPECT_THAT(resolved.observation(),
              ElementsAre("shoulder.sin", "shoulder.cos", "elbow", "shoulder_velocity", "elbow_velocity"));
  EXPECT_THAT(resolved.action(), ElementsAre("shoulder", "elbow"));
  EXPECT_THAT(resolved.state(), ElementsAre("shoulder", "elbow", "shoulder_velocity", "elbow_velocity"));
  EXPECT_NEAR(resolved.control_dt(), 0.02, 1e-12);
  EXPECT_THAT(Read("My-Arm/task.textproto"),
              AllOf(HasSubstr("extra { sensor: \"elbow\" name: \"sensor_elbow\" }"), HasSubstr("refresh: \"all\""),
                    HasSubstr("reward: \"-sqrt((hand.x - goal_x)^2")));
  std::string with_known = Read("My-Arm/task.textproto");
  for (size_t at = 0; (at = with_known.find("# known {", at)) != std::string::npos;) with_known.erase(at, 2);
  Write("My-Arm/with_known.textproto", with_known);
  const auto known = text::LoadTask(Path("My-Arm/with_known.textproto"));
  ASSERT_THAT(known, IsOk());
  ASSERT_EQ(known->resolved().known_size(), 3) << "the suggested constraints: a joint's two limits, a half-space";
  ASSERT_THAT(Check(Path("My-Arm/with_known.textproto")), IsOk()) << printed_;
  EXPECT_THAT(printed_, HasSubstr("known rows   3: range_elbow_upper, range_elbow_lower, reach_hand\n"));
  const double radian = 3.14159265358979 / 180;
  EXPECT_GE(resolved.start_state(1), 10 * radian) << "the reference, 0, lies outside the joint's range";
  ASSERT_THAT(Check(file), IsOk()) << printed_;
  EXPECT_THAT(printed_, AllOf(HasSubstr("action       2: shoulder, elbow, torque control"),
                              HasSubstr("x            none"), HasSubstr("observation shoulder.sin"),
                              HasSubstr("extra sensor_elbow"), HasSubstr("G: 4 x 2, condition number"),
                              HasSubstr("of the rate of bare mj_step"), HasSubstr("All numbers were finite")));
}

TEST_F(TaskCommands, ModelsOfManyKindsGiveTasksThatPass) {
  const std::string motor = R"(<actuator><motor name="m" joint="j"/></actuator></mujoco>)";
  const std::vector<std::string> models = {
      // A slide without limits, no site, an actuator without a range.
      R"(<mujoco><worldbody><body><joint name="j" type="slide"/><geom size="0.1"/></body></worldbody>)" + motor,
      // A joint called like a number of the expressions, names with other characters, a keyframe, a fixed goal.
      R"(<mujoco><worldbody><site name="the goal" pos="1 0 0"/><body><joint name="j" axis="0 1 0"/>
         <geom fromto="0 0 0 1 0 0" type="capsule" size="0.1"/><site name="tip-1" pos="1 0 0"/><body>
         <joint name="time" axis="0 0 1" limited="true" range="-45 45"/><geom size="0.2"/></body></body></worldbody>
         <keyframe><key name="home" qpos="0.5 0.1"/></keyframe>)" +
          motor,
      // A ball to push (free), a mocap obstacle, a site and a free joint of one name, unnamed things.
      R"(<mujoco><worldbody><body><joint name="j" type="slide" limited="true" range="-1 1"/><geom size="0.1"/></body>
         <body pos="0 0 2"><freejoint name="ball"/><geom size="0.1"/><site name="ball"/></body>
         <body name="obstacle" mocap="true" pos="0 0 4"><geom size="0.1"/></body></worldbody>
         <sensor><framepos objtype="site" objname="ball"/></sensor>)" +
          motor,
      // A flying body driven at a site.
      R"(<mujoco><worldbody><body><freejoint name="j"/><geom size="0.1"/><site name="rotor"/></body></worldbody>
         <actuator><motor name="thrust" site="rotor" gear="0 0 1 0 0 0" ctrllimited="true" ctrlrange="0 9"/>
         <motor site="rotor" gear="1 0 0 0 0 0"/></actuator></mujoco>)",
  };
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string name = "robot" + std::to_string(i), file = New(name, models[i]);
    EXPECT_THAT(Check(file), IsOk()) << Read(name + "/task.textproto") << printed_;
  }
  EXPECT_THAT(Read("robot1/task.textproto"),
              AllOf(HasSubstr("reward: \"-distance\""), HasSubstr("keyframe: \"home\""), HasSubstr("\"joint_time\"")));
  EXPECT_THAT(
      Read("robot2/task.textproto"),
      AllOf(HasSubstr("uncontrolled { joint: \"ball\" }"), HasSubstr("extra { site: \"ball\" name: \"site_ball\" }"),
            HasSubstr("motion { body: \"obstacle\""), HasSubstr("sensor number 0 has no name")));
}

TEST_F(TaskCommands, TheFilesOfAModelAreCopiedSoThatTheFolderIsWhole) {
  Write("source/parts/body.xml", R"(<mujoco><asset><mesh name="box" file="box.obj"/></asset><worldbody><body>
    <joint name="slide" type="slide"/><geom type="mesh" mesh="box"/></body></worldbody></mujoco>)");
  Write("source/meshes/box.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
  const std::string file = New("boxes", R"(<mujoco><compiler meshdir="meshes"/><include file="parts/body.xml"/>
    <actuator><motor name="m" joint="slide"/></actuator></mujoco>)");
  fs::remove_all(folder_ / "source");
  EXPECT_THAT(Check(file), IsOk());
}

TEST_F(TaskCommands, AFileOfAModelMayHaveTheNameOfTheTaskOrOfTheModel) {
  const std::string body = R"(<mujoco><worldbody><body><joint name="slide" type="slide"/><geom size="0.1"/></body>
    </worldbody></mujoco>)";
  const std::string head = "<mujoco><include file=\"", end = R"("/><actuator><motor name="m" joint="slide"/></actuator>
    </mujoco>)";
  Write("source/panda.xml", body);
  Write("source/parts/robot.xml", body);
  const std::string scene = Write("source/scene.xml", head + "panda.xml" + end);
  const std::string robot = Write("source/robot.xml", head + "parts/robot.xml" + end);
  std::ostringstream out;
  EXPECT_EQ(RunNewTaskCommand({Path("panda"), scene}, &out), absl::OkStatus());
  EXPECT_EQ(RunNewTaskCommand({Path("two"), robot}, &out), absl::OkStatus());
  fs::remove_all(folder_ / "source");
  EXPECT_THAT(Check(Path("panda/task.textproto")), IsOk());
  EXPECT_THAT(Check(Path("two/task.textproto")), IsOk());
  EXPECT_EQ(Read("two/robot.xml"), head + "2_robot.xml" + end);
  EXPECT_EQ(Read("two/2_robot.xml"), body);
}

TEST_F(TaskCommands, AFolderThatIsNotEmptyIsNotTouched) {
  Write("mine/notes.txt", "keep");
  std::ostringstream out;
  const absl::Status status = RunNewTaskCommand({Path("mine"), Write("model.xml", kArm)}, &out);
  EXPECT_THAT(std::string(status.message()), HasSubstr("exists and is not empty"));
  EXPECT_FALSE(fs::exists(folder_ / "mine" / "task.textproto"));
}

TEST_F(TaskCommands, AModelWithoutActuatorsIsRefusedWithLinesToAdd) {
  std::ostringstream out;
  const std::string model = Write("model.xml", R"(<mujoco><worldbody><body><joint name="knee"/><geom size="0.1"/></body>
    </worldbody></mujoco>)");
  const std::string message(RunNewTaskCommand({Path("legs"), model}, &out).message());
  EXPECT_THAT(message, AllOf(HasSubstr("it has no actuator"), HasSubstr("<motor name=\"knee\" joint=\"knee\"")));
  EXPECT_FALSE(fs::exists(folder_ / "legs"));
  EXPECT_THAT(std::string(RunNewTaskCommand({Path("legs"), Path("absent.xml")}, &out).message()),
              HasSubstr("there is no file"));
}

TEST_F(TaskCommands, TheCheckFindsNumbersThatAreNotFiniteAndViolatedStarts) {
  const std::string file = New("arm", kArm);
  std::string text = Read("arm/task.textproto");
  const std::string more = "cost { name: \"never\" value: \"-1\" } cost { name: \"always\" value: \"1\" }\n";
  ASSERT_EQ(absl::StrReplaceAll({{"reward: \"", more + "reward: \"log(hand.x - 9) "}}, &text), 1);
  Write("arm/task.textproto", text);
  const absl::Status status = Check(file);
  EXPECT_THAT(std::string(status.message()), HasSubstr("arm/task.textproto: not always finite: reward"));
  EXPECT_THAT(printed_, AllOf(HasSubstr("cost always: violated in 100 % of the steps"),
                              HasSubstr("starts violate it already"), HasSubstr("cost never: violated in 0 %")));
}

TEST_F(TaskCommands, TheCheckNamesAnActuatorThatNeverMovesTheConstraintState) {
  const std::string file = New("pair", R"(<mujoco><worldbody>
    <body><joint name="a" type="slide"/><geom size="0.1"/></body>
    <body pos="0 0 1"><joint name="b" type="slide"/><geom size="0.1"/></body></worldbody>
    <actuator><motor name="a" joint="a"/><motor name="b" joint="b"/></actuator></mujoco>)");
  std::string text = Read("pair/task.textproto");
  ASSERT_EQ(absl::StrReplaceAll({{"constraint_state {\n  joint: \"a\"\n", "constraint_state {\n"},
                                 {"slice {\n  name: \"joints\"", "slice {\n  name: \"b\""},
                                 {"of: \"a\"", "of: \"b_velocity\""}},
                                &text),
            3);
  Write("pair/task.textproto", text);
  ASSERT_THAT(Check(file), IsOk()) << printed_;
  EXPECT_THAT(printed_, AllOf(HasSubstr("the actuator a never moves q"), Not(HasSubstr("the actuator b never"))));
}

TEST_F(TaskCommands, AWrongTaskIsNamedWithFileLineAndChoice) {
  const std::string file = New("arm", kArm);
  std::string text = Read("arm/task.textproto");
  ASSERT_EQ(absl::StrReplaceAll({{"joint: \"elbow\" }", "joint: \"elbo\" }"}}, &text), 1);
  Write("arm/task.textproto", text);
  const std::string message(Check(file).message());
  EXPECT_THAT(message, AllOf(HasSubstr("arm/task.textproto:"), HasSubstr("observation[1].joint"),
                             HasSubstr("there are: shoulder, elbow")));
  EXPECT_THAT(std::string(Check(Path("arm")).message()), HasSubstr("must end in .textproto"));
  EXPECT_EQ(printed_, "");
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
