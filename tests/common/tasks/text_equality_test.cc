// Tests known constraints of task files that are equations: which shapes can be one, and that the map keeps them.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/safety/known_rows.h"
#include "common/tasks/task.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

// Two links, stretched along x at the start: the hand is at (0.7, 0, 0), 0.5 m from the post's surface.
constexpr char kWorld[] = R"(<mujoco>
  <option timestep="0.002" gravity="0 0 0"><flag contact="disable"/></option>
  <worldbody>
    <geom name="post" size="0.1" pos="0.7 0 0.63"/>
    <body name="upper">
      <joint name="shoulder" axis="0 1 0" range="-150 150" limited="true"/>
      <geom name="upper" type="capsule" fromto="0 0 0 0.4 0 0" size="0.04"/>
      <body name="lower" pos="0.4 0 0">
        <joint name="elbow" axis="0 0.8 0.6"/>
        <geom name="lower" type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
        <geom name="palm" size="0.03" pos="0.3 0 0"/>
        <site name="hand" pos="0.3 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="shoulder" joint="shoulder" gear="3" ctrllimited="true" ctrlrange="-1 1"/>
    <motor name="elbow" joint="elbow" ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
</mujoco>)";

v1::TextTask Definition(const std::string& known) {
  v1::TextTask task;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(name: "world" model: "world.xml" observation { joint: "elbow" } reward: "0" cost { name: "c" value: "0" }
         control { period: 0.01 } constraint_state { joint: "shoulder" joint: "elbow" } )" +
          known,
      task.mutable_definition()));
  v1::TaskFile* const file = task.add_file();
  file->set_name("world.xml");
  file->set_content(kWorld);
  return task;
}

std::string Error(const std::string& known) {
  v1::TextTask task = Definition(known);
  return std::string(text::Resolve(&task).message());
}

// The largest |k| of row 0 in 400 steps with random torques, which the baselines' map changes if `mapped`.
double Farthest(const v1::TextTask& task, bool mapped) {
  v1::TaskOptions options;
  *options.MutableExtension(v1::text_task) = task;
  const TaskModel model = MakeTaskModel("world", options).value();
  const KnownConstraints& known = *model.known_constraints;
  EXPECT_TRUE(known.equality(0));
  EXPECT_FALSE(known.equality(1));
  const auto world = MakeTask("world", options).value();
  const ControlAffineDims dims = model.dynamics->dims();
  AnalyticMap map(model.known_constraints, known.viability_gains(), dims);
  std::vector<double> observation(dims.obs), q(dims.q), f(dims.q), G(dims.q * dims.action), k(known.count());
  RandomStream actions(7);
  double largest = 0, u[2] = {0, 0}, action[2];
  world->Reset(nullptr, observation.data());
  for (int step = 0; step < 400; ++step) {
    for (double& push : u) push = step % 20 == 0 ? actions.Uniform(-0.2, 0.2) : push;
    model.dynamics->Evaluate(observation.data(), {q.data(), nullptr, nullptr, f.data(), G.data()});
    map.Set({q.data(), nullptr, f.data(), G.data(), nullptr, observation.data()}, {20, 3});
    map.Apply(u, action);
    EXPECT_TRUE(world->Step(mapped ? action : u, observation.data()).valid);
    known.Evaluate({q.data(), nullptr, observation.data()}, {k.data()});
    largest = testing::LargerOrNan(std::abs(k[0]), largest);
  }
  return largest;
}

TEST(TextEquality, APlaneADistanceAndAnAngleAreKeptUnderRandomTorques) {
  for (const std::string known :
       {R"(known { name: "height" site: "hand" half_space { normal { z: 1 } } equality: true viability_gain: 0.05 })",
        R"(known { name: "gap" distance { geom1: "post" geom2: "palm" minimum: 0.5 } equality: true
                   viability_gain: 0.05 })",
        R"(known { name: "angle" joint_position: "elbow" value: 0 equality: true viability_gain: 0.05 })"}) {
    v1::TextTask task = Definition(known + R"(known { name: "speed" joint_velocity: "shoulder" limit: 1 })");
    ASSERT_THAT(text::Resolve(&task), IsOk());
    EXPECT_GT(Farthest(task, false), 0.05) << known;
    EXPECT_LT(Farthest(task, true), 1e-3) << known;
  }
}

TEST(TextEquality, RefusesOtherShapesByName) {
  EXPECT_THAT(
      Error(R"(known { name: "a" site: "hand" sphere { radius: 1 } equality: true })"),
      HasSubstr("known[0].equality: a sphere cannot be an equality; joint_position, half_space and distance can"));
  EXPECT_THAT(Error(R"(known { name: "a" site: "hand" box { size { x: 1 } } equality: true })"),
              HasSubstr("known[0].equality: a box cannot be an equality"));
  EXPECT_THAT(Error(R"(known { name: "a" joint_velocity: "elbow" limit: 1 equality: true })"),
              HasSubstr("known[0].equality: a joint_velocity cannot be an equality"));
  EXPECT_THAT(Error(R"(known { name: "a" joint_position: "elbow" equality: true })"),
              HasSubstr("known[0].value: must be set: the position that the equality keeps"));
  EXPECT_THAT(Error(R"(known { name: "a" joint_position: "shoulder" value: 1 })"),
              HasSubstr("known[0].value: is only for joint_position with equality"));
  EXPECT_THAT(Error(R"(known { name: "a" joint_position: "shoulder" value: 1 share: 0.5 equality: true })"),
              HasSubstr("known[0].share: is only for inequalities"));
  EXPECT_THAT(Error(R"(known { name: "a" joint_position: "shoulder" value: 1 margin: 0.1 equality: true })"),
              HasSubstr("known[0].margin: is only for inequalities"));
}

TEST(TextEquality, AnAngleBeyondThatOfQIsRefusedUnlessTheRunHasBegun) {
  EXPECT_THAT(Error(R"(known { name: "a" joint_position: "elbow" equality: true value: 4.71 })"),
              HasSubstr("known[0].value: 4.71 is never reached: the angle in q of joint elbow, which has no limits"));
  v1::TaskOptions options;
  v1::TextTask* const task = options.MutableExtension(v1::text_task);
  *task = Definition(R"(known { name: "a" joint_position: "elbow" equality: true value: -3.14 })");
  ASSERT_THAT(text::Resolve(task), IsOk());
  task->mutable_definition()->mutable_known(0)->set_value(4.71);
  EXPECT_THAT(MakeTask("world", options).status(), IsOk());
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
