// Tests `task new` and `task check`: the draft of a task file loads for models of many kinds, and the check finds what
// is wrong with a task.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/files.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "datacom/v1/task.pb.h"
#include "deploy/tools/play/commands.h"
#include "deploy/tools/play/model_fit.h"
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

TEST_F(TaskCommands, ANameWithALineBreakBecomesNoSetting) {
  std::string model = kArm;
  model.insert(model.find("<worldbody>") + 11,
               "<body name='wall&#10;absorbing: &quot;1&quot;&#10;# moves' mocap='true'><geom size='0.1'/></body>");
  New("arm", model);
  EXPECT_THAT(Read("arm/task.textproto"),
              AllOf(Not(HasSubstr("\nabsorbing")), HasSubstr("# Moves the body \"wall\\nabsorbing: \\\"1\\\"")));
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
  EXPECT_EQ(Read("two/robot.xml"), head + "parts/robot.xml" + end);
  EXPECT_EQ(Read("two/parts/robot.xml"), body);
}

TEST_F(TaskCommands, AFolderThatIsNotEmptyIsNotTouched) {
  Write("mine/notes.txt", "keep");
  std::ostringstream out;
  const absl::Status status = RunNewTaskCommand({Path("mine"), Write("model.xml", kArm)}, &out);
  EXPECT_THAT(std::string(status.message()), HasSubstr("exists and is not empty"));
  EXPECT_FALSE(fs::exists(folder_ / "mine" / "task.textproto"));
}

TEST_F(TaskCommands, ATaskOfAModelWhoseActuatorsAllHaveAnActivationUsesFiniteDifferences) {
  const std::string file =
      New("filtered", R"(<mujoco><worldbody><body><joint name="knee" range="-90 90" limited="true"/>
    <geom size="0.1" pos="0 0 0.3"/></body></worldbody><actuator>
    <general name="a" joint="knee" dyntype="filter" dynprm="0.1" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>)");
  EXPECT_THAT(Read("filtered/task.textproto"),
              AllOf(HasSubstr("\n  actuator: \"a\""), HasSubstr("\n  dynamics: \"finite_difference\"\n")));
  EXPECT_THAT(Check(file), IsOk()) << printed_;
  EXPECT_THAT(printed_, HasSubstr("The safe map can rely on f and G."));
}

TEST_F(TaskCommands, AKeyframeWithoutANameGetsOneAndIsTheStart) {
  New("pose", R"(<mujoco><worldbody><body><joint name="hip" type="slide"/><geom size="0.1"/></body></worldbody>
    <actuator><motor name="m" joint="hip"/></actuator>
    <keyframe><key qpos="0.25"/><key name="key"/><key qpos="0.5"/></keyframe></mujoco>)");
  EXPECT_THAT(Read("pose/task.textproto"),
              AllOf(HasSubstr("#   keyframe key_2, keyframe key_3\n"), HasSubstr("\n  keyframe: \"key_2\"\n"),
                    HasSubstr("position { low: 0.2 high: 0.3 }")));
}

TEST_F(TaskCommands, AModelWithoutActuatorsIsRefusedWithLinesThatWork) {
  const std::string bodies = R"(<mujoco><worldbody><body name="drone"><freejoint/><geom size="0.1"/>
    <body name="eye"><joint name="ball" type="ball"/><geom size="0.1" pos="0.1 0 0"/></body></body></worldbody>
    <actuator></actuator></mujoco>)";
  std::ostringstream out;
  const std::string message(RunNewTaskCommand({Path("refused"), Write("source/model.xml", bodies)}, &out).message());
  EXPECT_THAT(message, HasSubstr("need these names in the model first: number 0 (in body drone)"));
  const size_t begin = message.find("  <actuator>"), end = message.find("</actuator>") + 11;
  ASSERT_LT(begin, end) << message;
  std::string model = bodies;
  model.insert(model.find("</mujoco>"), message.substr(begin, end - begin));
  EXPECT_EQ(absl::StrReplaceAll({{"<freejoint/>", "<freejoint name=\"drone\"/>"}}, &model), 1);
  const auto task = text::LoadTask(New("added", model));
  ASSERT_THAT(task, IsOk());
  EXPECT_THAT(task->resolved().action(), ElementsAre("drone", "ball"));
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

TEST_F(TaskCommands, CostAndRewardOfANewTaskHaveEveryJoint) {
  std::string chain, ends, motors;
  for (int i = 1; i <= 20; ++i) {
    const std::string n = std::to_string(i);
    absl::StrAppend(&chain, "<body pos='0.1 0 0'><joint name='hinge_with_a_long_name_", n,
                    "' axis='0 1 0' limited='true' range='10 100'/><geom size='0.02' pos='0.05 0 0' contype='0'/>");
    ends += "</body>";
    absl::StrAppend(&motors, "<motor name='m", n, "' joint='hinge_with_a_long_name_", n,
                    "' ctrllimited='true' ctrlrange='-1 1'/>");
  }
  const std::string file =
      New("chain", "<mujoco><worldbody>" + chain + ends + "</worldbody><actuator>" + motors + "</actuator></mujoco>");
  const auto task = text::LoadTask(file);
  ASSERT_THAT(task, IsOk());
  for (int i = 1; i <= 20; ++i) {
    const std::string name = "hinge_with_a_long_name_" + std::to_string(i) + " - ";
    EXPECT_THAT(task->definition().cost(0).value(),
                HasSubstr("abs(" + name + "0.9599) / 0.7854"));  // 55 and 45 degrees
    EXPECT_THAT(task->definition().reward(),
                HasSubstr("(" + name + "0.3473)^2"));  // 19.9 degrees
  }
  std::istringstream lines(Read("chain/task.textproto"));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 130u) << line;
  Check(file).IgnoreError();  // such a chain does not stay finite
  EXPECT_THAT(printed_, HasSubstr("cost joint_range: violated in"));
  EXPECT_THAT(printed_, Not(HasSubstr("starts violate it already")));
}

TEST_F(TaskCommands, TheRewardOfANewTaskIsLargestAtTheKeyframe) {
  const std::string file = New("pose", R"(<mujoco><worldbody><body pos="0 0 1">
    <joint name="free" type="free"/><geom size="0.1"/><body><joint name="hip" axis="0 1 0" limited="true" range="0 60"/>
    <geom size="0.1" pos="0.2 0 0"/><body><joint name="ball" type="ball"/><geom size="0.1" pos="0.1 0 0"/>
    <body><joint name="wheel" axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/></body></body></body></body></worldbody>
    <actuator><motor name="m" joint="hip"/></actuator><keyframe>
    <key name="home" qpos="1 2 3 0.6 0 0.8 0 0.5 0.8 0.6 0 0 2"/></keyframe></mujoco>)");
  const auto task = text::LoadTask(file);
  ASSERT_THAT(task, IsOk()) << Read("pose/task.textproto");
  EXPECT_EQ(task->definition().reward(),
            "-((free.x - 1)^2 + (free.y - 2)^2 + (free.z - 3)^2 + 1 - (0.6 * free.qw + 0.8 * free.qy)^2 + (hip - 0.5)^2"
            " + 1 - (0.8 * ball.w + 0.6 * ball.x)^2 + 1 - (0.9093 * wheel.sin - 0.4161 * wheel.cos))");
}

TEST_F(TaskCommands, WhatHasNoNameIsNamedInTheCopyOfTheModel) {
  Write("source/legs.xml", R"(<mujoco><worldbody><body name="torso" pos="0 0 1"><freejoint/><geom size="0.1"/>
    <body name="thigh"><!-- <joint/> --><joint axis="0 1 0"/><joint name="torso" axis="1 0 0"/><geom size="0.1" pos="0.2 0 0"/>
    </body></body></worldbody></mujoco>)");
  const std::string file = New("ant", R"(<mujoco><default><joint damping="1"/></default><include file="legs.xml"/>
    <actuator><motor joint="torso" gear="150"/><motor joint="torso" gear="50"/></actuator></mujoco>)");
  EXPECT_THAT(Read("ant/legs.xml"), AllOf(HasSubstr("<freejoint name=\"torso_2\"/>"), HasSubstr("<!-- <joint/> -->"),
                                          HasSubstr("<joint name=\"thigh\" axis=\"0 1 0\"/>")));
  EXPECT_THAT(Read("ant/model.xml"), AllOf(HasSubstr("<motor name=\"torso\" joint=\"torso\" gear=\"150\"/>"),
                                           HasSubstr("<motor name=\"torso_2\" joint=\"torso\" gear=\"50\"/>"),
                                           HasSubstr("<default><joint damping=\"1\"/></default>")));
  EXPECT_THAT(Read("ant/task.textproto"),
              HasSubstr("#   joint torso_2, joint thigh, actuator torso, actuator torso_2\n"));
  EXPECT_EQ(Read("source/legs.xml").find("torso_2"), std::string::npos) << "the original stays as it is";
  const auto task = text::LoadTask(file);
  ASSERT_THAT(task, IsOk());
  EXPECT_THAT(task->resolved().action(), ElementsAre("torso", "torso_2"));
  EXPECT_THAT(Check(file), IsOk()) << printed_;
}

TEST_F(TaskCommands, NamesThatLookTheSameInExpressionsStayDifferent) {
  const std::string file = New("two", R"(<mujoco><worldbody><body><joint name="плечо" type="slide"/><geom size="0.1"/>
    <body><joint name="кисть" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/></body></body></worldbody>
    <actuator><motor name="m" joint="плечо"/></actuator></mujoco>)");
  const auto task = text::LoadTask(file);
  ASSERT_THAT(task, IsOk());
  EXPECT_THAT(task->resolved().state(), ElementsAre("______0", "______1", "______0_velocity", "______1_velocity"));
  EXPECT_THAT(Read("two/task.textproto"), HasSubstr("joint: \"плечо\""));
}

TEST_F(TaskCommands, VisualMeshesStayBehindUnlessABodysMassComesFromThem) {
  const std::string tetrahedron = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
  for (const char* const name : {"shell.obj", "skin.obj", "heavy.obj", "hull.obj", "seen.obj"}) {
    Write(std::string("source/meshes/") + name, tetrahedron);
  }
  const std::string model = Write("source/model.xml", R"(<mujoco><compiler meshdir="meshes"/>
    <default><default class="visual"><geom type="mesh" contype="0" conaffinity="0" group="2"/></default></default>
    <asset><material name="paint" rgba="1 0 0 1"/><mesh name="outside" file="shell.obj"/><mesh file="skin.obj"/>
    <mesh file="heavy.obj"/><mesh file="hull.obj"/><mesh file="seen.obj"/></asset>
    <worldbody><geom class="visual" mesh="skin"/><body name="a"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <joint name="a" type="slide"/><geom class="visual" mesh="outside" material="paint"/><geom name="hull" type="mesh" mesh="hull"/>
    <geom class="visual" name="seen" mesh="seen"/></body>
    <body name="b" pos="5 0 0"><joint name="b" type="slide"/><geom class="visual" mesh="heavy"/></body></worldbody>
    <sensor><framepos objtype="geom" objname="seen"/></sensor>
    <actuator><motor name="m" joint="a"/></actuator></mujoco>)");
  std::ostringstream out;
  ASSERT_THAT(RunNewTaskCommand({Path("light"), model, true}, &out), IsOk());
  EXPECT_THAT(out.str(),
              AllOf(HasSubstr("Without 2 of 3 geoms that only draw a mesh"), HasSubstr("1 stay, because the mass")));
  EXPECT_EQ(ListFolder(Path("light")).value(), (std::vector<std::string>{"meshes", "model.xml", "task.textproto"}));
  EXPECT_EQ(ListFolder(Path("light/meshes")).value(), (std::vector<std::string>{"heavy.obj", "hull.obj", "seen.obj"}));
  EXPECT_THAT(Read("light/model.xml"),
              AllOf(Not(HasSubstr("outside")), Not(HasSubstr("paint")), HasSubstr("heavy.obj")));
  EXPECT_THAT(Check(Path("light/task.textproto")), IsOk()) << printed_;
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

TEST_F(TaskCommands, TheCheckShowsWhatIsSeenAndLoggedAndEndsEpisodesThatAreTruncated) {
  const std::string file = New("arm", kArm);
  std::string text = Read("arm/task.textproto");
  const std::string more =
      "log { name: \"one\" value: \"1\" } log { name: \"broken\" value: \"0/0\" } truncated: \"time > 0.05\"\n"
      "observation { number: \"action.*\" history: 2 } log { name: \"huge\" value: \"1e20\" }\n";
  ASSERT_EQ(absl::StrReplaceAll({{"reward: \"", more + "reward: \""}}, &text), 1);
  Write("arm/task.textproto", text);
  EXPECT_THAT(std::string(Check(file).message()), HasSubstr("not always finite: broken, huge; numbers above"));
  EXPECT_THAT(printed_, AllOf(HasSubstr("log one "), HasSubstr("action.shoulder.1, action.elbow.1\n"),
                              ::testing::ContainsRegex("\n[1-9][0-9]+ episodes ended early")));
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

// A slider of 1 kg with a velocity servo: in a time step its velocity comes nearer to the target by kv * 0.01 s / 1 kg.
std::string Servo(double kv) {
  return absl::StrCat(R"(<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody><body>
    <joint name="j" type="slide"/><geom size="0.1" mass="1"/></body></worldbody><actuator>
    <velocity name="m" joint="j" ctrllimited="true" ctrlrange="-1 1" kv=")",
                      kv, R"("/></actuator></mujoco>)");
}

TEST_F(TaskCommands, TheFitIsTheErrorOfFAndGOverAControlStep) {
  const std::string task = R"(name: "servo" model: "model.xml" horizon: 50 observation { joint: "j" } reward: "0"
    cost { name: "c" value: "-1" } control { period: 0.04 )";
  Write("servo/model.xml", Servo(50));
  const auto fit = [&](const std::string& more) {
    const std::string file = Write("servo/task.textproto", task + more + "}");
    v1::TaskOptions options;
    *options.MutableExtension(v1::text_task) = text::LoadTask(file).value();
    return MeasureFit("servo", options, {3, 200}).value();
  };
  // Four time steps leave (1 - 0.5)^4 of the distance to the target, f + G u says 4 * 0.5 of it are made.
  const ModelFit instantaneous = fit("");
  EXPECT_NEAR(instantaneous.control_step, 4 * 0.5 / (1 - 0.0625) - 1, 1e-6);
  EXPECT_NEAR(*instantaneous.one_step, 0, 1e-6);
  EXPECT_EQ(instantaneous.steps, 200u);
  EXPECT_FALSE(instantaneous.positions);
  EXPECT_EQ(instantaneous.contacts, 0);
  EXPECT_THAT(JudgeFit(instantaneous), HasSubstr("cannot rely on f and G: to predict no change would be as good"));
  const ModelFit differences = fit("dynamics: \"finite_difference\"");
  EXPECT_NEAR(differences.control_step, 0, 1e-6) << "the robot is linear";
  EXPECT_FALSE(differences.one_step.has_value());
  const ModelFit velocity = fit("mode: \"velocity\"");
  EXPECT_TRUE(velocity.positions);
  EXPECT_THAT(DescribeFit(velocity), HasSubstr("predicts the change of q's positions over a control step"));
}

TEST_F(TaskCommands, TheFitCountsContactsLimitsEqualitiesAndFrictionOfWhatQMoves) {
  Write("box/model.xml", R"(<mujoco><worldbody><geom type="plane" size="9 9 1"/><body pos="0 0 0.099">
    <joint name="x" type="slide" axis="1 0 0" frictionloss="0.1" limited="true" range="0.5 1"/><geom size="0.1"/></body>
    <body pos="3 0 1"><joint name="y" type="slide" axis="0 1 0"/><geom size="0.1"/></body></worldbody>
    <equality><joint joint1="x" joint2="y"/></equality>
    <actuator><motor name="m" joint="x" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>)");
  const auto fit = [&](const std::string& joint) {
    const std::string file =
        Write("box/task.textproto", R"(name: "box" model: "model.xml" observation { joint: "x" } reward: "0"
      cost { name: "c" value: "-1" } constraint_state { joint: ")" +
                                        joint + "\" }");
    v1::TaskOptions options;
    *options.MutableExtension(v1::text_task) = text::LoadTask(file).value();
    return MeasureFit("box", options, {0, 5}).value();
  };
  const ModelFit moved = fit("x");
  EXPECT_EQ(moved.contacts, 1);
  EXPECT_EQ(moved.limits, 1) << "the reference, 0, is outside of the range";
  EXPECT_EQ(moved.equalities, 1);
  EXPECT_EQ(moved.friction_losses, 1);
  EXPECT_THAT(DescribeFit(moved), HasSubstr("; contacts in 100 % of the steps; a limit of a joint acts in 100 % of the "
                                            "steps; equality constraints: 1; joints with friction loss: 1"));
  EXPECT_EQ(fit("y").contacts, 0) << "the box touches the floor, but is not part of q";
}

TEST_F(TaskCommands, ATaskOfTheRegisterHasAFitToo) {
  const auto fit = MeasureFit("cartpole", v1::TaskOptions(), {1, 200});
  ASSERT_THAT(fit, IsOk());
  EXPECT_LT(fit->control_step, kGoodFit);
  EXPECT_FALSE(fit->one_step.has_value());
}

TEST_F(TaskCommands, TheCheckSaysWhereFiniteDifferencesAreBetter) {
  const std::string file = New("servo", Servo(50));
  ASSERT_THAT(Check(file), IsOk()) << printed_;
  EXPECT_THAT(
      printed_,
      AllOf(HasSubstr("fit: under random actions f + G u predicts the change of q's velocities over a control step"),
            HasSubstr("With control { dynamics: \"finite_difference\" } the error is"),
            HasSubstr("write it for methods with a safe map")));
  std::string text = Read("servo/task.textproto");
  ASSERT_EQ(absl::StrReplaceAll({{"mode: \"torque\"", "dynamics: \"finite_difference\""}}, &text), 1);
  Write("servo/task.textproto", text);
  ASSERT_THAT(Check(file), IsOk()) << printed_;
  EXPECT_THAT(printed_, AllOf(HasSubstr("torque control, f and G by finite differences"),
                              HasSubstr("The safe map can rely on f and G."), Not(HasSubstr("the error is"))));
}

TEST_F(TaskCommands, TheCheckSaysThatAnActivationNeedsFiniteDifferences) {
  Write("muscle/model.xml",
        absl::StrReplaceAll(
            Servo(5), {{"<velocity ", "<general dyntype=\"filter\" dynprm=\"0.1\" "}, {"kv=\"5\"", "gainprm=\"5\""}}));
  const std::string file = Write("muscle/task.textproto", R"(name: "muscle" model: "model.xml" horizon: 50
    observation { joint: "j" } reward: "0" cost { name: "c" value: "-1" })");
  ASSERT_THAT(Check(file), IsOk()) << printed_;
  EXPECT_THAT(printed_, AllOf(HasSubstr("fit: no f and G: the force of actuator m is no affine function"),
                              HasSubstr("Methods without a safe map (sac, lag_sac, wcsac, ppo_lag, rcpo) can train"),
                              HasSubstr("With control { dynamics: \"finite_difference\" } the error is")));
}

TEST_F(TaskCommands, TheCheckEndsWhereEveryEpisodeEndsAtOnceAndPlaysTheStepsThatWereAskedFor) {
  const std::string file = New("arm", kArm);
  const std::string text = Read("arm/task.textproto");
  for (const char* end : {"absorbing: \"1\"", "absorbing: \"0/0\"", "truncated: \"1\""}) {
    Write("arm/task.textproto", absl::StrCat(text, end, "\n"));
    EXPECT_THAT(std::string(Check(file).message()), HasSubstr("every episode ends in its first step")) << end;
    EXPECT_THAT(printed_, HasSubstr("\n300 random steps in 300 episodes;")) << end;
  }
  Write("arm/task.textproto", text + "absorbing: \"time > 0.05\"\n");
  EXPECT_THAT(Check(file), IsOk());
  EXPECT_THAT(printed_, HasSubstr("\n300 random steps in 100 episodes;")) << "three steps each";
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
