// Tests tasks that are text files: f and G against MuJoCo's forward dynamics, signals, the stored form, and messages.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/row_model.h"
#include "common/tasks/text/task_file.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/counting_allocator.h"
#include "tests/testing/environment_variable.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/text_tasks.h"

namespace datacom {
namespace {

using ::datacom::testing::ForwardDynamics;
using ::datacom::testing::IsOk;
using ::datacom::testing::TaskFolder;
using Loaded = ::datacom::testing::LoadedTask;
using ::testing::AllOf;
using ::testing::HasSubstr;

// MuJoCo 3 has limits of the actuators' total force at a joint; the actuator's own limit keeps it below this one.
#if mjVERSION_HEADER >= 300
#define DATACOM_ELBOW_LIMIT R"(actuatorfrclimited="true" actuatorfrcrange="-0.25 0.25")"
#else
#define DATACOM_ELBOW_LIMIT ""
#endif

constexpr char kArm[] = R"(<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" range="-150 150" limited="true" damping="0.3" armature="0.02"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04"/>
      <body name="lower" pos="0.4 0 0">
        <joint name="elbow" axis="0 0.8 0.6" damping="0.1" stiffness="0.5" )" DATACOM_ELBOW_LIMIT R"(/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
        <site name="hand" pos="0.3 0 0"/>
      </body>
    </body>
    <body name="target" mocap="true" pos="0.5 0 1"><site name="target"/></body>
    <body name="ball" pos="2 0 1"><freejoint name="ball"/><geom name="ball" size="0.05" mass="0.2"/></body>
  </worldbody>
  <actuator>
    <motor name="m-shoulder" joint="shoulder" gear="3" ctrllimited="true" ctrlrange="-2 4"/>
    <position name="m-elbow" joint="elbow" kp="7" forcelimited="true" forcerange="-0.1 0.1"/>
  </actuator>
  <sensor><jointvel joint="elbow"/><framelinvel name="hand_speed" objtype="site" objname="hand"/></sensor>
</mujoco>)";

std::string ArmTask(const std::string& more) {
  return R"~(name: "arm" model: "model.xml" horizon: 50
    observation { joint: "shoulder" quantity: "sine_cosine" }
    observation { joint: "*" quantity: "velocity" }
    observation { site: "hand" name: "hand" }
    observation { site: "hand" name: "near" relative_to: "target" axes: "xz" }
    extra { sensor: "hand_speed" }
    extra { site: "hand" name: "speed" quantity: "velocity" }
    reward: "-hypot(near.x, near.z)"
    cost { name: "speed" value: "hypot(speed.x, speed.z) - 1" }
    cost { name: "height" value: "0.5 - hand.z" }
    start {
      joint { joint: "shoulder" position { low: -1 high: 1 } velocity { low: -2 high: 2 } }
      joint { joint: "elbow" position { low: -3 high: 3 } velocity { low: -2 high: 2 } }
      body { body: "target" x { low: -1 high: 1 } z { low: 0 high: 2 } keep { from: "ball" at_least: 1.5 } }
    }
    control { range { actuator: "m-elbow" low: -1 high: 2 } period: 0.01 )~" +
         more;
}

TEST(TextTask, TorqueControlHasTheFAndGOfMujocosForwardDynamics) {
  TaskFolder folder(kArm, ArmTask("}"));
  Loaded arm(folder.task());
  ASSERT_EQ(arm.layout.q, 2 + 7 + 8);
  RandomStream actions(5);
  for (uint64_t episode = 0; episode < 20; ++episode) {
    RandomStream stream(episode);
    arm.task->Reset(&stream, arm.observation.data());
    for (int step = 0; step < 5; ++step) {
      arm.Evaluate();
      const double u[2] = {actions.Uniform(-1, 1), actions.Uniform(-1, 1)};
      const auto expected = ForwardDynamics(*arm.task->simulation(), {1 + 3 * u[0], 0.5 + 1.5 * u[1]});
      for (int dof = 0; dof < 8; ++dof) {
        const int row = 9 + dof;
        const double found = arm.f[row] + arm.G[2 * row] * u[0] + arm.G[2 * row + 1] * u[1];
        EXPECT_NEAR(found, expected[dof], 1e-9 * std::max(1.0, std::abs(expected[dof]))) << "dof " << dof;
        for (int i = 0; i < 2; ++i) EXPECT_EQ(arm.G[2 * dof + i], 0) << "a force does not change positions at once";
      }
      ASSERT_TRUE(arm.task->Step(u, arm.observation.data()).valid);
    }
  }
}

TEST(TextTask, TheDriftOfPositionsIsTheDerivativeOfMujocosIntegration) {
  TaskFolder folder(kArm, ArmTask("}"));
  Loaded arm(folder.task());
  RandomStream stream(3), spin(4);
  arm.task->Reset(&stream, arm.observation.data());
  const double still[2] = {0, 0};
  arm.task->simulation()->data()->qvel[3] = 1.5;  // the ball moves and spins
  for (int i = 5; i < 8; ++i) arm.task->simulation()->data()->qvel[i] = spin.Uniform(-4, 4);
  ASSERT_TRUE(arm.task->Step(still, arm.observation.data()).valid);
  arm.Evaluate();
  const mjModel& model = arm.task->simulation()->model();
  const mjData& data = *arm.task->simulation()->data();
  constexpr double kStep = 1e-6;
  std::vector<double> later(data.qpos, data.qpos + model.nq), before = later;
  mj_integratePos(&model, later.data(), data.qvel, kStep);
  mj_integratePos(&model, before.data(), data.qvel, -kStep);
  for (int i = 0; i < model.nq; ++i) EXPECT_NEAR(arm.f[i], (later[i] - before[i]) / (2 * kStep), 1e-8) << "q " << i;
}

TEST(TextTask, VelocityControlHasClosedForms) {
  const std::string state = "} constraint_state { joint: \"shoulder\" joint: \"elbow\" }";
  const std::string servos =
      absl::StrReplaceAll(kArm, {{"<motor name=\"m-shoulder\"", "<velocity name=\"m-shoulder\" kv=\"2\""},
                                 {"<position name=\"m-elbow\" joint=\"elbow\" kp=\"7\"",
                                  "<velocity name=\"m-elbow\" joint=\"elbow\" kv=\"0.5\""}});
  TaskFolder velocity(servos, ArmTask("mode: \"velocity\" " + state));
  Loaded servo(velocity.task());
  RandomStream stream(1);
  servo.task->Reset(&stream, servo.observation.data());
  servo.Evaluate();
  EXPECT_EQ(servo.layout.q, 2);
  EXPECT_THAT(servo.f, ::testing::ElementsAre(::testing::DoubleEq(1.0 / 3), 0.5));
  EXPECT_THAT(servo.G, ::testing::ElementsAre(1, 0, 0, 1.5));
}

TEST(TextTask, AccelerationControlReachesTheCommandedAccelerations) {
  const std::string state = "mode: \"acceleration\" } constraint_state { joint: \"shoulder\" joint: \"elbow\" }";
  TaskFolder folder(kArm, ArmTask(state));
  Loaded arm(folder.task());
  ASSERT_THAT(arm.task->ResetTo({{"shoulder", 0.3}, {"elbow", 0.2}}, nullptr, arm.observation.data()), IsOk());
  arm.Evaluate();
  EXPECT_THAT(arm.f, ::testing::ElementsAre(arm.q[2], arm.q[3], 1, 0.5));
  EXPECT_THAT(arm.G, ::testing::ElementsAre(0, 0, 0, 0, 3, 0, 0, 1.5));
  const double u[2] = {-0.5, 1};
  const std::vector<double> before = arm.q;
  ASSERT_TRUE(arm.task->Step(u, arm.observation.data()).valid);
  arm.Evaluate();
  // Euler's method treats the joints' damping implicitly, so the accelerations are reached to first order.
  EXPECT_NEAR((arm.q[2] - before[2]) / 0.01, -0.5, 0.05);
  EXPECT_NEAR((arm.q[3] - before[3]) / 0.01, 2, 0.2);
}

TEST(TextTask, SignalsAreThoseOfTheStateReachedAndAgreeWithSensors) {
  TaskFolder folder(kArm, ArmTask("}"));
  Loaded arm(folder.task());
  EXPECT_THAT(
      std::vector<std::string>(arm.options.GetExtension(v1::text_task).resolved().observation().begin(),
                               arm.options.GetExtension(v1::text_task).resolved().observation().end()),
      ::testing::ElementsAre("shoulder.sin", "shoulder.cos", "shoulder_velocity", "elbow_velocity", "ball_velocity.x",
                             "ball_velocity.y", "ball_velocity.z", "ball_velocity.wx", "ball_velocity.wy",
                             "ball_velocity.wz", "hand.x", "hand.y", "hand.z", "near.x", "near.z"));
  RandomStream stream(1);
  const double u[2] = {0.4, -0.2};
  arm.task->Reset(&stream, arm.observation.data());
  for (int i = 0; i < 5; ++i) {
    const StepResult result = arm.task->Step(u, arm.observation.data());
    const mjData& data = *arm.task->simulation()->data();
    EXPECT_EQ(arm.observation[0], std::sin(data.qpos[0]));
    const double near_x = arm.observation[10] - data.mocap_pos[0];
    EXPECT_NEAR(arm.observation[13], near_x, 1e-15);
    EXPECT_NEAR(result.reward, -std::hypot(near_x, arm.observation[12] - data.mocap_pos[2]), 1e-15);
    const double speed = std::hypot(data.sensordata[1], data.sensordata[3]);
    EXPECT_NEAR(result.cost, std::max(speed - 1, 0.5 - arm.observation[12]), 1e-12) << "the larger of two costs";
    EXPECT_NEAR(arm.observation[arm.layout.costs_at], speed - 1, 1e-12) << "each cost is in the row";
    EXPECT_EQ(arm.observation[arm.layout.costs_at + 1], 0.5 - arm.observation[12]);
  }
}

TEST(TextTask, ADecisionOfSeveralStepsHasTheLargestOfEachCost) {
  TaskFolder folder(kArm, ArmTask("}"));
  Loaded each(folder.task()), held(folder.task(), "action_repeat: 5");
  EXPECT_THAT(held.model.spec.cost_names, ::testing::ElementsAre("speed", "height"));
  ASSERT_EQ(held.model.spec.costs_at, each.layout.costs_at);
  const double* const costs = &each.observation[each.layout.costs_at];
  const double* const largest = &held.observation[each.layout.costs_at];
  RandomStream one(3), two(3), actions(4);
  each.task->Reset(&one, each.observation.data());
  held.task->Reset(&two, held.observation.data());
  int not_last = 0;
  for (int decision = 0; decision < 10; ++decision) {
    const double u[2] = {actions.Uniform(-1, 1), actions.Uniform(-1, 1)};
    double expected[2] = {-1e9, -1e9};
    for (int i = 0; i < 5; ++i) {
      each.task->Step(u, each.observation.data());
      for (int c = 0; c < 2; ++c) expected[c] = std::max(expected[c], costs[c]);
    }
    const StepResult result = held.task->Step(u, held.observation.data());
    EXPECT_EQ(largest[0], expected[0]);
    EXPECT_EQ(largest[1], expected[1]);
    EXPECT_EQ(result.cost, std::max(largest[0], largest[1]));
    not_last += expected[0] != costs[0] || expected[1] != costs[1];
  }
  EXPECT_GT(not_last, 0);
}

TEST(TextTask, RelativeSignalsAreAlongTheAxesOfATurnedFrame) {
  TaskFolder folder(kArm, R"(name: "arm" model: "model.xml" reward: "0" cost { name: "c" value: "0" }
    observation { name: "hand" site: "hand" relative_to: "lower" }
    observation { name: "speed" site: "hand" quantity: "velocity" relative_to: "lower" }
    control { actuator: "m-shoulder" })");
  Loaded arm(folder.task());
  const double u = 1;
  ASSERT_THAT(arm.task->ResetTo({{"shoulder", 0.7}, {"elbow", -1.1}}, nullptr, arm.observation.data()), IsOk());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(arm.task->Step(&u, arm.observation.data()).valid);
  const mjModel& model = arm.task->simulation()->model();
  const mjData& data = *arm.task->simulation()->data();
  mjtNum hand[6], lower[6];
  mj_objectVelocity(&model, &data, mjOBJ_SITE, mj_name2id(&model, mjOBJ_SITE, "hand"), hand, 0);
  const int body = mj_name2id(&model, mjOBJ_BODY, "lower");
  mj_objectVelocity(&model, &data, mjOBJ_XBODY, body, lower, 0);
  const double place[3] = {0.3, 0, 0};
  for (int i = 0; i < 3; ++i) {
    double speed = 0;
    for (int axis = 0; axis < 3; ++axis)
      speed += data.xmat[9 * body + 3 * axis + i] * (hand[3 + axis] - lower[3 + axis]);
    EXPECT_NEAR(arm.observation[i], place[i], 1e-12) << "the hand is fixed to the lower arm";
    EXPECT_NEAR(arm.observation[3 + i], speed, 1e-12);
  }
}

TEST(TextTask, ExpressionsReadTheSignalsOfTheStepBefore) {
  TaskFolder folder(kArm, R"(name: "arm" model: "model.xml" observation { joint: "shoulder" } extra { joint: "elbow" }
    reward: "(shoulder - before.shoulder) / 0.01" cost { name: "c" value: "elbow - before.elbow" }
    success: "elbow != before.elbow"
    control { range { actuator: "m-elbow" low: -1 high: 2 } period: 0.01 })");
  Loaded arm(folder.task());
  const double u[2] = {0.4, -0.2};
  for (int episode = 0; episode < 2; ++episode) {
    ASSERT_THAT(arm.task->ResetTo({{"elbow", 0.3}}, nullptr, arm.observation.data()), IsOk());
    EXPECT_EQ(arm.task->Cost(), 0) << "at the start nothing has changed";
    EXPECT_FALSE(arm.task->Success());
    const mjData& data = *arm.task->simulation()->data();
    for (int i = 0; i < 3; ++i) {
      const double shoulder = data.qpos[0], elbow = data.qpos[1];
      const StepResult result = arm.task->Step(u, arm.observation.data());
      EXPECT_NEAR(result.reward, (data.qpos[0] - shoulder) / 0.01, 1e-12);
      EXPECT_EQ(result.cost, data.qpos[1] - elbow);
      EXPECT_TRUE(arm.task->Success()) << "as often as it is asked";
    }
  }
}

TEST(TextTask, EachPartOfTheStartHasAStreamOfItsOwn) {
  TaskFolder folder(kArm, ArmTask("}"));
  TaskFolder fewer(kArm, R"(name: "arm" model: "model.xml" observation { joint: "elbow" } reward: "0"
    cost { name: "c" value: "0" } start { joint { joint: "elbow" position { low: -3 high: 3 } } }
    control { range { actuator: "m-elbow" low: -1 high: 2 } })");
  Loaded arm(folder.task()), other(fewer.task());
  double nearest = 10;
  for (uint64_t episode = 0; episode < 50; ++episode) {
    RandomStream one(episode), two(episode);
    arm.task->Reset(&one, arm.observation.data());
    other.task->Reset(&two, other.observation.data());
    const mjData& data = *arm.task->simulation()->data();
    EXPECT_EQ(data.qpos[1], other.task->simulation()->data()->qpos[1]);
    const double ball[3] = {2, 0, 1};
    nearest = std::min(nearest, mju_dist3(data.mocap_pos, ball));
  }
  EXPECT_GE(nearest, 1.5);
}

#ifndef DATACOM_SANITIZED
TEST(TextTask, StepsAndResetsAllocateNothing) {
  const std::string language = R"~(}
    observation { number: "action.*" history: 3 }
    observation { name: "effort" value: "norm2(\"action.*\") * command.goal" clip { low: 0 high: 1 } }
    observation { body: "lower" quantity: "gravity" } observation { body: "lower" quantity: "local_velocity" name: "own" }
    command { name: "goal" low: 1 high: 3 } truncated: "near.x > 50" log { name: "speed" value: "speed.x" }
    push { joint: "elbow" every { low: 0.02 high: 0.05 } velocity { low: -1 high: 1 } }
    randomise { body: "lower" factor { low: 0.5 high: 2 } })~";
  const TaskFolder plain(kArm, ArmTask(language)),
      differences(kArm, ArmTask("dynamics: \"finite_difference\" " + language));
  const TaskFolder mixed(kArm, ArmTask("actuator_mode { actuator: \"m-elbow\" mode: \"position\" } " + language));
  for (const auto& [folder, options] :
       {std::pair(&plain, ""), std::pair(&plain, "randomisation { mass { low: 0.8 high: 1.2 } }"),
        std::pair(&differences, ""), std::pair(&mixed, "")}) {
    Loaded arm(folder->task(), options);
    const auto play = [&, u = std::vector{0.4, -0.2}](uint64_t episode) {
      RandomStream stream(episode);
      arm.task->Reset(&stream, arm.observation.data());
      for (int i = 0; i < 50; ++i) {
        arm.task->Step(u.data(), arm.observation.data());
        arm.Evaluate();
      }
    };
    play(1);
    EXPECT_EQ(testing::CountAllocations([&] { play(2); }), 0u) << folder->task() << options;
  }
}
#endif

TEST(TextTask, RandomisedMassesDoNotReachFAndG) {
  for (const std::string dynamics : {"instantaneous", "finite_difference"}) {
    TaskFolder folder(kArm, ArmTask("dynamics: \"" + dynamics + "\" }"));
    Loaded nominal(folder.task()), heavy(folder.task(), "randomisation { mass { low: 2 high: 2 } }");
    RandomStream one(1), two(1);
    nominal.task->Reset(&one, nominal.observation.data());
    heavy.task->Reset(&two, heavy.observation.data());
    nominal.Evaluate();
    heavy.Evaluate();
    for (size_t i = 0; i < nominal.f.size(); ++i) EXPECT_NEAR(nominal.f[i], heavy.f[i], 1e-9);
    for (size_t i = 0; i < nominal.G.size(); ++i) EXPECT_NEAR(nominal.G[i], heavy.G[i], 1e-9);
  }
}

TEST(TextTask, KnownConstraintsAreTheJointsLimits) {
  TaskFolder folder(kArm, ArmTask(R"(} constraint_state { joint: "elbow" joint: "shoulder" }
    known { name: "range" joint_position: "shoulder" share: 0.5 viability_gain: 0.25 }
    known { name: "speed" joint_velocity: "?????*" limit: 3 share: 0.9 })"));
  const Loaded arm(folder.task());
  const KnownConstraints& known = *arm.model.known_constraints;
  ASSERT_THAT(known.names(),
              ::testing::ElementsAre("range_shoulder_upper", "range_shoulder_lower", "speed_shoulder_upper",
                                     "speed_shoulder_lower", "speed_elbow_upper", "speed_elbow_lower"));
  EXPECT_THAT(known.groups(), ::testing::ElementsAre("range", "range", "speed", "speed", "speed", "speed"));
  EXPECT_THAT(known.viability_gains(), ::testing::ElementsAre(0.25, 0.25, 0, 0, 0, 0));
  const double q[4] = {0.1, 0.2, 0.3, 0.4}, range = 75 * M_PI / 180;  // elbow, shoulder; then their velocities
  std::vector<double> k(6), J(24);
  known.Evaluate({q}, {k.data(), J.data()});
  const double expected[6] = {0.2 - range, -0.2 - range, 0.4 - 2.7, -0.4 - 2.7, 0.3 - 2.7, -0.3 - 2.7};
  const int entries[6] = {1, 1, 3, 3, 2, 2};
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(k[i], expected[i], 1e-12) << known.names()[i];
    for (int j = 0; j < 4; ++j) EXPECT_EQ(J[4 * i + j], j != entries[i] ? 0 : i % 2 == 0 ? 1 : -1);
  }
}

TEST(TextTask, MocapBodiesFollowWaypointsOrRandomTargetsAtTheirSpeed) {
  const std::string state = R"(} constraint_state { joint: "shoulder" uncontrolled { body: "target" axes: "xz" } } )";
  TaskFolder along(kArm, ArmTask(state + R"(motion { body: "target" speed: 0.5 waypoint { x: 2 z: 1 }
    waypoint { x: 2 z: 1.02 } })"));
  TaskFolder random(kArm, ArmTask(state + R"(motion { body: "target" speed: 2 x { low: -1 high: 1 }
    z { low: 0 high: 1 } })"));
  const double still[2] = {0, 0};
  Loaded line(along.task());
  ASSERT_THAT(line.task->ResetTo({}, nullptr, line.observation.data()), IsOk());  // the target starts at (0, 0, 1)
  for (int i = 0; i < 399; ++i) ASSERT_TRUE(line.task->Step(still, line.observation.data()).valid);
  line.Evaluate();
  EXPECT_NEAR(line.x[0], 399 * 0.005, 1e-9);
  EXPECT_NEAR(line.x_dot[0], 0.5, 1e-9);
  EXPECT_EQ(line.x[1], 1);
  for (int i = 0; i < 3; ++i) line.task->Step(still, line.observation.data());
  line.Evaluate();
  EXPECT_EQ(line.x[0], 2);
  EXPECT_NEAR(line.x[1], 1.01, 1e-9) << "on its way to the second waypoint";

  Loaded box(random.task()), again(random.task());
  RandomStream one(7), two(7);
  box.task->Reset(&one, box.observation.data());
  again.task->Reset(&two, again.observation.data());
  double low = 1, high = -1, before[2] = {box.observation[box.layout.x_at], box.observation[box.layout.x_at + 1]};
  for (int i = 0; i < 2000; ++i) {
    box.task->Step(still, box.observation.data());
    again.task->Step(still, again.observation.data());
    const double* const x = &box.observation[box.layout.x_at];
    EXPECT_EQ(x[0], again.observation[again.layout.x_at]);
    EXPECT_LE(std::hypot(x[0] - before[0], x[1] - before[1]), 0.02 + 1e-12);
    before[0] = x[0], before[1] = x[1];
    low = std::min(low, x[0]), high = std::max(high, x[0]);
  }
  EXPECT_LT(low, -0.7);
  EXPECT_GT(high, 0.7);
}

TEST(TextTask, TheLoadedTaskNeedsNoFile) {
  v1::TaskOptions options;
  {
    TaskFolder folder(R"(<mujoco><compiler meshdir="parts/meshes"/><include file="parts/body.xml"/></mujoco>)", R"(
      name: "boxes" model: "model.xml" observation { joint: "*" } reward: "slide" cost { name: "c" value: "-1" })");
    folder.Write("parts/body.xml", R"(<mujoco><!-- <mesh file="absent.stl"/> -->
      <asset><mesh name="box" file="box.obj"/></asset>
      <worldbody><body><joint name="slide" type="slide"/><geom type="mesh" mesh="box"/></body></worldbody>
      <actuator><motor name="m" joint="slide" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>)");
    folder.Write("parts/meshes/box.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
    auto loaded = text::LoadTask(folder.task());
    ASSERT_THAT(loaded, IsOk());
    ASSERT_EQ(loaded->file_size(), 3);
    *options.MutableExtension(v1::text_task) = *loaded;
  }
  v1::TaskOptions travelled;  // as in the experiment of a run
  std::string text;
  google::protobuf::TextFormat::PrintToString(options, &text);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &travelled));
  const auto task = MakeTask("boxes", travelled);
  ASSERT_THAT(task, IsOk());
  std::vector<double> observation((*task)->spec().obs_dim);
  const double push = 1;
  (*task)->Reset(nullptr, observation.data());
  EXPECT_TRUE((*task)->Step(&push, observation.data()).valid);
}

TEST(TextTask, AModelMayBelongToAnInstalledPythonPackage) {
  const auto task = [](const std::string& model) {
    return "name: \"arm\"\nmodel: \"" + model + R"("
      observation { joint: "elbow" } reward: "0" cost { name: "c" value: "0" }
      control { range { actuator: "m-elbow" low: -1 high: 2 } })";
  };
  TaskFolder folder("", task("python:datacom_test_robots/models/arm.xml"));
  folder.Write("site/datacom_test_robots/__init__.py", "raise RuntimeError('nothing may import this')");
  folder.Write("site/datacom_test_robots/models/arm.xml", kArm);
  EXPECT_THAT(folder.Error(), AllOf(HasSubstr("task.textproto:2:1: model: the python3 of PATH has no package "),
                                    HasSubstr("datacom_test_robots")));
  const std::string site = std::filesystem::path(folder.task()).parent_path() / "site";
  const testing::EnvironmentVariable packages("PYTHONPATH", site);
  const auto loaded = text::LoadTask(folder.task());
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->file(0).name(), "arm.xml");
  EXPECT_EQ(loaded->file(0).content(), kArm);
  folder.Write("task.textproto", task("python:datacom_test_robots/arm.xml"));
  EXPECT_THAT(folder.Error(), HasSubstr("model: there is no file " + site + "/datacom_test_robots/arm.xml"));
  for (const std::string wrong : {"python:robots", "python:/arm.xml", "python:robots/", "python:a'b/arm.xml"}) {
    folder.Write("task.textproto", task(wrong));
    EXPECT_THAT(folder.Error(), HasSubstr("model: \"" + wrong + "\" is not python:PACKAGE/FILE"));
  }
}

TEST(TextTask, AResolvedTaskWhosePartsDoNotFitIsRefused) {
  TaskFolder folder(kArm, ArmTask("} known { name: \"speed\" joint_velocity: \"elbow\" limit: 3 }"));
  auto loaded = text::LoadTask(folder.task());
  ASSERT_THAT(loaded, IsOk());
  const auto refusal = [&](const std::string& part) {
    v1::TaskOptions options;
    *options.MutableExtension(v1::text_task) = *loaded;
    v1::ResolvedTask* const resolved = options.MutableExtension(v1::text_task)->mutable_resolved();
    if (part == "known") resolved->mutable_known(0)->set_entry(17);
    if (part == "uncontrolled") resolved->set_uncontrolled(4000000000);
    if (part == "drive") resolved->add_drive()->set_dof(0);
    if (part == "state") resolved->add_state("more");
    if (part == "start_state") resolved->clear_start_state();
    while (part == "history" && resolved->observation_size() <= 65536) resolved->add_observation("a");
    return std::string(MakeTaskModel("arm", options).status().message());
  };
  EXPECT_EQ(refusal("nothing"), "");
  for (const std::string part : {"known", "uncontrolled", "drive", "state", "start_state"}) {
    EXPECT_THAT(refusal(part), HasSubstr("resolved." + part + " does not fit")) << part;
  }
  EXPECT_THAT(refusal("history"), HasSubstr("observation: these are 65537; at most 65536 are possible"));
}

TEST(TextTask, MessagesNameTheFileLineAndFieldAndListTheChoice) {
  const auto error = [](const std::string& task) { return TaskFolder(kArm, task).Error(); };
  const std::string rest = "\nreward: \"0\"\ncost { name: \"c\" value: \"0\" }\ncontrol { actuator: \"m-shoulder\" }";
  const std::string start = "name: \"arm\"\nmodel: \"model.xml\"\n";
  EXPECT_THAT(error(start + "observation { joint: \"wrist\" }" + rest),
              AllOf(HasSubstr("task.textproto:3:15: observation[0].joint: no joint"), HasSubstr("shoulder, elbow")));
  EXPECT_THAT(error("\xEF\xBB\xBF" + start + "observation { joint: \"wrist\" }" + rest),
              HasSubstr("task.textproto:3:15: observation[0].joint: no joint"));
  EXPECT_THAT(
      error(start + "observation { joint: \"elbow\" }\nreward: \"elbw + 1\"\ncost { name: \"c\" value: \"0\" }\n"
                    "control { actuator: \"m-shoulder\" }"),
      AllOf(HasSubstr("task.textproto:4:1: reward: column 1: unknown name \"elbw\""), HasSubstr("elbow, action")));
  EXPECT_THAT(
      error(start + "observation { joint: \"elbow\" }\nreward: \"elbow = 1\"\ncost { name: \"c\" value: \"0\" }\n"
                    "control { actuator: \"m-shoulder\" }"),
      HasSubstr("column 7: \"=\" would assign"));
  EXPECT_THAT(error(start + "observatoin { joint: \"elbow\" }" + rest), HasSubstr("task.textproto:3:1"));
  EXPECT_THAT(error(start + "observation { joint: \"elbow\" }\nreward: \"0\"\ncost { name: \"c\" value: \"0\" }"),
              HasSubstr("control.range: actuator m-elbow has no control range"));
  EXPECT_THAT(error("name: \"arm\"\nmodel: \"other.xml\"\n" + rest), HasSubstr("2:1: model: there is no file"));
  EXPECT_THAT(error("name: \"cartpole\"\nmodel: \"model.xml\"\nobservation { joint: \"elbow\" }" + rest),
              HasSubstr("1:1: name: \"cartpole\" is a task of the register"));
  EXPECT_THAT(error(start + "observation { joint: \"elbow\" name: \"hand-1\" }" + rest),
              HasSubstr("task.textproto:3:30: observation[0].name: letters, digits and _ only"));
  EXPECT_THAT(
      error(start + "observation { joint: \"elbow\" }\nextra { joint: \"*\" quantity: \"velocity\" name: \"1st\" }" +
            rest),
      HasSubstr("task.textproto:4:41: extra[0].name: letters, digits and _ only"));
  EXPECT_THAT(error(start + "observation { joint: \"elbow\" quantity: \"speed\" }" + rest),
              AllOf(HasSubstr("observation[0].quantity: \"speed\" is not one of"), HasSubstr("velocity")));
  EXPECT_THAT(error(start + "observation { joint: \"elbow\" }" + rest +
                    "\nslice { name: \"s\" x { of: \"hand\" low: 0 "
                    "high: 1 } y { of: \"elbow\" low: 0 high: 1 } }"),
              AllOf(HasSubstr("slice[0].x.of"), HasSubstr("shoulder, elbow, ball.x")));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
