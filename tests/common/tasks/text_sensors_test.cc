// Tests that MuJoCo's sensors of distances and contacts are signals of a text task.
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mujoco/mujoco.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/text_tasks.h"

#if mjVERSION_HEADER >= 400  // older versions have no such sensors
namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::TaskFolder;
using Loaded = ::datacom::testing::LoadedTask;

// Two balls above a floor; MuJoCo's sensors measure the distance of surfaces and contacts.
constexpr char kBalls[] = R"(<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="left" pos="0 0 0.3">
      <joint name="drop" type="slide" axis="0 0 1"/><geom name="left" size="0.1"/>
    </body>
    <body name="right" pos="0.5 0 0.3">
      <joint name="slide" type="slide" axis="1 0 0"/><geom name="right" size="0.15"/>
    </body>
  </worldbody>
  <actuator><motor name="m" joint="slide" ctrllimited="true" ctrlrange="-1 1"/></actuator>
  <sensor>
    <distance name="gap" geom1="left" geom2="right" cutoff="10"/>
    <normal name="towards" geom1="left" geom2="right" cutoff="10"/>
    <contact name="landed" geom1="left" geom2="floor" data="found dist" reduce="mindist"/>
    <contact name="push" geom1="left" geom2="floor" data="force" reduce="netforce"/>
  </sensor>
</mujoco>)";

TEST(TextSensors, DistancesOfSurfacesAndContactsAreSensors) {
  TaskFolder folder(kBalls, R"(name: "balls" model: "model.xml" observation { sensor: "gap" }
    observation { sensor: "towards" } observation { sensor: "landed" } observation { sensor: "push" }
    reward: "landed.1" cost { name: "near" value: "0.2 - gap" } cost { name: "contact" value: "landed.0 - 0.5" }
    constraint_state { joint: "slide" uncontrolled { sensor: "gap" } } control { period: 0.004 refresh: "all" })");
  Loaded balls(folder.task());
  EXPECT_THAT(std::vector<std::string>(balls.options.GetExtension(v1::text_task).resolved().observation().begin(),
                                       balls.options.GetExtension(v1::text_task).resolved().observation().end()),
              ::testing::ElementsAre("gap", "towards.0", "towards.1", "towards.2", "landed.0", "landed.1", "push.0",
                                     "push.1", "push.2"));
  const double still = 0;
  ASSERT_THAT(balls.task->ResetTo({{"drop", 0}}, nullptr, balls.observation.data()), IsOk());
  EXPECT_NEAR(balls.observation[0], 0.25, 1e-9);
  EXPECT_NEAR(balls.observation[1], 1, 1e-9);
  EXPECT_EQ(balls.observation[4], 0);
  ASSERT_THAT(balls.task->ResetTo({{"drop", -0.201}, {"slide", -0.1}}, nullptr, balls.observation.data()), IsOk());
  EXPECT_NEAR(balls.observation[0], std::hypot(0.4, 0.201) - 0.25, 1e-9);
  EXPECT_EQ(balls.observation[4], 1);
  EXPECT_NEAR(balls.observation[5], -0.001, 1e-9);
  EXPECT_EQ(balls.task->Cost(), 0.5) << "the contact";
  const double gap = balls.observation[0];
  ASSERT_TRUE(balls.task->Step(&still, balls.observation.data()).valid);
  EXPECT_GT(std::hypot(balls.observation[6], balls.observation[7], balls.observation[8]), 1)
      << "carries a weight of 41 N";
  balls.Evaluate();
  EXPECT_EQ(balls.x[0], balls.observation[0]);
  EXPECT_NEAR(balls.x_dot[0], (balls.observation[0] - gap) / 0.004, 1e-9);
}

}  // namespace
}  // namespace datacom
#endif
// SPDX-License-Identifier: Apache-2.0
