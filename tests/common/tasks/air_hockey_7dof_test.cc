// Tests air hockey with seven joints: its kinematics and model against MuJoCo, its cost, the rules that it shares with
// the planar task, and the mallet's height under the map of its known constraints.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/safety/known_rows.h"
#include "common/tasks/air_hockey_7dof/arm.h"
#include "common/tasks/air_hockey_7dof/dynamics.h"
#include "common/tasks/hockey_rules.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "gtest/gtest.h"
#include "mujoco/mujoco.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom::air_hockey_7dof {
namespace {

using ::datacom::testing::IsOk;

std::unique_ptr<Task> Make() { return MakeTask("air_hockey_7dof", v1::TaskOptions()).value(); }

TEST(AirHockey7, KinematicsEqualMujocos) {
  const auto task = Make();
  const mjModel& model = task->simulation()->model();
  const MujocoData data = MakeMujocoData(model).value();
  RandomStream random(1);
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < kJoints; ++i) data->qpos[i] = random.Uniform(-1, 1) * kPositionLimits[i];
    mj_kinematics(&model, data.get());
    mj_comPos(&model, data.get());
    const Pose pose = ForwardKinematics(data->qpos);
    for (const auto& [name, place, jacobian] : {std::tuple{"mallet", pose.mallet, pose.mallet_jacobian},
                                                std::tuple{"link_4", pose.elbow, pose.elbow_jacobian},
                                                std::tuple{"link_6", pose.wrist, pose.wrist_jacobian}}) {
      const int body = mj_name2id(&model, mjOBJ_BODY, name);
      std::vector<mjtNum> expected(3 * model.nv);
      mj_jac(&model, data.get(), expected.data(), nullptr, data->xpos + 3 * body, body);
      const double base[3] = {-1.51, 0, -0.1};
      for (int i = 0; i < 3; ++i) {
        EXPECT_NEAR(place[i] + base[i], data->xpos[3 * body + i], 1e-12) << name;
        for (int j = 0; j < kJoints; ++j) {
          EXPECT_NEAR(jacobian[i * kJoints + j], expected[i * model.nv + j], 1e-12) << name << " joint " << j + 1;
        }
      }
    }
  }
}

TEST(AirHockey7, StartsAtRestWithTheMalletOnItsPlaneAndTheToolPointingDown) {
  const auto task = Make();
  std::vector<double> observation(kObservation);
  RandomStream stream(1);
  task->Reset(&stream, observation.data());
  const Pose pose = ForwardKinematics(observation.data() + kJointPosition);
  const double mallet[3] = {0.65, 0, 0.11}, wrist[3] = {0.65, 0, 0.11 + 0.081 + 0.045 + 0.45};
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(pose.mallet[i], mallet[i], 1e-12);
    EXPECT_NEAR(pose.wrist[i], wrist[i], 1e-12);
  }
  EXPECT_NEAR(task->Cost(), -0.02, 1e-12) << "the tolerance of the height is the nearest limit";
  EXPECT_NEAR(observation[kMalletPosition + 2], 0, 1e-12);
}

// f and G are exact: the torques are within the motors' limits, and give the accelerations that the action names.
TEST(AirHockey7, TheModelPredictsTheSimulatedVelocities) {
  const auto task = Make();
  const TaskModel model = MakeTaskModel("air_hockey_7dof", v1::TaskOptions()).value();
  std::vector<double> now(kObservation), next(kObservation), f(2 * kJoints), G(2 * kJoints * kJoints);
  RandomStream random(2);
  for (int episode = 0; episode < 5; ++episode) {
    RandomStream stream(episode);
    task->Reset(&stream, now.data());
    for (int step = 0; step < 50; ++step) {
      double action[kJoints];
      for (double& a : action) a = random.Uniform(-1, 1);
      model.dynamics->Evaluate(now.data(), {nullptr, nullptr, nullptr, f.data(), G.data()});
      ASSERT_TRUE(task->Step(action, next.data()).valid);
      for (int i = 0; i < kJoints; ++i) {
        EXPECT_EQ(f[i], now[kJointVelocity + i]);
        double rate = 0;
        for (int j = 0; j < kJoints; ++j) rate += G[(kJoints + i) * kJoints + j] * action[j];
        EXPECT_NEAR(next[kJointVelocity + i], now[kJointVelocity + i] + 0.02 * rate, 1e-9) << "joint " << i + 1;
      }
      now = next;
    }
  }
}

TEST(AirHockey7, APuckInTheGoalIsASuccessAndEarnsWhatItEarnsInThePlanarTask) {
  const auto seven = Make(), planar = MakeTask("air_hockey", v1::TaskOptions()).value();
  std::vector<double> observation(kObservation);
  const std::vector<double> still(kJoints, 0.0);
  for (const auto& [y, goal] : {std::pair{0.05, true}, std::pair{0.3, false}}) {
    StepResult results[2];
    for (Task* task : {seven.get(), planar.get()}) {
      RandomStream stream(3);
      ASSERT_THAT(task->ResetTo({{"puck_x", 0.93}, {"puck_y", y}}, &stream, observation.data()), IsOk());
      results[task == planar.get()] = task->Step(still.data(), observation.data());
      EXPECT_EQ(task->Success(), goal);
    }
    EXPECT_TRUE(results[0].absorbing);
    EXPECT_EQ(results[0].reward, results[1].reward);
    EXPECT_NEAR(results[0].reward, 95.09591059287133 * (goal ? 1.5 - 5 * y : 1 - 2 * (y - 0.1)), 1e-9);
  }
}

TEST(AirHockey7, TheCostIsTheLargestViolatedLimitAndTheHeightBeyondTwoCentimetres) {
  double q[kJoints], velocity[kJoints] = {};
  std::copy_n(kStartPosition, kJoints, q);
  velocity[3] = 1.5;
  EXPECT_NEAR(Cost(q, velocity), 1.5 - 0.95 * 75 * M_PI / 180, 1e-12);
  velocity[3] = 0;
  q[6] = -3.2;
  EXPECT_NEAR(Cost(q, velocity), 3.2 - 0.95 * 175 * M_PI / 180, 1e-12);
  q[6] = 0, q[0] = M_PI / 2;
  EXPECT_NEAR(Cost(q, velocity), 0.58415, 1e-12) << "the mallet is beside the robot, at x = 0";
  q[0] = 0, q[5] -= 0.2;  // the tool turns by 0.2 rad about the wrist
  EXPECT_NEAR(Cost(q, velocity), 0.576 * (1 - std::cos(0.2)) - 0.02, 1e-12);
}

// Steps with a new random action each, mapped by the map of atacom_fi if `mapped`. Episodes are not ended: the arm
// never returns to its start. Returns the largest distance of the mallet from its plane.
double FarthestFromPlane(int steps, bool mapped, double* travelled) {
  const auto task = Make();
  const TaskModel model = MakeTaskModel("air_hockey_7dof", v1::TaskOptions()).value();
  AnalyticMap map(model.known_constraints, model.known_constraints->viability_gains(), model.dynamics->dims());
  std::vector<double> observation(kObservation), q(2 * kJoints), f(2 * kJoints), G(2 * kJoints * kJoints);
  RandomStream stream(5), random(6);
  task->Reset(&stream, observation.data());
  double farthest = 0, u[kJoints], action[kJoints];
  for (int step = 0; step < steps; ++step) {
    for (double& a : u) a = random.Uniform(-1, 1);
    model.dynamics->Evaluate(observation.data(), {q.data(), nullptr, nullptr, f.data(), G.data()});
    map.Set({q.data(), nullptr, f.data(), G.data(), nullptr, observation.data()}, {25, 3});
    map.Apply(u, action);
    EXPECT_TRUE(task->Step(mapped ? action : u, observation.data()).valid) << step;
    farthest = testing::LargerOrNan(std::abs(observation[kMalletPosition + 2]), farthest);
    *travelled += 0.02 * std::hypot(observation[kMalletVelocity] + observation[air_hockey::kPuckVelocity],
                                    observation[kMalletVelocity + 1] + observation[air_hockey::kPuckVelocity + 1]);
  }
  return farthest;
}

TEST(AirHockey7, ARandomPolicyThroughTheMapKeepsTheMalletWithinAMillimetreOfItsPlaneForTenThousandSteps) {
  double travelled = 0, without = 0;
  EXPECT_GT(FarthestFromPlane(500, false, &without), 0.1);
  const double farthest = FarthestFromPlane(10000, true, &travelled);
  RecordProperty("farthest_mm", std::to_string(1e3 * farthest));
  EXPECT_LT(farthest, 1e-3);
  EXPECT_GT(travelled, 10) << "the mallet moves";
}

}  // namespace
}  // namespace datacom::air_hockey_7dof
// SPDX-License-Identifier: Apache-2.0
