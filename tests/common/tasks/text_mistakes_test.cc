// Tests that settings which can only be mistakes are refused by name: angles in degrees, what is given twice or does
// nothing, and limits that leave no room. Messages are literals.
#include <cmath>
#include <string>
#include <utility>

#include "common/tasks/task.h"
#include "common/tasks/text/expression.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/text_tasks.h"

namespace datacom {
namespace {

using ::datacom::testing::LoadedTask;
using ::datacom::testing::TaskFolder;
using ::testing::HasSubstr;

// The wheel has no limits, the knee 0.35 to 2.09 rad. Only the servo has no control range.
constexpr char kLeg[] = R"(<mujoco>
  <worldbody>
    <body name="goal" mocap="true" pos="1 0 1"><geom size="0.1" contype="0" conaffinity="0"/></body>
    <body pos="0 0 1"><joint name="wheel" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04"/>
      <site name="tip" pos="0.4 0 0"/>
      <body pos="0.4 0 0"><joint name="knee" axis="0 1 0" limited="true" range="20 120"/>
        <geom size="0.05" pos="0.2 0 0"/></body></body>
  </worldbody>
  <actuator>
    <motor name="motor" joint="wheel" ctrllimited="true" ctrlrange="-1 1"/>
    <position name="servo" joint="knee" kp="30"/>
  </actuator>
  <keyframe><key name="home_a" qpos="0.1 0.5"/><key name="home_b" qpos="0.2 0.6"/></keyframe>
</mujoco>)";

constexpr char kMotor[] = "control { period: 0.02 actuator: \"motor\" }";

std::string Leg(const std::string& more, const std::string& control = kMotor) {
  return "name: \"leg\" model: \"model.xml\" observation { joint: \"wheel\" } reward: \"0\" cost { name: \"c\" value: "
         "\"wheel\" } " +
         control + " " + more;
}

std::string Error(const std::string& more, const std::string& control = kMotor) {
  return TaskFolder(kLeg, Leg(more, control)).Error();
}

TEST(TextMistakes, DegreesInThePlaceOfRadiansAreRefused) {
  EXPECT_THAT(Error("start { joint { joint: \"wheel\" position { low: -180 high: 180 } } }"),
              HasSubstr("start.joint[0].position: -180 to 180 rad are more than 2 turns of joint wheel"));
  EXPECT_EQ(Error("start { joint { joint: \"wheel\" position { low: -3.2 high: 12.5 } } }"), "");
  EXPECT_THAT(
      Error("start { joint { joint: \"knee\" position { low: 30 high: 40 } } }"),
      HasSubstr("start.joint[0].position: 30 to 40 goes beyond the limits of joint knee, which are 0.349066 to"));
  const std::string equation = "known { name: \"bent\" joint_position: \"knee\" equality: true value: ";
  EXPECT_THAT(Error(equation + "90 }"), HasSubstr("known[0].value: 90 goes beyond the limits of joint knee"));
  EXPECT_EQ(Error(equation + "1.5 }"), "");
  const auto servo = [](const std::string& range) {
    return Error("", "control { period: 0.02 actuator: \"servo\" range { actuator: \"servo\" " + range + " } }");
  };
  EXPECT_THAT(servo("low: 20 high: 120"),
              HasSubstr("control.range: 20 to 120 goes far beyond the limits of the joint of servo"));
  EXPECT_EQ(servo("low: 0 high: 2.5"), "") << "a little beyond them a servo may aim";
}

TEST(TextMistakes, TheControlOfAnIntegratorIsAVelocityAndHasNoLimitsOfAJoint) {
  std::string model = kLeg;
  const std::string servo = "<position name=\"servo\" joint=\"knee\" kp=\"30\"/>";
  model.replace(model.find(servo), servo.size(),
                "<general name=\"servo\" joint=\"knee\" dyntype=\"integrator\" gainprm=\"30\" biastype=\"affine\" "
                "biasprm=\"0 -30\"/>");
  const std::string control = "control { actuator: \"servo\" range { actuator: \"servo\" low: -40 high: 40 } }";
  EXPECT_EQ(TaskFolder(model, Leg("", control)).Error(), "");
}

TEST(TextMistakes, WhatIsGivenTwiceIsRefused) {
  EXPECT_THAT(Error("start { keyframe: \"home*\" }"),
              HasSubstr("start.keyframe: \"home*\" matches 2 keyframes; a start has one"));
  EXPECT_EQ(Error("start { keyframe: \"*_b\" }"), "");
  EXPECT_THAT(
      Error("motion { body: \"goal\" speed: 1 x { low: 0 high: 1 } } motion { body: \"g*\" speed: 1 waypoint {} }"),
      HasSubstr("motion[1].body: body g* moves already"));
  EXPECT_THAT(Error("constraint_state { uncontrolled { joint: \"knee\" quantity: \"velocity\" } }"),
              HasSubstr("constraint_state.uncontrolled: the number knee_velocity is part of q, or there twice"));
  EXPECT_EQ(Error("constraint_state { joint: \"wheel\" uncontrolled { joint: \"knee\" quantity: \"velocity\" } }"), "");
  EXPECT_THAT(Error("slice { name: \"s\" x { of: \"knee\" low: 0 high: 1 } y { of: \"knee\" low: 0 high: 1 } }"),
              HasSubstr("slice[0].y.of: both axes are knee"));
  const std::string slice =
      "slice { name: \"s\" x { of: \"knee\" low: 0 high: 1 } y { of: \"wheel\" low: 0 high: 1 } }";
  EXPECT_THAT(Error(slice + slice), HasSubstr("slice[1].name: is used twice"));
}

TEST(TextMistakes, WhatNamesNoneOrSeveralElementsIsRefused) {
  EXPECT_THAT(Error("push { every { low: 1 high: 2 } }"),
              HasSubstr("push[0]: names 0 of body, joint; exactly one is needed"));
  EXPECT_THAT(Error("randomise { body: \"goal\" joint: \"knee\" factor { low: 1 high: 2 } }"),
              HasSubstr("randomise[0]: names 2 of body, joint, geom, actuator; exactly one is needed"));
  EXPECT_THAT(Error("extra { site: \"tip\" body: \"goal\" }"),
              HasSubstr("extra[0]: names 2 of joint, site, body, geom, sensor, actuator; exactly one is needed"));
}

TEST(TextMistakes, WhatWouldDoNothingIsRefused) {
  const auto control = [](const std::string& more) {
    return Error("", "control { actuator: \"motor\" " + more + " }");
  };
  EXPECT_THAT(control("range { actuator: \"servo\" low: 0 high: 1 }"),
              HasSubstr("control.range[0].actuator: \"servo\" is no part of the action"));
  EXPECT_THAT(control("actuator_mode { actuator: \"s*\" mode: \"position\" }"),
              HasSubstr("control.actuator_mode[0].actuator: \"s*\" is no part of the action"));
  EXPECT_EQ(control("range { actuator: \"*\" low: -0.5 high: 0.5 }"), "");
  EXPECT_THAT(Error("observation { actuator: \"*\" }"),
              HasSubstr("observation[1].actuator: none of 2 actuators has an activation"));
  EXPECT_THAT(Error("observation { name: \"a\" value: \"time\" actuator: \"motor\" }"),
              HasSubstr("observation[1].actuator: does not go with number or value"));
}

TEST(TextMistakes, AMarginThatLeavesNoRoomIsRefused) {
  const auto known = [](const std::string& what) { return Error("known { name: \"k\" site: \"tip\" " + what + " }"); };
  EXPECT_THAT(known("sphere { radius: 0.1 } margin: 0.2"), HasSubstr("known[0].margin: leaves no room in the sphere"));
  EXPECT_EQ(known("sphere { radius: 0.1 side: \"outside\" } margin: 0.2"), "");
  EXPECT_THAT(known("box { size { x: 1 z: 0.1 } } margin: 0.1"),
              HasSubstr("known[0].margin: leaves no room in the box"));
  EXPECT_EQ(known("box { size { x: 1 z: 0.1 } } margin: 0.05"), "");
}

TEST(TextMistakes, NamesOfTheExpressionLibraryAreFree) {
  EXPECT_EQ(Error("constant { name: \"_e\" value: 2 } constant { name: \"_pi\" value: 3 } log { name: \"l\" value: "
                  "\"_e + _pi + pi\" }"),
            "");
  EXPECT_THAT(Error("log { name: \"l\" value: \"_pi\" }"), HasSubstr("log[0].value: column 1: unknown name \"_pi\""));
}

TEST(TextMistakes, ANumberThatIsNoneIsNotLeftOutOfMinMaxAndClip) {
  const auto value = [](const std::string& text, double x) {
    const auto made = text::Expression::Compile(text, {"x"}, &x);
    return made.ok() ? made->Value() : 1000;
  };
  for (const std::string list : {"(x, 1, 2)", "(1, x, 2)", "(1, 2, x)"}) {
    EXPECT_TRUE(std::isnan(value("min" + list, std::nan("")))) << list;
    EXPECT_TRUE(std::isnan(value("max" + list, std::nan("")))) << list;
    EXPECT_EQ(value("min" + list, -3), -3) << list;
    EXPECT_EQ(value("max" + list, -3), 2) << list;
    EXPECT_EQ(value("max" + list, 7), 7) << list;
  }
  for (const std::string clip : {"clip(1, x, 2)", "clip(1, 0, x)", "clip(x, 0, 2)"}) {
    EXPECT_TRUE(std::isnan(value(clip, std::nan("")))) << clip;
    EXPECT_EQ(value(clip, 1), 1) << clip;
  }
}

TEST(TextMistakes, AConditionThatIsNoNumberIsNoSuccess) {
  for (const auto& [success, expected] : {std::pair("0/0", false), {"1", true}, {"0", false}, {"-1", true}}) {
    const TaskFolder folder(kLeg, Leg("success: \"" + std::string(success) + "\""));
    const LoadedTask task(folder.task());
    EXPECT_EQ(task.task->Success(), expected) << success;
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
