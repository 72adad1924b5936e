// Tests the quantities that text tasks copy from MuJoCo's arrays: centres of mass, inertias, forces, ranges. Expected
// values are literals: a ball of 2 kg that rests on the floor under a motor, and carries a mass of 1 kg beside it; rays
// to a wall and into the open.
#include <string>
#include <vector>

#include "common/tasks/mujoco.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/text_tasks.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::TaskFolder;
using Loaded = ::datacom::testing::LoadedTask;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr char kBall[] = R"(<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 0.099">
      <joint name="lift" type="slide" axis="0 0 1"/><geom name="ball" size="0.1" mass="2"/>
      <body name="rider" pos="0 0.3 0"><geom name="rider" size="0.1" mass="1" contype="0" conaffinity="0"/></body>
    </body>
  </worldbody>
  <actuator><motor name="m" joint="lift" gear="3" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>)";

std::string BallTask(const std::string& observation, const std::string& refresh = "all") {
  return "name: \"ball\" model: \"model.xml\" horizon: 1000 " + observation +
         " extra { joint: \"lift\" } reward: \"0\" cost { name: \"c\" value: \"-1\" } control { refresh: \"" + refresh +
         "\" }";
}

// What the task observes after two seconds with the motor at 1.5 N.
std::vector<double> AtRest(Loaded* task) {
  task->task->Reset(nullptr, task->observation.data());
  const double half = 0.5;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(task->task->Step(&half, task->observation.data()).valid);
  return {task->observation.begin(), task->observation.begin() + task->layout.policy};
}

TEST(TextQuantities, CentresOfMassAndInertiasAreThoseOfTheModel) {
  TaskFolder folder(kBall, BallTask("observation { body: \"ball\" quantity: \"subtree_com\" name: \"com\" }"
                                    "observation { body: \"ball\" quantity: \"com_inertia\" }"
                                    "observation { body: \"ball\" quantity: \"com_velocity\" }"));
  Loaded task(folder.task());
  const auto& names = task.model.spec.observation_names;
  EXPECT_THAT(std::vector<std::string>(names.begin(), names.begin() + 4),
              ElementsAre("com.x", "com.y", "com.z", "ball_com_inertia.0"));
  EXPECT_EQ(names[13], "ball_com_velocity.wx");
  EXPECT_EQ(names[16], "ball_com_velocity.x");
  ASSERT_THAT(task.task->ResetTo({{"lift", 0.5}}, nullptr, task.observation.data()), IsOk());
  task.task->simulation()->data()->qvel[0] = 2;
  const double half = 0.5;
  ASSERT_TRUE(task.task->Step(&half, task.observation.data()).valid);
  // In the air 1.5 N and gravity act on 3 kg for 0.002 s: 2 m/s + (0.5 - 9.81) m/s^2 * 0.002 s. The ball's own inertia
  // is 0.4 * 2 kg * (0.1 m)^2 = 0.008, and it is 0.1 m beside the common centre of mass.
  const double speed = 1.98138, height = 0.599 + 0.002 * speed;
  EXPECT_THAT(std::vector<double>(task.observation.begin(), task.observation.begin() + task.layout.policy),
              Pointwise(DoubleNear(1e-9), {0.0, 0.1, height, 0.028, 0.008, 0.028, 0.0, 0.0, 0.0, 0.0, -0.2, 0.0, 2.0,
                                           0.0, 0.0, 0.0, 0.0, 0.0, speed}));
}

TEST(TextQuantities, ForcesAreThoseOfActuatorsAndContacts) {
  TaskFolder folder(kBall, BallTask("observation { joint: \"lift\" quantity: \"actuator_force\" }"
                                    "observation { body: \"ball\" quantity: \"external_force\" }"
                                    "observation { body: \"rider\" quantity: \"external_force\" }"));
  Loaded task(folder.task());
  EXPECT_EQ(task.model.spec.observation_names[0], "lift_actuator_force");
  EXPECT_EQ(task.model.spec.observation_names[1], "ball_external_force.tx");
  // 3 kg weigh 29.43 N, the motor carries 1.5 N, and the floor pushes 0.1 m beside the common centre of mass.
  EXPECT_THAT(AtRest(&task),
              Pointwise(DoubleNear(1e-6), {1.5, -2.793, 0.0, 0.0, 0.0, 0.0, 27.93, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}));
}

TEST(TextQuantities, ForcesOfTheLastStepAreKeptWithoutRefresh) {
  TaskFolder folder(kBall, BallTask("observation { body: \"ball\" quantity: \"external_force\" }", "nothing"));
  Loaded task(folder.task());
  EXPECT_NEAR(AtRest(&task)[5], 27.93, 1e-6);
  task.task->Reset(nullptr, task.observation.data());
  EXPECT_GT(task.observation[5], 1) << "the ball starts 1 mm in the floor";
}

// The wall's face is 2.9 m ahead; behind is nothing.
constexpr char kLidar[] = R"(<mujoco>
  <worldbody>
    <geom name="wall" type="box" size="0.1 1 1" pos="3 0 0"/>
    <body name="cart">
      <joint name="cart" type="slide" axis="0 1 0"/><geom size="0.05"/>
      <site name="ahead" zaxis="1 0 0"/><site name="behind" zaxis="-1 0 0"/>
    </body>
  </worldbody>
  <actuator><motor name="m" joint="cart" ctrllimited="true" ctrlrange="-1 1"/></actuator>
  <sensor>
    <rangefinder name="front" site="ahead" cutoff="5"/><rangefinder name="short" site="ahead" cutoff="2"/>
    <rangefinder name="back" site="behind" cutoff="5"/><rangefinder name="endless" site="behind"/>
  </sensor>
</mujoco>)";

TEST(TextQuantities, ARangeFinderThatHitsNothingReadsItsCutoff) {
  TaskFolder folder(kLidar, R"(name: "lidar" model: "model.xml" observation { sensor: "*" } reward: "0"
    cost { name: "c" value: "1 - back" })");
  Loaded task(folder.task());
  const auto& names = task.model.spec.observation_names;
  EXPECT_THAT(std::vector<std::string>(names.begin(), names.begin() + 4),
              ElementsAre("front", "short", "back", "endless"));
  task.task->Reset(nullptr, task.observation.data());
  const double still = 0;
  for (int state = 0; state < 2; ++state) {
    EXPECT_THAT(std::vector<double>(task.observation.begin(), task.observation.begin() + 4),
                Pointwise(DoubleNear(1e-9), {2.9, 2.0, 5.0, -1.0}));
    EXPECT_EQ(task.task->Cost(), -4) << "expressions read the same";
    ASSERT_TRUE(task.task->Step(&still, task.observation.data()).valid);
  }
}

TEST(TextQuantities, WhatCannotBeMeasuredIsRefused) {
  const auto error = [](const std::string& observation, const std::string& refresh = "all") {
    return TaskFolder(kBall, BallTask(observation, refresh)).Error();
  };
  EXPECT_THAT(error("observation { body: \"ball\" quantity: \"external_force\" }", "kinematics"),
              HasSubstr("control.refresh: the quantity external_force needs \"all\" or \"nothing\""));
  EXPECT_THAT(error("observation { body: \"ball\" quantity: \"subtree_com\" axes: \"xy\" }"),
              HasSubstr("observation[0].axes: subtree_com is as MuJoCo has it; leave it out"));
  EXPECT_THAT(error("observation { geom: \"ball\" quantity: \"com_inertia\" }"),
              HasSubstr("a geom has no com_inertia; it has: position, velocity"));
  EXPECT_THAT(error("observation { joint: \"lift\" quantity: \"external_force\" }"),
              HasSubstr("joint lift has no external_force; it has: position, velocity, actuator_force"));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
