// Tests air hockey's scripted striker.
#include "common/tasks/air_hockey/dynamics.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "common/tasks/air_hockey/arm.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "gtest/gtest.h"

namespace datacom::air_hockey {
namespace {

// The arm as at the start of an episode and a resting puck at (x, y) in the robot's frame.
std::vector<double> StartWithPuck(double x, double y) {
  std::vector<double> observation(kObservation);
  observation[kPuckPosition] = x;
  observation[kPuckPosition + 1] = y;
  std::copy_n(kStartPosition, kJoints, observation.begin() + kJointPosition);
  return observation;
}

// The mallet's acceleration that an action means for an arm at rest.
std::pair<double, double> MalletAcceleration(const std::vector<double>& observation, const double* action) {
  double mallet[2], jacobian[6], x = 0, y = 0;
  ForwardKinematics(observation.data() + kJointPosition, mallet, jacobian);
  const double limits[3] = {2 * M_PI, 2 * M_PI, 8 * M_PI / 3};
  for (int i = 0; i < 3; ++i) x += jacobian[i] * limits[i] * action[i], y += jacobian[3 + i] * limits[i] * action[i];
  return {x, y};
}

TEST(AirHockeyStriker, DrivesTheMalletStraightAtAPuckThatIsOnItsLineToTheGoal) {
  const std::vector<double> observation = StartWithPuck(1, 0);  // the mallet starts at (0.65, 0.00002)
  double action[3];
  Strike(observation.data(), action);
  const auto [x, y] = MalletAcceleration(observation, action);
  EXPECT_GT(x, 1) << "m/s^2";
  EXPECT_LT(std::abs(y), 0.01 * x);
}

TEST(AirHockeyStriker, MovesBesideThePuckBeforeItStrikes) {
  for (const double side : {-1.0, 1.0}) {
    const std::vector<double> observation = StartWithPuck(0.85, side * 0.3);
    double action[3];
    Strike(observation.data(), action);
    const auto [x, y] = MalletAcceleration(observation, action);
    EXPECT_GT(side * y, 1);
    EXPECT_LT(std::abs(x), side * y) << "no strike yet";
  }
}

TEST(AirHockeyStriker, BrakesAllJointsOnceThePuckMoves) {
  std::vector<double> observation = StartWithPuck(1, 0);
  observation[kPuckVelocity] = 1;
  double action[3];
  Strike(observation.data(), action);
  for (const double a : action) EXPECT_NEAR(a, 0, 1e-12) << "at rest in the start's posture";
  const double velocity[3] = {0.5, -0.5, 0.5};
  std::copy_n(velocity, 3, observation.begin() + kJointVelocity);
  Strike(observation.data(), action);
  for (int i = 0; i < 3; ++i) EXPECT_LT(action[i] * velocity[i], -0.05) << i;
}

TEST(AirHockeyStriker, AsksForFiniteActionsWithinTheirBoundsWhereverArmAndPuckAre) {
  RandomStream random(3);
  for (int round = 0; round < 10000; ++round) {
    std::vector<double> observation(kObservation);
    observation[kPuckPosition] = random.Uniform(0, 3);
    observation[kPuckPosition + 1] = random.Uniform(-0.6, 0.6);
    if (round % 5 == 0) observation[kPuckPosition] = 2.43, observation[kPuckPosition + 1] = 0;  // in the goal
    for (int i = 0; i < 3; ++i) {
      if (round % 7 != 0)
        observation[kJointPosition + i] = random.Uniform(-3, 3);  // else stretched, where J is singular
      observation[kJointVelocity + i] = random.Uniform(-3, 3);
    }
    double action[3];
    Strike(observation.data(), action);
    for (const double a : action) ASSERT_LE(std::abs(a), 1 + 1e-12);
  }
}

// The grid covers the region of starts, x in [-0.7, -0.3) and |y| <= 0.4 in the table's frame.
TEST(AirHockeyStriker, ScoresFromAllOverTheRegionOfStartsAndHardlyViolatesALimit) {
  const std::unique_ptr<Task> task = MakeTask("air_hockey", v1::TaskOptions()).value();
  std::vector<double> observation(kObservation);
  double violations = 0;
  for (const double x : {-0.69, -0.6, -0.5, -0.4, -0.31}) {
    for (const double y : {-0.39, -0.2, 0.0, 0.2, 0.39}) {
      RandomStream stream(1);
      ASSERT_TRUE(task->ResetTo({{"puck_x", x}, {"puck_y", y}}, &stream, observation.data()).ok());
      double largest = 0;
      bool ended = false;
      for (int step = 0; step < 300 && !ended; ++step) {
        double action[3];
        Strike(observation.data(), action);
        const StepResult result = task->Step(action, observation.data());
        largest = std::max(largest, result.cost);
        ended = result.absorbing;
      }
      EXPECT_TRUE(task->Success()) << x << " " << y;
      violations += largest;
    }
  }
  EXPECT_LT(violations / 25, 0.02) << "mean of the episodes' largest";
}

}  // namespace
}  // namespace datacom::air_hockey
// SPDX-License-Identifier: Apache-2.0
