// Tests f and G of servos, of mixed robots and by finite differences against simulations of the test's own, and
// actuators with an activation.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/base/random.h"
#include "common/tasks/mujoco.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mujoco/mujoco.h"
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

// A hopping arm that meets the floor and its limits; the elbows are tied to each other.
constexpr char kHopper[] = R"(<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body pos="0 0 0.3">
      <joint name="height" type="slide" axis="0 0 1" limited="true" range="-0.14 0.4" armature="0.1"/>
      <joint name="slide" type="slide" axis="1 0 0" frictionloss="0.2"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.05"/>
      <body pos="0.2 0 0">
        <joint name="elbow" axis="0 1 0" limited="true" range="-15 15" damping="0.1" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 -0.1" size="0.04"/>
      </body>
      <body pos="-0.1 0 0">
        <joint name="tied" axis="0 1 0" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 -0.2 0 -0.1" size="0.04"/>
      </body>
    </body>
  </worldbody>
  <equality><joint joint1="elbow" joint2="tied"/></equality>
  <actuator>
    <motor name="lift" joint="height" gear="20" ctrllimited="true" ctrlrange="-1 2"/>
    <velocity name="turn" joint="elbow" kv="5" ctrllimited="true" ctrlrange="-3 3" forcelimited="true"
              forcerange="-4 4"/>
    <general name="push" joint="slide" dyntype="filter" dynprm="0.03" gainprm="6" ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
</mujoco>)";

constexpr char kTask[] = R"(name: "hopper" model: "model.xml" horizon: 100 observation { joint: "*" } reward: "0"
  observation { actuator: "push" name: "push" }
  cost { name: "c" value: "0" }
  start {
    joint { joint: "height" position { low: -0.14 high: 0.2 } velocity { low: -1 high: 1 } }
    joint { joint: "[es]l*" position { low: -0.2 high: 0.2 } velocity { low: -1 high: 1 } }
  } )";

// Velocities after `steps` time steps from the state of `simulation` under `control`, by mj_step.
std::vector<double> VelocitiesAfter(const Simulation& simulation, const std::vector<double>& control, int steps) {
  const mjModel& model = simulation.model();
  const mjData& from = *simulation.data();
  const MujocoData data = MakeMujocoData(model).value();
  mju_copy(data->qpos, from.qpos, model.nq);
  mju_copy(data->qvel, from.qvel, model.nv);
  mju_copy(data->act, from.act, model.na);
  mju_copy(data->qacc_warmstart, from.qacc_warmstart, model.nv);
  mju_copy(data->ctrl, control.data(), model.nu);
  for (int i = 0; i < steps; ++i) mj_step(&model, data.get());
  return {data->qvel, data->qvel + model.nv};
}

TEST(TextDynamics, FiniteDifferencesAreTheMotionOfTheWholeControlStepWithEveryForce) {
  const TaskFolder folder(kHopper, std::string(kTask) + R"(control { period: 0.02 dynamics: "finite_difference" }
    constraint_state { joint: "elbow" joint: "height" joint: "slide" })");
  Loaded hopper(folder.task());
  ASSERT_EQ(hopper.layout.q, 6);
  const int dofs[3] = {2, 0, 1};
  const double centre[3] = {0.5, 0, 0}, half[3] = {1.5, 3, 1};
  RandomStream stream(1), actions(2);
  hopper.task->Reset(&stream, hopper.observation.data());
  double u[3];
  int contacts = 0, limits = 0;
  for (int step = 0; step < 60; ++step) {
    hopper.Evaluate();
    const Simulation& simulation = *hopper.task->simulation();
    contacts += simulation.data()->ncon > 0;
    for (int i = 0; i < simulation.data()->nefc; ++i) {
      limits += simulation.data()->efc_type[i] == mjCNSTR_LIMIT_JOINT;
    }
    std::vector<double> control(centre, centre + 3);
    const std::vector<double> free = VelocitiesAfter(simulation, control, 10);
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(hopper.f[3 + i], (free[dofs[i]] - simulation.data()->qvel[dofs[i]]) / 0.02, 1e-9) << step;
      EXPECT_EQ(hopper.f[i], hopper.q[3 + i]);
    }
    for (int action = 0; action < 3; ++action) {
      control.assign(centre, centre + 3);
      control[action] += 0.5 * half[action];
      const std::vector<double> pushed = VelocitiesAfter(simulation, control, 10);
      for (int i = 0; i < 3; ++i) {
        EXPECT_NEAR(hopper.G[3 * (3 + i) + action], (pushed[dofs[i]] - free[dofs[i]]) / (0.5 * 0.02), 1e-9) << step;
      }
    }
    for (double& each : u) {
      if (step % 15 == 0) each = actions.Uniform(-1, 1);
    }
    ASSERT_TRUE(hopper.task->Step(u, hopper.observation.data()).valid);
    EXPECT_EQ(hopper.observation[4], simulation.data()->act[0]) << "the observed activation";
  }
  EXPECT_GT(contacts, 5);
  EXPECT_GT(limits, 5);
}

// Without damping a time step of Euler's method changes velocities by the acceleration at its start.
TEST(TextDynamics, FiniteDifferencesOfOneTimeStepAreTheInstantaneousFAndG) {
  const std::string arm = R"(<mujoco><option timestep="0.004"/><worldbody><body>
    <joint name="shoulder" axis="0 1 0" stiffness="2"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04"/>
    <body pos="0.4 0 0"><joint name="elbow" axis="0 0.8 0.6"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
    </body></body></worldbody><actuator><motor name="a" joint="shoulder" gear="3"/><motor name="b" joint="elbow"/>
    </actuator></mujoco>)";
  const std::string task = R"(name: "arm" model: "model.xml" observation { joint: "*" } reward: "0"
    cost { name: "c" value: "0" } constraint_state { actuator_gain: 0.5 }
    start { joint { joint: "*" position { low: -1 high: 1 } velocity { low: -2 high: 2 } } }
    control { range { actuator: "*" low: -2 high: 1 } dynamics: ")";
  const TaskFolder one(arm, task + "instantaneous\" }"), other(arm, task + "finite_difference\" }");
  Loaded instantaneous(one.task()), differences(other.task());
  const double u[2] = {0.4, -0.7};
  for (uint64_t episode = 0; episode < 10; ++episode) {
    for (Loaded* each : {&instantaneous, &differences}) {
      RandomStream stream(episode);
      each->task->Reset(&stream, each->observation.data());
      ASSERT_TRUE(each->task->Step(u, each->observation.data()).valid);
      each->Evaluate();
    }
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(instantaneous.f[i], differences.f[i], 1e-9) << episode;
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(instantaneous.G[i], differences.G[i], 1e-9) << episode;
  }
}

TEST(TextDynamics, APositionServoMovesItsJointToTheTargetWithinAControlStep) {
  const TaskFolder folder(R"(<mujoco><worldbody><body><joint name="a" type="slide" range="-9 9" limited="true"/>
    <geom size="0.1"/><body pos="0 0 1"><joint name="b" axis="0 1 0" range="-90 90" limited="true"/><geom size="0.1"/>
    </body></body></worldbody><actuator>
    <position name="slide" joint="a" gear="2" kp="100" ctrllimited="true" ctrlrange="-1 3"/>
    <velocity name="turn" joint="b" kv="10" ctrllimited="true" ctrlrange="-4 4"/></actuator></mujoco>)",
                          R"(name: "servos" model: "model.xml" observation { joint: "*" } reward: "0"
    cost { name: "c" value: "0" } known { name: "range" joint_position: "a" }
    control { period: 0.02 mode: "position" actuator_mode { actuator: "turn" mode: "velocity" } })");
  Loaded servos(folder.task());
  ASSERT_EQ(servos.layout.q, 2) << "only positions";
  EXPECT_EQ(servos.model.spec.model_dim, 2) << "f and G have closed forms";
  EXPECT_THAT(servos.model.known_constraints->viability_gains(), ElementsAre(0, 0));
  ASSERT_THAT(servos.task->ResetTo({{"a", 0.3}}, nullptr, servos.observation.data()), IsOk());
  servos.Evaluate();
  // The target of the joint is (1 + 2 u) / 2.
  EXPECT_THAT(servos.f, ElementsAre(DoubleNear((0.5 - 0.3) / 0.02, 1e-12), 0));
  EXPECT_THAT(servos.G, ElementsAre(DoubleNear(1 / 0.02, 1e-12), 0, 0, 4));
}

TEST(TextDynamics, WhereOnlyServosActFiniteDifferencesGiveTheMeanVelocity) {
  const TaskFolder folder(R"(<mujoco><option timestep="0.005"/><worldbody><body><joint name="a" type="slide"/>
    <geom size="0.1" mass="2"/></body><body pos="9 0 0"><joint name="b" axis="0 1 0" damping="0.3"/>
    <geom size="0.1" mass="3"/></body></worldbody><actuator>
    <position name="slide" joint="a" kp="50" ctrllimited="true" ctrlrange="-1 3"/>
    <velocity name="turn" joint="b" kv="0.2" ctrllimited="true" ctrlrange="-4 4"/></actuator></mujoco>)",
                          R"(name: "servos" model: "model.xml" observation { joint: "*" } reward: "0"
    cost { name: "c" value: "0" } start { joint { joint: "*" velocity { low: 0.5 high: 0.5 } } }
    control { period: 0.02 mode: "velocity" actuator_mode { actuator: "s*" mode: "position" }
      dynamics: "finite_difference" })");
  Loaded servos(folder.task());
  ASSERT_EQ(servos.layout.q, 2);
  EXPECT_EQ(servos.model.spec.model_dim, 2 + 2 + 4);
  servos.task->Reset(nullptr, servos.observation.data());
  RandomStream actions(1);
  for (int step = 0; step < 20; ++step) {
    servos.Evaluate();
    const std::vector<double> before = servos.q, f = servos.f, G = servos.G;
    const double u[2] = {actions.Uniform(-1, 1), actions.Uniform(-1, 1)};
    ASSERT_TRUE(servos.task->Step(u, servos.observation.data()).valid);
    servos.Evaluate();
    for (int i = 0; i < 2; ++i) {
      const double predicted = f[i] + G[2 * i] * u[0] + G[2 * i + 1] * u[1];
      const double turned = std::remainder(servos.q[i] - before[i], i == 1 ? 2 * M_PI : 1e9);
      EXPECT_NEAR(predicted, turned / 0.02, 1e-8) << "a linear robot, so the prediction is exact";
    }
  }
}

// The servo's joint has the commanded acceleration, and the force on the motor's joint is the motor's.
TEST(TextDynamics, InARobotOfMotorsAndServosAServoHoldsItsJointAndTheMotorsPushTheRest) {
  const std::string model = R"(<mujoco><option timestep="0.002"/><worldbody><body>
    <joint name="x" type="slide" axis="1 0 0" damping="0.1"/><geom size="0.2" mass="3"/>
    <body><joint name="turn" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.5 0 0.1" size="0.05"/>
    <body pos="0.5 0 0"><joint name="lift" axis="0 1 0" range="-90 90" limited="true"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.05"/></body></body></body></worldbody>
    <actuator><motor name="x" joint="x" gear="30" ctrllimited="true" ctrlrange="-1 1"/>
    <velocity name="turn" joint="turn" kv="5" gear="2" ctrllimited="true" ctrlrange="-1 3"/>
    <position name="lift" joint="lift" kp="20" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>)";
  const TaskFolder folder(model, R"(name: "mixed" model: "model.xml" observation { joint: "*" } reward: "0"
    cost { name: "c" value: "0" }
    start { joint { joint: "*" position { low: -0.4 high: 0.4 } velocity { low: -1 high: 1 } } }
    control { period: 0.02 actuator_mode { actuator: "turn" mode: "velocity" }
      actuator_mode { actuator: "lift" mode: "position" } })");
  Loaded robot(folder.task());
  ASSERT_EQ(robot.layout.q, 6) << "positions and velocities";
  RandomStream stream(1), actions(2);
  robot.task->Reset(&stream, robot.observation.data());
  for (int step = 0; step < 10; ++step) {
    robot.Evaluate();
    double u[3], acceleration[3];
    for (double& each : u) each = actions.Uniform(-1, 1);
    for (int i = 0; i < 3; ++i) {
      acceleration[i] = robot.f[3 + i];
      for (int j = 0; j < 3; ++j) acceleration[i] += robot.G[3 * (3 + i) + j] * u[j];
    }
    EXPECT_NEAR(acceleration[1], ((1 + 2 * u[1]) / 2 - robot.q[4]) / 0.02, 1e-9) << "velocity / gear";
    EXPECT_NEAR(acceleration[2], ((u[2] - robot.q[2]) / 0.02 - robot.q[5]) / 0.02, 1e-8);
    mjModel* const free = mj_copyModel(nullptr, &robot.task->simulation()->model());
    free->opt.disableflags |= mjDSBL_CONSTRAINT;
    const MujocoData data = MakeMujocoData(*free).value();
    mju_copy(data->qpos, robot.task->simulation()->data()->qpos, 3);
    mju_copy(data->qvel, robot.task->simulation()->data()->qvel, 3);
    mj_forward(free, data.get());
    mju_copy(data->qacc, acceleration, 3);
    mj_inverse(free, data.get());
    EXPECT_NEAR(data->qfrc_inverse[0], 30 * u[0], 1e-7) << "the motor pushes, and nothing else does";
    mj_deleteModel(free);
    ASSERT_TRUE(robot.task->Step(u, robot.observation.data()).valid);
  }
}

TEST(TextDynamics, AnActivationIsForMethodsWithoutAMapOrForFiniteDifferences) {
  const TaskFolder folder(kHopper, std::string(kTask) + "control { period: 0.02 }");
  Loaded hopper(folder.task());
  EXPECT_THAT(hopper.model.without_map, HasSubstr("the force of actuator push is no affine function"));
  for (const char* rule : {"safe_map", "cbf_qp"}) {
    EXPECT_THAT(std::string(CheckActingRuleTask(rule, hopper.model).message()),
                ::testing::AllOf(HasSubstr("task hopper has no f and G"), HasSubstr("actuator push"),
                                 HasSubstr("dynamics: \"finite_difference\"")));
  }
  for (const char* rule : {"gaussian_policy", "normalised_gaussian", "safe_layer"}) {
    EXPECT_THAT(CheckActingRuleTask(rule, hopper.model), IsOk()) << rule;
  }
  const double u[3] = {0, 0, 1};
  hopper.task->Reset(nullptr, hopper.observation.data());
  EXPECT_EQ(hopper.observation[4], 0);
  ASSERT_TRUE(hopper.task->Step(u, hopper.observation.data()).valid);
  EXPECT_NEAR(hopper.observation[4], 1 - std::pow(1 - 0.002 / 0.03, 10), 1e-12) << "Euler's method of the filter";
  hopper.task->Reset(nullptr, hopper.observation.data());
  EXPECT_EQ(hopper.observation[4], 0) << "an episode starts with a fresh activation";
  const TaskFolder other(kHopper, std::string(kTask) + R"(control { dynamics: "finite_difference" })");
  const Loaded differences(other.task());
  EXPECT_EQ(differences.model.without_map, "");
  EXPECT_THAT(CheckActingRuleTask("safe_map", differences.model), IsOk());
}

TEST(TextDynamics, OnlyActuatorsWithAnActivationCanBeObserved) {
  const auto error = [](const std::string& signal) { return TaskFolder(kHopper, std::string(kTask) + signal).Error(); };
  EXPECT_EQ(error("extra { actuator: \"*\" name: \"all\" }"), "");
  EXPECT_THAT(error("extra { actuator: \"lift\" name: \"one\" }"),
              HasSubstr("extra[0].actuator: actuator lift has no activation"));
  EXPECT_THAT(error("extra { actuator: \"push\" name: \"one\" quantity: \"velocity\" }"),
              HasSubstr("extra[0].quantity: an activation has none"));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
