// Tests the control of tasks that are text files: what f and G have of the actuators, and which controls are refused.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mujoco/mujoco.h"
#include "tests/testing/text_tasks.h"

namespace datacom {
namespace {

using ::datacom::testing::TaskFolder;
using Loaded = ::datacom::testing::LoadedTask;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TextControl, TheDriftHasTheControlsOfActuatorsThatAreNotPartOfTheAction) {
  const std::string model = R"(<mujoco><worldbody>
    <body><joint name="a" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
    <body pos="0 0 2"><joint name="b" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body></worldbody>
    <actuator><motor name="a" joint="a" ctrllimited="true" ctrlrange="-1 1"/><motor name="b" joint="b"/></actuator>
    <keyframe><key name="home" ctrl="0 3"/></keyframe></mujoco>)";
  const std::string task = R"(name: "pair" model: "model.xml" observation { joint: "*" } reward: "0"
    cost { name: "c" value: "0" } start { keyframe: "home" } control { actuator: "a" refresh: ")";
  for (const std::string refresh : {"kinematics", "nothing"}) {
    for (const std::string options : {"", "randomisation { mass { low: 2 high: 2 } }"}) {
      TaskFolder folder(model, task + refresh + "\" }");
      Loaded pair(folder.task(), options);
      RandomStream stream(1);
      pair.task->Reset(&stream, pair.observation.data());
      pair.Evaluate();
      EXPECT_THAT(pair.f, ElementsAre(0, 0, 0, 3)) << refresh << options;
      EXPECT_THAT(pair.G, ElementsAre(0, 0, 1, 0)) << refresh << options;
    }
  }
}

#if mjVERSION_HEADER >= 314
TEST(TextControl, TheDriftWithoutPassiveForcesHasNoGravityWhereItIsCompensated) {
  const std::string model = R"(<mujoco><worldbody><body gravcomp="1"><joint name="a" type="slide" damping="2" )",
                    rest = R"(/><geom size="0.1" mass="1"/></body></worldbody><actuator>
    <motor name="m" joint="a" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>)";
  for (const std::string by : {"", "actuatorgravcomp=\"true\""}) {
    TaskFolder folder(model + by + rest, R"(name: "lift" model: "model.xml" observation { joint: "a" } reward: "0"
      cost { name: "c" value: "0" } start { joint { joint: "a" velocity { low: 3 high: 3 } } }
      constraint_state { passive_forces: false })");
    Loaded lift(folder.task());
    lift.task->Reset(nullptr, lift.observation.data());
    lift.Evaluate();
    EXPECT_THAT(lift.f, ElementsAre(3, ::testing::DoubleNear(0, 1e-12))) << by;
  }
}
#endif

#if mjVERSION_HEADER >= 331
TEST(TextControl, FAndGHaveNoLimitsOfForcesAtJointsAndTendons) {
  const std::string limit = R"(actuatorfrclimited="true" actuatorfrcrange="-0.25 0.25")";
  TaskFolder folder(R"(<mujoco><worldbody>
    <body><joint name="a" type="slide" )" +
                        limit + R"(/><geom size="0.1" mass="1"/></body>
    <body pos="0 0 2"><joint name="b" type="slide"/><geom size="0.1" mass="1"/></body></worldbody>
    <tendon><fixed name="t" )" +
                        limit + R"(><joint joint="b" coef="1"/></fixed></tendon>
    <actuator><motor name="a" joint="a" ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="b" tendon="t" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>)",
                    R"(name: "pair" model: "model.xml" observation { joint: "*" } reward: "0"
    cost { name: "c" value: "0" })");
  Loaded pair(folder.task());
  pair.task->Reset(nullptr, pair.observation.data());
  pair.Evaluate();
  EXPECT_THAT(pair.G, ElementsAre(0, 0, 0, 0, 1, 0, 0, 1));
}
#endif

TEST(TextControl, ControlsThatDoNotFitTheModelAreRefused) {
  const std::string model = R"(<mujoco><worldbody><body><joint name="a" type="slide"/><geom size="0.1"/>
    <body pos="0 0 1"><joint name="b" type="slide"/><geom size="0.1"/></body></body></worldbody>
    <actuator><motor name="push" joint="a"/><motor name="pull" joint="a" ctrllimited="true" ctrlrange="-2 2"/>
    <motor name="other" joint="b"/></actuator></mujoco>)";
  const auto error = [&](const std::string& control) {
    return TaskFolder(model, R"(name: "pair" model: "model.xml" observation { joint: "*" } reward: "0"
      cost { name: "c" value: "0" } control { )" +
                                 control + "}")
        .Error();
  };
  const std::string all = "range { actuator: \"*\" low: -1 high: 1 } ";
  EXPECT_EQ(error(all), "");
  EXPECT_THAT(error(all + "range { actuator: \"typo*\" low: -1 high: 1 }"),
              AllOf(HasSubstr("control.range[1].actuator: no actuator of the model matches \"typo*\""),
                    HasSubstr("push, pull, other")));
  EXPECT_THAT(error("actuator: \"pull\" range { actuator: \"other\" low: 1 high: 1 }"),
              HasSubstr("control.range[0].high: 1 is not above low, 1"))
      << "of an actuator that is not part of the action";
  EXPECT_EQ(error(all + "range { actuator: \"push\" low: -9 high: 9 }"), "")
      << "the model has no range for it, and the last range counts";
  EXPECT_THAT(error(all + "range { actuator: \"p*\" low: -9 high: 9 }"),
              HasSubstr("control.range[1]: goes beyond the control range of actuator pull"));
  EXPECT_THAT(error(all + "mode: \"acceleration\""), HasSubstr("control.actuator: push and pull drive the same joint"));
  EXPECT_EQ(error(all + "actuator: \"pull\" actuator: \"other\" mode: \"acceleration\""), "");
  EXPECT_THAT(error(all + "mode: \"acceleration\" actuator_mode { actuator: \"*\" mode: \"torque\" }"),
              HasSubstr("control.actuator_mode[0]: acceleration control is for all actuators of the action"));
  EXPECT_THAT(error(all + "actuator_mode { actuator: \"typo\" mode: \"torque\" }"),
              HasSubstr("control.actuator_mode[0].actuator: no actuator of the model matches \"typo\""));
}

TEST(TextControl, AModeThatIsNotTheActuatorsOwnIsRefusedWithTheActuatorsName) {
  const auto error = [](const std::string& actuator, const std::string& control) {
    return TaskFolder(R"(<mujoco><worldbody><body><joint name="a" type="slide"/><geom size="0.1"/>
      <body pos="0 0 1"><joint name="turn" axis="0 1 0"/><geom size="0.1"/></body></body></worldbody><actuator>)" +
                          actuator + "</actuator></mujoco>",
                      R"(name: "slider" model: "model.xml" observation { joint: "a" } reward: "0"
      cost { name: "c" value: "0" } control { range { actuator: "m" low: -1 high: 1 } )" +
                          control + "}")
        .Error();
  };
  const std::string velocity = "mode: \"velocity\"", position = "mode: \"position\"";
  const std::string differences = " dynamics: \"finite_difference\"";
  for (const char* own : {R"(<velocity name="m" joint="a" kv="3"/>)",
                          R"(<general name="m" joint="a" gainprm="3" biastype="affine" biasprm="0 0 -3"/>)"}) {
    EXPECT_EQ(error(own, velocity), "");
    EXPECT_THAT(error(own, position), HasSubstr("control.mode: actuator m is no position servo")) << own;
  }
  EXPECT_EQ(error(R"(<position name="m" joint="a" kp="3"/>)", position), "");
  EXPECT_EQ(error(R"(<general name="m" joint="a" gainprm="3" biastype="affine" biasprm="0 -3 -1"/>)", position), "");
  for (const char* other : {R"(<motor name="m" joint="a"/>)", R"(<position name="m" joint="a" kp="3"/>)",
                            R"(<general name="m" joint="a" gainprm="3" biastype="affine" biasprm="0 0 -2"/>)",
                            R"(<general name="m" joint="a" gainprm="3" biastype="affine" biasprm="1 0 -3"/>)",
                            R"(<general name="m" joint="a" gainprm="3" biastype="affine" biasprm="0 -1 -3"/>)"}) {
    for (const std::string& dynamics : {std::string(), differences}) {
      EXPECT_THAT(error(other, velocity + dynamics),
                  AllOf(HasSubstr("control.mode: actuator m is no velocity servo: its force is not kv * (control - "),
                        HasSubstr("actuator_mode { actuator: \"m\" mode: \"torque\" }")))
          << other;
    }
  }
  const std::string late =
      R"(<general name="m" joint="a" dyntype="filter" dynprm="0.1" gainprm="3" biastype="affine" biasprm="0 -3 0"/>)";
  EXPECT_THAT(error(late, position), HasSubstr("the servo m follows its control with a delay"));
  EXPECT_EQ(error(late, position + differences), "");
  const std::string turn = R"(<position name="m" joint="turn" kp="3"/>)";
  EXPECT_THAT(error(turn, position), HasSubstr("the joint of m turns without limits"));
  EXPECT_EQ(error(turn, position + differences), "");
  EXPECT_THAT(error(turn, differences + "} constraint_state { passive_forces: false "),
              HasSubstr("constraint_state.passive_forces: finite differences have all forces"));
}

#if mjVERSION_HEADER >= 4000000
TEST(TextControl, AnActuatorOfMujoco4WithSeveralControlsIsRefused) {
  const auto error = [](const std::string& actuator) {
    return TaskFolder(R"(<mujoco><worldbody><body><joint name="a" type="slide"/><geom size="0.1"/></body></worldbody>
      <actuator>)" + actuator +
                          "</actuator></mujoco>",
                      R"(name: "slider" model: "model.xml" observation { joint: "a" } reward: "0"
      cost { name: "c" value: "0" } control { range { actuator: "m" low: -1 high: 1 } })")
        .Error();
  };
  EXPECT_EQ(error(R"(<motor name="m" joint="a"/>)"), "");
  EXPECT_THAT(error(R"(<pid name="p" joint="a" kp="3" input="pos vel"/><motor name="m" joint="a"/>)"),
              HasSubstr("model: actuator p has 2 controls; a task needs actuators with one"));
}

TEST(TextControl, APidControllerOfAPositionHasAForceThatIsAffineInItsControl) {
  const TaskFolder folder(R"(<mujoco><worldbody><body><joint name="a" type="slide"/><geom size="0.1" mass="1"/></body>
    </worldbody><actuator><pid name="m" joint="a" kp="3" input="pos" ctrllimited="true" ctrlrange="-2 2"/></actuator>
    </mujoco>)",
                          R"(name: "slider" model: "model.xml" observation { joint: "a" } reward: "0"
    cost { name: "c" value: "0" } randomise { actuator: "m" factor { low: 0.5 high: 2 } })");
  Loaded slider(folder.task());
  EXPECT_EQ(slider.model.without_map, "");
  slider.task->Reset(nullptr, slider.observation.data());
  slider.Evaluate();
  EXPECT_EQ(slider.G[0], 0);
  EXPECT_NEAR(slider.G[1], 6, 1e-12);
}
#endif

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
