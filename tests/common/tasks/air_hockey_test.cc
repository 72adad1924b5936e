// Tests the parts of air hockey: kinematics, constraints, rules, starts, mismatch, physics.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/tasks/air_hockey/arm.h"
#include "common/tasks/air_hockey/dynamics.h"
#include "common/tasks/air_hockey/task.h"
#include "common/tasks/hockey_rules.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom::air_hockey {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

std::unique_ptr<Task> Make(const v1::TaskOptions& options = {}) {
  auto task = MakeTask(options);
  if (!task.ok()) throw std::runtime_error(std::string(task.status().message()));
  return *std::move(task);
}

v1::TaskOptions WithSigma(double sigma) {
  v1::TaskOptions options;
  options.set_mismatch_sigma(sigma);
  return options;
}

void RandomPosture(RandomStream* random, double* q) {
  for (int i = 0; i < kJoints; ++i) q[i] = random->Uniform(-kPositionLimits[i], kPositionLimits[i]);
}

TEST(AirHockeyArm, TheJacobianIsTheDerivativeOfTheMalletsPosition) {
  RandomStream random(1);
  for (int round = 0; round < 100; ++round) {
    double q[3], mallet[2], J[6], high[2], low[2];
    RandomPosture(&random, q);
    ForwardKinematics(q, mallet, J);
    for (int j = 0; j < 3; ++j) {
      const double at = q[j], step = 1e-6;
      q[j] = at + step;
      ForwardKinematics(q, high, nullptr);
      q[j] = at - step;
      ForwardKinematics(q, low, nullptr);
      q[j] = at;
      for (int i = 0; i < 2; ++i) EXPECT_NEAR(J[i * 3 + j], (high[i] - low[i]) / (2 * step), 1e-8);
    }
  }
}

double DistanceFromStart(const double* q) {
  double square = 0;
  for (int i = 0; i < kJoints; ++i) square += (q[i] - kStartPosition[i]) * (q[i] - kStartPosition[i]);
  return std::sqrt(square);
}

TEST(AirHockeyArm, TheInverseGivesTheReachablePostureNearestToTheStart) {
  RandomStream random(2);
  for (int round = 0; round < 2000; ++round) {
    double some[3], q[3], place[2], mallet[2];
    RandomPosture(&random, some);
    ForwardKinematics(some, place, nullptr);
    ASSERT_TRUE(InverseKinematics(place[0], place[1], q)) << place[0] << " " << place[1];
    ForwardKinematics(q, mallet, nullptr);
    EXPECT_NEAR(mallet[0], place[0], 1e-9);
    EXPECT_NEAR(mallet[1], place[1], 1e-9);
    for (int i = 0; i < kJoints; ++i) EXPECT_LE(std::abs(q[i]), kPositionLimits[i] + 1e-9);
    EXPECT_LE(DistanceFromStart(q), DistanceFromStart(some) + 1e-3);
  }
}

TEST(AirHockeyArm, TheInverseOfTheStartIsTheStartAndFailsOutOfReach) {
  double mallet[2], q[3];
  ForwardKinematics(kStartPosition, mallet, nullptr);
  EXPECT_NEAR(mallet[0], 0.64993, 1e-5);
  EXPECT_NEAR(mallet[1], 0.00002, 1e-5);
  ASSERT_TRUE(InverseKinematics(mallet[0], mallet[1], q));
  for (int i = 0; i < kJoints; ++i) EXPECT_NEAR(q[i], kStartPosition[i], 1e-6);
  EXPECT_TRUE(InverseKinematics(1.42999, 0, q));
  EXPECT_FALSE(InverseKinematics(1.43001, 0, q));
  EXPECT_FALSE(InverseKinematics(0, 0, q));
}

TEST(AirHockeySlice, NeighbouringPositionsHaveNeighbouringPostures) {
  const auto model = MakeModel({});
  ASSERT_THAT(model, IsOk());
  const ObservationSlice& slice = model->slices.at(0);
  EXPECT_EQ(slice.x_low, -0.974);
  EXPECT_EQ(slice.y_high, 0.519);
  constexpr int kCells = 60;
  double largest = 0;
  int reached = 0;
  for (int i = 0; i < kCells; ++i) {
    std::vector<double> last;
    for (int j = 0; j < kCells; ++j) {
      const double x = slice.x_low + (slice.x_high - slice.x_low) * (i + 0.5) / kCells;
      const double y = slice.y_low + (slice.y_high - slice.y_low) * (j + 0.5) / kCells;
      std::vector<double> obs(kObservation);
      if (!slice.at(x, y, obs.data())) {
        last.clear();
        continue;
      }
      ++reached;
      double mallet[2];
      ForwardKinematics(obs.data() + kJointPosition, mallet, nullptr);
      EXPECT_NEAR(mallet[0] - kBaseX, x, 1e-9);
      EXPECT_NEAR(mallet[1], y, 1e-9);
      EXPECT_NEAR(obs[kMalletPosition] + obs[kPuckPosition], mallet[0], 1e-9);
      EXPECT_NEAR(obs[kMalletPosition + 1] + obs[kPuckPosition + 1], mallet[1], 1e-9);
      for (int k = 0; k < kJoints && !last.empty(); ++k) {
        largest = testing::LargerOrNan(std::abs(obs[kJointPosition + k] - last[kJointPosition + k]), largest);
      }
      last = obs;
    }
  }
  EXPECT_LT(largest, 0.25) << "rad between positions 17 mm apart";
  EXPECT_GT(reached, kCells * kCells * 8 / 10);
  EXPECT_LT(reached, kCells * kCells);
}

TEST(AirHockeyConstraints, JacobiansAreTheDerivativesAndTheLargestRowIsTheCost) {
  const Constraints constraints;
  ASSERT_EQ(constraints.names().size(), 17u);
  ASSERT_EQ(constraints.viability_gains().size(), 17u);
  for (int r = 0; r < 17; ++r) EXPECT_EQ(constraints.viability_gains()[r], r < 6 ? 1.0 : r < 11 ? 0.5 : 0.0);
  RandomStream random(3);
  for (int round = 0; round < 50; ++round) {
    double state[6], k[17], J[17 * 6], high[17], low[17], mallet[2];
    RandomPosture(&random, state);
    for (int i = 3; i < 6; ++i) state[i] = random.Uniform(-2, 2);
    constraints.Evaluate({state}, {k, J, nullptr});
    for (int j = 0; j < 6; ++j) {
      const double at = state[j], step = 1e-6;
      state[j] = at + step;
      constraints.Evaluate({state}, {high, nullptr, nullptr});
      state[j] = at - step;
      constraints.Evaluate({state}, {low, nullptr, nullptr});
      state[j] = at;
      for (int r = 0; r < 17; ++r) EXPECT_NEAR(J[r * 6 + j], (high[r] - low[r]) / (2 * step), 1e-8);
    }
    ForwardKinematics(state, mallet, nullptr);
    double largest = -1e9;
    for (int r = 0; r < 17; ++r) {
      if (r != 9 && r != 10) largest = testing::LargerOrNan(k[r], largest);  // the cost leaves out the height
    }
    EXPECT_NEAR(Cost(state, state + 3, mallet), largest, 1e-12);
  }
}

TEST(AirHockeyRules, EveryEndingAndStatesJustOutsideIt) {
  const std::pair<PuckState, Ending> cases[] = {
      {{0.579, 0, 0, 0}, Ending::kBottom},     {{0.581, 0, 0, 0}, Ending::kNone},
      {{0.629, 0, 0.1, 0}, Ending::kBottom},   {{0.629, 0, -0.1, 0}, Ending::kNone},
      {{2.431, 0.099, 1, 0}, Ending::kGoal},   {{2.431, 0.101, 1, 0}, Ending::kUp},
      {{2.429, 0, 1, 0}, Ending::kNone},       {{2.391, -0.05, -1, 0}, Ending::kGoal},
      {{2.391, -0.2, -1, 0}, Ending::kUp},     {{2.389, -0.05, -1, 0}, Ending::kNone},
      {{2.0, 0.451, 1, 0.1}, Ending::kLeft},   {{2.0, 0.449, 1, 0.1}, Ending::kNone},
      {{2.0, 0.421, 1, -0.1}, Ending::kLeft},  {{2.0, 0.419, 1, -0.1}, Ending::kNone},
      {{2.0, 0.451, -1, 0.1}, Ending::kNone},  {{1.5, 0.451, 1, 0.1}, Ending::kNone},
      {{2.0, -0.421, 1, 0.1}, Ending::kRight}, {{2.0, -0.419, 1, 0.1}, Ending::kNone},
      {{2.0, -0.48, 1, -0.1}, Ending::kNone},  // moving to the right side; as in the published code
      {{2.0, -0.48, -1, -0.1}, Ending::kNone},
  };
  for (const auto& [puck, ending] : cases) {
    EXPECT_EQ(EndingOf(puck), ending) << puck.x << " " << puck.y << " " << puck.vx << " " << puck.vy;
  }
}

TEST(AirHockeyRules, TheRewardOfAnEndingDependsOnTheDistance) {
  const double rho = (1 - std::pow(0.99, 300)) / (1 - 0.99);
  EXPECT_NEAR(EndingReward(Ending::kGoal, {2.44, 0}), 1.5 * rho, 1e-9);
  EXPECT_NEAR(EndingReward(Ending::kGoal, {2.44, -0.05}), 1.25 * rho, 1e-9);
  EXPECT_NEAR(EndingReward(Ending::kUp, {2.44, -0.1}), rho, 1e-9);
  EXPECT_NEAR(EndingReward(Ending::kUp, {2.44, 0.5}), 0.3 * rho, 1e-9);
  EXPECT_NEAR(EndingReward(Ending::kLeft, {2.43, 0.46}), 0.3 * rho, 1e-9);
  EXPECT_NEAR(EndingReward(Ending::kRight, {1.93, -0.46}), 0.15 * rho, 1e-9);
  EXPECT_EQ(EndingReward(Ending::kBottom, {0.5, 0}), 0);
  EXPECT_NEAR(GoalDistance({2.43 - 0.3, 0.4}), 0.5, 1e-12);
}

TEST(AirHockey, ThePuckStartsAnywhereInItsRegionAndTheArmAtOnePlace) {
  for (const auto& [region, limit] : {std::pair{"original", 0.4}, std::pair{"adjusted", 0.32}}) {
    v1::TaskOptions options;
    options.set_puck_region(region);
    const auto task = Make(options);
    RandomStream stream(5);
    double obs[16], low[3] = {9, 9, 9}, high[3] = {-9, -9, -9};
    for (int i = 0; i < 2000; ++i) {
      task->Reset(&stream, obs);
      for (int j = 0; j < 3; ++j) {
        low[j] = testing::SmallerOrNan(obs[j], low[j]);
        high[j] = testing::LargerOrNan(obs[j], high[j]);
        EXPECT_EQ(obs[kPuckVelocity + j], 0);
        EXPECT_EQ(obs[kJointPosition + j], kStartPosition[j]);
        EXPECT_EQ(obs[kJointVelocity + j], 0);
      }
      EXPECT_EQ(obs[kMalletVelocity], 0);
      EXPECT_EQ(obs[kMalletVelocity + 1], 0);
      EXPECT_NEAR(obs[kMalletPosition] + obs[0], 0.64993, 1e-5);
      EXPECT_NEAR(task->Cost(), -0.0657820, 1e-7);
      EXPECT_FALSE(task->Success());
    }
    // The extremes of 2000 draws are more than 1 % from the region's ends only once in e^20 runs.
    const double ends[3][2] = {{1.51 - 0.7, 1.51 - 0.3}, {-limit, limit}, {-M_PI, M_PI}};
    for (int j = 0; j < 3; ++j) {
      const double margin = 0.01 * (ends[j][1] - ends[j][0]);
      EXPECT_GE(low[j], ends[j][0]);
      EXPECT_LE(low[j], ends[j][0] + margin);
      EXPECT_LE(high[j], ends[j][1]);
      EXPECT_GE(high[j], ends[j][1] - margin);
    }
  }
}

TEST(AirHockey, StartValuesThatAreNotSetAreDrawnAsUsual) {
  const auto task = Make();
  double drawn[16], partly[16];
  RandomStream one(8), two(8);
  task->Reset(&one, drawn);
  ASSERT_THAT(task->ResetTo({{"puck_y", 0.25}}, &two, partly), IsOk());
  EXPECT_EQ(partly[0], drawn[0]);
  EXPECT_EQ(partly[1], 0.25);
  EXPECT_EQ(partly[2], drawn[2]);
  ASSERT_THAT(task->ResetTo({{"puck_yaw", 4.0}}, &two, partly), IsOk());
  EXPECT_NEAR(partly[2], 4.0 - 2 * M_PI, 1e-12);
}

TEST(AirHockey, RefusesInvalidStartsNamingThem) {
  const auto task = Make();
  RandomStream stream(1);
  double obs[16];
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [key, value] : {std::pair{"mallet_x", 0.0}, std::pair{"puck_x", infinity}}) {
    const absl::Status status = task->ResetTo({{key, value}}, &stream, obs);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(key));
  }
}

TEST(AirHockey, RefusesOptionsOfOtherTasks) {
  v1::TaskOptions options;
  options.set_reward("paper");
  for (const absl::Status& status : {MakeTask(options).status(), MakeModel(options).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("reward"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("air_hockey"));
  }
  options.clear_reward();
  options.set_horizon(40);
  EXPECT_EQ(Make(options)->spec().horizon, 40);
  EXPECT_EQ(Make()->spec().horizon, 300);
}

// The last observation of 30 steps of one action from a start drawn with `seed`.
std::vector<double> Played(Task* task, uint64_t seed) {
  RandomStream stream(seed);
  std::vector<double> obs(16);
  EXPECT_THAT(task->ResetTo({{"puck_x", -0.4}, {"puck_y", 0.2}, {"puck_yaw", 0}}, &stream, obs.data()), IsOk());
  const double action[3] = {0.2, -0.1, 0.3};
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(task->Step(action, obs.data()).valid);
  return obs;
}

TEST(AirHockey, TheMismatchIsOffByDefaultAndAFunctionOfTheStream) {
  const auto nominal = Make(), zero = Make(WithSigma(0)), one = Make(WithSigma(0.3)), two = Make(WithSigma(0.3));
  EXPECT_EQ(Played(nominal.get(), 4), Played(zero.get(), 4));
  EXPECT_EQ(Played(nominal.get(), 4), Played(nominal.get(), 5)) << "without mismatch only the start is random";
  const auto played = Played(one.get(), 4);
  EXPECT_EQ(played, Played(two.get(), 4));
  EXPECT_EQ(played, Played(one.get(), 4)) << "independent of earlier episodes";
  EXPECT_NE(played, Played(one.get(), 5));
  EXPECT_NE(played, Played(nominal.get(), 4));
}

TEST(AirHockey, TheMismatchAddsNoiseOfItsSigmaAndDampsTheFilteredVelocity) {
  const double sigma = 0.4;
  const auto damped = Make(WithSigma(sigma)), nominal = Make();
  auto* const by_noise = static_cast<AirHockey*>(damped.get());
  RandomStream one(1), two(1);
  double a[16], b[16];
  damped->Reset(&one, a);
  nominal->Reset(&two, b);
  for (int i = 0; i < 20; ++i) {
    const double action[3] = {0.3, 0.1, -0.2}, noise[3] = {0.05, -0.2, 0.1};
    double same[3];
    for (int j = 0; j < 3; ++j) same[j] = action[j] + noise[j] - sigma * b[kJointVelocity + j];
    by_noise->StepWithNoise(action, noise, a);
    nominal->Step(same, b);
    for (int j = 0; j < 16; ++j) ASSERT_NEAR(a[j], b[j], 1e-9) << "step " << i << " obs " << j;
  }
  // The noise that Step draws is held over the 20 ms, from rest and below the velocity limits. The deviation of 3000
  // draws has an error of 1.3 %; 6 % is almost five times that.
  const mjData& data = *damped->simulation()->data();
  double square = 0;
  for (int i = 0; i < 1000; ++i) {
    RandomStream episode(i);
    damped->Reset(&episode, a);
    const double still[3] = {0, 0, 0};
    damped->Step(still, a);
    for (int j = 0; j < 3; ++j) square += std::pow(data.qvel[j] / (0.02 * kAccelerationLimits[j]), 2);
  }
  EXPECT_NEAR(std::sqrt(square / 3000), sigma, 0.06 * sigma);
}

// Starts the puck at (x, y) of the table with a velocity and steps until the episode ends.
StepResult Shoot(Task* task, double x, double y, double vx, double vy) {
  RandomStream stream(1);
  double obs[16];
  EXPECT_THAT(task->ResetTo({{"puck_x", x}, {"puck_y", y}}, &stream, obs), IsOk());
  task->simulation()->data()->qvel[3] = vx;
  task->simulation()->data()->qvel[4] = vy;
  const double still[3] = {0, 0, 0};
  StepResult result;
  for (int i = 0; i < 100 && !result.absorbing; ++i) {
    result = task->Step(still, obs);
    EXPECT_TRUE(result.valid) << "step " << i;
  }
  return result;
}

TEST(AirHockey, OnlyAGoalIsASuccessAndItRemainsOne) {
  const auto task = Make();
  const double still[3] = {0, 0, 0};
  double obs[16];
  const auto* const hockey = static_cast<const AirHockey*>(task.get());
  const StepResult goal = Shoot(task.get(), 0.7, 0, 1.5, 0);
  EXPECT_TRUE(goal.absorbing);
  EXPECT_NEAR(goal.reward, 1.5 * 95.0959, 0.1);
  EXPECT_TRUE(task->Success());
  for (int i = 0; i < 50; ++i) task->Step(still, obs);
  EXPECT_TRUE(task->Success()) << "the puck's later motion does not matter";
  const std::pair<std::vector<double>, Ending> others[] = {{{0.7, 0.3, 1.5, 0}, Ending::kUp},
                                                           {{0.3, 0.4, 0.8, 1.0}, Ending::kLeft},
                                                           {{0.3, -0.4, 0.8, -1.0}, Ending::kRight},
                                                           {{-0.85, -0.3, -1.0, 0}, Ending::kBottom}};
  for (const auto& [shot, ending] : others) {
    EXPECT_TRUE(Shoot(task.get(), shot[0], shot[1], shot[2], shot[3]).absorbing);
    EXPECT_EQ(hockey->ending(), ending);
    EXPECT_FALSE(task->Success());
  }
}

TEST(AirHockey, TheFirstStepHasNoRewardAndLaterOnesThePucksProgress) {
  const auto task = Make();
  RandomStream stream(1);
  double obs[16];
  ASSERT_THAT(task->ResetTo({{"puck_x", 0.1}, {"puck_y", 0}}, &stream, obs), IsOk());
  task->simulation()->data()->qvel[3] = 1;
  const double still[3] = {0, 0, 0};
  EXPECT_EQ(task->Step(still, obs).reward, 0);
  const double before = obs[0];
  const double reward = task->Step(still, obs).reward;
  EXPECT_GT(reward, 0.9);
  EXPECT_NEAR(reward, 50 * (obs[0] - before), 1e-9);
}

TEST(AirHockey, ScaledPhysicsChangesTheSimulationButNotTheControllersModel) {
  const auto nominal = Make(), heavy = Make();
  PhysicsScale scale;
  scale.mass = 2, scale.damping = 3, scale.friction = 0.5;
  heavy->ScalePhysics(scale);
  RandomStream one(1), two(1);
  double a[16], b[16];
  nominal->Reset(&one, a);
  heavy->Reset(&two, b);
  const double desired[3] = {1, -0.5, 0.7};
  ASSERT_TRUE(static_cast<AirHockey*>(nominal.get())->Substep(desired));
  ASSERT_TRUE(static_cast<AirHockey*>(heavy.get())->Substep(desired));
  const mjData& usual = *nominal->simulation()->data();
  const mjData& scaled = *heavy->simulation()->data();
  const mjModel& model = nominal->simulation()->model();
  for (int j = 0; j < 3; ++j) {
    EXPECT_EQ(scaled.ctrl[j], usual.ctrl[j]);
    EXPECT_NEAR(scaled.qvel[j], usual.qvel[j] / 2, 1e-9);
  }
  ASSERT_GT(model.npair, 0);
  for (int i = 0; i < 5 * model.npair; ++i) {
    EXPECT_EQ(heavy->simulation()->model().pair_friction[i], 0.5 * model.pair_friction[i]);
  }
  for (int i = 0; i < model.nv; ++i) {
    EXPECT_EQ(heavy->simulation()->model().dof_damping[i], 3 * model.dof_damping[i]);
  }
}

// The nominal model is q_dot = f + G u. Compared with a control step, the rates of the positions agree up to the
// filter's lag (2.6 ms of acceleration, so 1e-2 at 6 rad/s^2) and the middle of the step. Those of the velocities are
// the action times the acceleration limits, which the published model leaves out.
TEST(AirHockeyModel, PredictsTheArmUpToItsStatedMismatch) {
  const auto model = MakeModel({});
  const auto task = Make();
  RandomStream random(6);
  for (int round = 0; round < 50; ++round) {
    double obs[16], next[16], f[6], G[18], action[3];
    task->Reset(&random, obs);
    for (double& value : action) value = random.Uniform(-0.3, 0.3);
    for (int i = 0; i < 3; ++i) task->Step(action, obs);  // after the filter's transient, below the velocity limits
    task->Step(action, next);
    model->dynamics->Evaluate(obs, {nullptr, nullptr, nullptr, f, G});
    for (int j = 0; j < 3; ++j) {
      double rate[2] = {f[j], f[3 + j]};
      for (int k = 0; k < 3; ++k) {
        rate[0] += G[j * 3 + k] * action[k];
        rate[1] += G[(3 + j) * 3 + k] * action[k];
      }
      const double dt = 0.02, acceleration = kAccelerationLimits[j] * rate[1];
      EXPECT_NEAR((next[kJointVelocity + j] - obs[kJointVelocity + j]) / dt, acceleration, 0.02);
      EXPECT_NEAR((next[kJointPosition + j] - obs[kJointPosition + j]) / dt, rate[0] + acceleration * dt / 2, 1e-2);
    }
  }
}

TEST(AirHockey, ANaNActionMakesStepsInvalidUntilReset) {
  const auto task = Make();
  RandomStream stream(1);
  double obs[16];
  task->Reset(&stream, obs);
  const double nan[3] = {0, std::numeric_limits<double>::quiet_NaN(), 0}, still[3] = {0, 0, 0};
  EXPECT_FALSE(task->Step(nan, obs).valid);
  EXPECT_FALSE(task->Step(still, obs).valid) << "an episode stays invalid until it ends";
  task->Reset(&stream, obs);
  EXPECT_TRUE(task->Step(still, obs).valid);
}

TEST(AirHockey, APuckInACornerOrUnderTheMalletFillsNoContactBuffer) {
  const auto task = Make();
  for (const auto& [x, y] : {std::pair{-0.95, 0.5}, std::pair{0.95, -0.5}, std::pair{-0.86, 0.0}}) {
    RandomStream stream(1);
    double obs[16];
    ASSERT_THAT(task->ResetTo({{"puck_x", x}, {"puck_y", y}}, &stream, obs), IsOk());
    const double still[3] = {0, 0, 0};
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(task->Step(still, obs).valid) << x << " " << y << " step " << i;
  }
}

}  // namespace
}  // namespace datacom::air_hockey
// SPDX-License-Identifier: Apache-2.0
