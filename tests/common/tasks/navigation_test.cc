// Tests navigation's drives, arm, contacts, starts and options.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/tasks/mujoco.h"
#include "common/tasks/navigation/fetch.h"
#include "common/tasks/navigation/objective.h"
#include "common/tasks/navigation/wheel_drive.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom::navigation {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;
using Start = std::map<std::string, double>;

std::unique_ptr<Task> MakeNavigation(const v1::TaskOptions& options = {}) {
  auto task = MakeTask("navigation", options);
  if (!task.ok()) throw std::runtime_error(std::string(task.status().message()));
  return *std::move(task);
}

// Only TIAGo++ stands in the middle; Fetch idles in a corner unless `start` places it elsewhere.
std::vector<double> Begin(Task* task, Start start) {
  const Start apart = {{"tiago_x", 0},   {"tiago_y", 0},  {"tiago_yaw", 0}, {"fetch_x", 2.6}, {"fetch_y", 1.8},
                       {"fetch_yaw", 0}, {"target_x", 1}, {"target_y", 0},  {"fetch_idle", 1}};
  start.insert(apart.begin(), apart.end());
  std::vector<double> obs(22);
  RandomStream stream(1);
  EXPECT_THAT(task->ResetTo(start, &stream, obs.data()), IsOk());
  return obs;
}

PlanarState Seen(const double* seven) {
  return {seven[0], seven[1], std::atan2(seven[3], seven[2]), seven[4], seven[5], seven[6]};
}
double Forward(const PlanarState& robot) { return std::cos(robot.yaw) * robot.vx + std::sin(robot.yaw) * robot.vy; }

TEST(NavigationModel, LinkPointsEqualTheKinematics) {
  const auto task = MakeNavigation();
  const mjModel& model = task->simulation()->model();
  const MujocoData data = *MakeMujocoData(model);
  RandomStream random(3);
  mjtNum before[9];
  HandAxes axes_before;
  const char* sites[kLinkPoints] = {"shoulder_lift", "elbow_flex", "wrist_flex", "hand"};
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < model.nq; ++i) {
      data->qpos[i] = random.Uniform(-2, 2);
      data->qvel[i] = random.Uniform(-2, 2);
    }
    mj_step1(&model, data.get());
    const mjtNum* q = data->qpos + 3;
    const mjtNum* v = data->qvel + 3;
    const PlanarState fetch = {q[0], q[1], q[2], v[0], v[1], v[2]};
    const Arm arm = {q[3], q[4], q[5], q[6]}, rate = {v[3], v[4], v[5], v[6]};
    const LinkPoints points = FetchLinkPoints(fetch, arm);
    for (int i = 0; i < kLinkPoints; ++i) {
      const int site = mj_name2id(&model, mjOBJ_SITE, sites[i]);
      ASSERT_GE(site, 0);
      EXPECT_NEAR(points[i].x, data->site_xpos[3 * site], 1e-12);
      EXPECT_NEAR(points[i].y, data->site_xpos[3 * site + 1], 1e-12);
      EXPECT_NEAR(points[i].z, data->site_xpos[3 * site + 2], 1e-12);
      if (i != kHand) continue;
      mjtNum velocity[6];  // rotation, translation
      mj_objectVelocity(&model, data.get(), mjOBJ_SITE, site, velocity, 0);
      const HandAxes axes = FetchHandAxes(fetch, arm);
      const Point hand = FetchHandVelocity(fetch, arm, rate, axes);
      EXPECT_NEAR(hand.x, velocity[3], 1e-12);
      EXPECT_NEAR(hand.y, velocity[4], 1e-12);
      // Reported in the previous step's axes: the orientation times the velocity in the link's own axes.
      const mjtNum* orientation = data->site_xmat + 9 * site;
      mjtNum own[3], reported[3];
      mju_mulMatTVec(own, orientation, velocity + 3, 3, 3);
      mju_mulMatVec(reported, before, own, 3, 3);
      const Point seen = FetchHandVelocity(fetch, arm, rate, axes_before);
      if (round > 0) {
        EXPECT_NEAR(seen.x, reported[0], 1e-12);
        EXPECT_NEAR(seen.y, reported[1], 1e-12);
      }
      std::copy(orientation, orientation + 9, before);
      axes_before = axes;
    }
  }
}

// The distance at which contact begins: between the robots, or of TIAGo++ from the wall at x = 3.5.
struct Approach {
  std::string name;
  bool wall;
  double tiago_yaw, fetch_yaw;
  Arm arm;
  double measured, tolerance;  // m
};

TEST(NavigationModel, ContactsBeginAtTheDistancesMeasuredOnTheRealShapes) {
  const double pi = M_PI;
  const Arm straight = {0, 0, 0, 0};
  const Approach approaches[] = {
      {"facing a wall", true, 0, 0, kTuckedArm, 0.252, 0.003},
      {"back to a wall", true, pi, 0, kTuckedArm, 0.252, 0.003},
      {"side to a wall", true, pi / 2, 0, kTuckedArm, 0.267, 0.003},
      {"other side to a wall", true, -pi / 2, 0, kTuckedArm, 0.267, 0.003},
      {"diagonally to a wall", true, pi / 4, 0, kTuckedArm, 0.293, 0.003},
      {"diagonally backwards to a wall", true, 3 * pi / 4, 0, kTuckedArm, 0.259, 0.003},
      {"facing Fetch's right side", false, pi, pi / 2, kTuckedArm, 0.52, 0.02},
      {"facing Fetch's front, diagonally", false, pi, pi / 4, kTuckedArm, 0.55, 0.02},
      {"facing Fetch's back, diagonally", false, pi, 3 * pi / 4, kTuckedArm, 0.55, 0.03},
      {"facing Fetch's back", false, pi, pi, kTuckedArm, 0.58, 0.04},
      {"facing Fetch's straight arm", false, pi, 0, straight, 1.385, 0.02},
      {"back to Fetch's straight arm", false, 0, 0, straight, 1.385, 0.02},
  };
  const auto task = MakeNavigation();
  const mjModel& model = task->simulation()->model();
  const MujocoData data = *MakeMujocoData(model);
  for (const Approach& approach : approaches) {
    const auto touches = [&](double distance) {
      mj_resetData(&model, data.get());
      const double state[10] = {approach.wall ? kRoomX - distance : distance,
                                0,
                                approach.tiago_yaw,
                                approach.wall ? -2.0 : 0.0,
                                0,
                                approach.fetch_yaw,
                                approach.arm[0],
                                approach.arm[1],
                                approach.arm[2],
                                approach.arm[3]};
      std::copy(state, state + 10, data->qpos);
      mj_step1(&model, data.get());
      return data->ncon > 0;
    };
    double near = 0.1, far = 2;
    ASSERT_TRUE(touches(near) && !touches(far)) << approach.name;
    while (far - near > 1e-6) (touches((near + far) / 2) ? near : far) = (near + far) / 2;
    EXPECT_NEAR(near, approach.measured, approach.tolerance) << approach.name;
  }
}

TEST(WheelDrive, NeverExceedsItsTorque) {
  const WheelDrive drive({100, 0, 4});
  const double most = 2 * kWheelTorque / kWheelRadius * kControlDt / 100;  // m/s in a step
  const Motion far = drive.Change({0, 0}, {1, 0});
  EXPECT_NEAR(far.v, most, 1e-15);
  EXPECT_NEAR(far.omega, 0, 1e-15);
  const Motion near = drive.Change({0.99, 0}, {1, 0});
  EXPECT_NEAR(near.v, 0.01, 1e-15) << "reaches a speed within its torque";
  const Motion brake = drive.Change({1, 0.1}, {0, 0});
  EXPECT_NEAR(brake.v, -most, 1e-15);
  EXPECT_NEAR(brake.omega, 0, 1e-12) << "when both wheels slip the robot does not turn";
  EXPECT_NEAR(drive.Change({0, 0}, {0, -1e300}).v, 0, 1e-12) << "the wheels turn in opposite directions";
}

TEST(Navigation, DelaysATurnWhileBothWheelsAccelerate) {
  const auto task = MakeNavigation();
  std::vector<double> obs = Begin(task.get(), {});
  const double both[2] = {0.5, 1.0};
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(task->Step(both, obs.data()).valid);
    if (i == 6) {
      EXPECT_LT(std::abs(obs[8]), 0.15);
    }
  }
  EXPECT_NEAR(Forward(Seen(&obs[2])), 0.5, 0.01);
  EXPECT_NEAR(obs[8], 1.0, 0.01);
}

TEST(Navigation, IntegratesDriveAndServosExactlyWithoutContacts) {
  const auto task = MakeNavigation();
  std::vector<double> obs = Begin(task.get(), {{"fetch_idle", 0}, {"fetch_target_x", -2}, {"fetch_target_y", 1.5}});
  const mjModel& model = task->simulation()->model();
  const mjData& data = *task->simulation()->data();
  const int tiago = mj_name2id(&model, mjOBJ_BODY, "tiago");
  const double mass = model.body_mass[tiago], left = model.body_ipos[3 * tiago + 1];
  EXPECT_NEAR(mass, 100.9, 1e-12);
  EXPECT_NEAR(model.body_inertia[3 * tiago + 2] + mass * left * left, 3.68, 1e-12);
  const WheelDrive drive({mass, left, 3.68});
  ArmPattern pattern;
  RandomStream actions(5);
  for (int i = 0; i < 60; ++i) {
    const PlanarState before = Seen(&obs[2]), fetch = Seen(&obs[9]);
    const Motion action = {actions.Uniform(-1, 1), actions.Uniform(-1, 1)};
    Arm arm;
    std::copy(data.qpos + 6, data.qpos + 10, arm.begin());
    const Motion moving = {Forward(before), before.yaw_rate};
    const Motion change = drive.Change(moving, action);
    const Motion fetch_change = FetchChange({Forward(fetch), fetch.yaw_rate}, FetchCommand(fetch, {-2, 1.5}), 1);
    ASSERT_TRUE(task->Step(&action.v, obs.data()).valid);
    const PlanarState after = Seen(&obs[2]), fetch_after = Seen(&obs[9]);
    const double v = moving.v + change.v, omega = moving.omega + change.omega;
    EXPECT_NEAR(after.vx, v * std::cos(before.yaw), 1e-9);
    EXPECT_NEAR(after.vy, v * std::sin(before.yaw), 1e-9);
    EXPECT_NEAR(after.yaw_rate, omega, 1e-9);
    EXPECT_NEAR(after.x, before.x + after.vx * kControlDt, 1e-9);
    EXPECT_NEAR(WrapAngle(after.yaw - before.yaw), omega * kControlDt, 1e-9);
    EXPECT_NEAR(fetch_after.vx, (Forward(fetch) + fetch_change.v) * std::cos(fetch.yaw), 1e-9);
    EXPECT_NEAR(fetch_after.yaw_rate, fetch.yaw_rate + fetch_change.omega, 1e-9);
    const Arm& target = pattern.Next();
    for (int j = 0; j < kArmJoints; ++j) {
      EXPECT_NEAR(data.qpos[6 + j], arm[j] + kArmGain * (target[j] - arm[j]), 1e-9);
    }
    Arm arm_after, rate;
    std::copy(data.qpos + 6, data.qpos + 10, arm_after.begin());
    std::copy(data.qvel + 6, data.qvel + 10, rate.begin());
    const Point velocity = FetchHandVelocity(fetch_after, arm_after, rate, FetchHandAxes(fetch, arm));
    EXPECT_NEAR(obs[20], velocity.x, 1e-9);
    EXPECT_NEAR(obs[21], velocity.y, 1e-9);
    const LinkPoint hand = FetchLinkPoints(fetch, arm)[kHand];
    EXPECT_NEAR(obs[18], hand.x, 1e-9) << "the hand's position is one step old";
    EXPECT_NEAR(obs[19], hand.y, 1e-9);
    EXPECT_EQ(obs[16], action.v);
    EXPECT_EQ(obs[17], action.omega);
  }
}

TEST(Navigation, EndsAtAWallAndStaysFinite) {
  const auto task = MakeNavigation();
  std::vector<double> obs = Begin(task.get(), {{"tiago_x", 2.5}, {"target_x", 3.2}});
  const double ahead[2] = {1, 0.3};
  int absorbed = 0;
  for (int i = 0; i < 500; ++i) {
    const StepResult result = task->Step(ahead, obs.data());
    ASSERT_TRUE(result.valid) << "step " << i;
    if (result.absorbing) {
      EXPECT_EQ(result.reward, -1000);
      if (++absorbed == 1) {
        EXPECT_NEAR(obs[2], kRoomX - 0.253, 0.05);
      }
    }
    EXPECT_EQ(result.cost > 0, obs[2] > kRoomX - 0.5 || std::abs(obs[3]) > kRoomY - 0.5)
        << "cost alone does not end the episode";
  }
  EXPECT_GT(absorbed, 0);
  EXPECT_FALSE(task->Success());
}

// Fetch drives into TIAGo++, which stands in front of a wall, and keeps pushing.
TEST(Navigation, EndsWhenFetchRunsIntoItAndStaysFinite) {
  const auto task = MakeNavigation();
  std::vector<double> obs = Begin(task.get(), {{"tiago_x", 3.2},
                                               {"fetch_x", 0},
                                               {"fetch_y", 0},
                                               {"fetch_idle", 0},
                                               {"fetch_target_x", 3.4},
                                               {"fetch_target_y", 0}});
  const double stay[2] = {0, 0};
  int absorbed = 0;
  for (int i = 0; i < 1000; ++i) {
    const StepResult result = task->Step(stay, obs.data());
    ASSERT_TRUE(result.valid) << "step " << i;
    absorbed += result.absorbing;
    for (const double value : obs) ASSERT_LT(std::abs(value), 10) << "step " << i;
  }
  EXPECT_GT(absorbed, 10);
}

TEST(Navigation, SurvivesStartsInsideEachOtherAndInsideWalls) {
  const auto task = MakeNavigation();
  RandomStream random(11);
  std::vector<double> obs;
  for (int episode = 0; episode < 100; ++episode) {
    const double x = random.Uniform(-3.6, 3.6), y = random.Uniform(-2.6, 2.6);
    obs = Begin(task.get(), {{"tiago_x", x},
                             {"tiago_y", y},
                             {"tiago_yaw", random.Uniform(-3, 3)},
                             {"fetch_x", x + random.Uniform(-0.3, 0.3)},
                             {"fetch_y", y + random.Uniform(-0.3, 0.3)},
                             {"fetch_yaw", random.Uniform(-3, 3)},
                             {"fetch_idle", 0}});
    for (int i = 0; i < 60; ++i) {
      const double action[2] = {random.Uniform(-1, 1), random.Uniform(-1, 1)};
      ASSERT_TRUE(task->Step(action, obs.data()).valid) << "episode " << episode << " step " << i;
    }
    for (const double value : obs) ASSERT_LT(std::abs(value), 50);
  }
}

TEST(Navigation, StartsInTheMiddleThreeQuartersOfTheRoomWithTheRobotsApart) {
  const auto task = MakeNavigation();
  double largest[2] = {0, 0}, nearest = 10;
  std::vector<double> obs(22);
  for (int i = 0; i < 2000; ++i) {
    RandomStream stream(i);
    task->Reset(&stream, obs.data());
    for (const int at : {0, 2, 9}) {  // target, TIAGo++, Fetch
      for (int axis = 0; axis < 2; ++axis)
        largest[axis] = testing::LargerOrNan(std::abs(obs[at + axis]), largest[axis]);
    }
    nearest = testing::SmallerOrNan(std::hypot(obs[2] - obs[9], obs[3] - obs[10]), nearest);
    for (const int zero : {6, 7, 8, 13, 14, 15, 16, 17, 20, 21}) ASSERT_EQ(obs[zero], 0);
  }
  EXPECT_GT(nearest, 0.8);
  EXPECT_LT(nearest, 0.85);
  EXPECT_NEAR(largest[0], 2.625, 0.01);
  EXPECT_LE(largest[0], 2.625);
  EXPECT_NEAR(largest[1], 1.875, 0.01);
  EXPECT_LE(largest[1], 1.875);
}

TEST(Navigation, ASetStartValueDoesNotChangeTheOtherDraws) {
  const auto task = MakeNavigation();
  std::vector<double> drawn(22), named(22);
  RandomStream one(4), two(4);
  task->Reset(&one, drawn.data());
  const double x = drawn[2] + 0.001;
  ASSERT_THAT(task->ResetTo({{"tiago_x", x}}, &two, named.data()), IsOk());
  EXPECT_EQ(named[2], x);
  named[2] = drawn[2];
  EXPECT_EQ(named, drawn);
  EXPECT_FALSE(task->ResetTo({{"fetch_idle", 0.5}}, &two, named.data()).ok());
  EXPECT_FALSE(task->ResetTo({{"tiago_x", std::numeric_limits<double>::infinity()}}, &two, named.data()).ok());
}

TEST(Navigation, FetchDrivesFromTargetToTargetIndependentlyOfTiago) {
  const auto one = MakeNavigation(), two = MakeNavigation();
  const Start outside = {{"tiago_x", 20}, {"fetch_idle", 0}};  // out of reach
  std::vector<double> a = Begin(one.get(), outside), b = Begin(two.get(), outside);
  RandomStream actions(2);
  double largest = 0;
  int crossings = 0;
  for (int i = 0; i < 5000; ++i) {
    const bool right = a[9] > 0;
    const double stay[2] = {0, 0}, turn[2] = {0, actions.Uniform(-1, 1)};
    ASSERT_TRUE(one->Step(stay, a.data()).valid);
    ASSERT_TRUE(two->Step(turn, b.data()).valid);
    ASSERT_TRUE(std::equal(a.begin() + 9, a.begin() + 16, b.begin() + 9)) << "step " << i;
    largest = testing::LargerOrNan(std::abs(a[9]), largest);
    crossings += right != (a[9] > 0);
  }
  EXPECT_LT(largest, kRoomX - 0.3) << "it slows down before walls";
  EXPECT_GT(crossings, 4);
}

TEST(Fetch, SlowsDownOnlyNearAWallThatItApproaches) {
  PlanarState fetch = {0, 1.85, M_PI / 2, 0, 0.5, 0};
  EXPECT_NEAR(FetchCommand(fetch, {0, 10}).v, 0.7 * 0.5, 1e-12);
  fetch.vy = -0.5;
  EXPECT_NEAR(FetchCommand(fetch, {0, 10}).v, 0.7, 1e-12);
  fetch = {-3.2, 0, M_PI, -0.5, 0, 0};
  EXPECT_EQ(FetchCommand(fetch, {-10, 0}).v, 0);
}

TEST(Fetch, SwingsItsArmInTriangles) {
  ArmPattern pattern;
  std::vector<double> pan, lift;
  for (int i = 0; i < 1600; ++i) {
    const Arm& target = pattern.Next();
    pan.push_back(target[0]);
    lift.push_back(target[1]);
  }
  const auto turns = [](const std::vector<double>& wave) {
    std::vector<int> at;
    for (size_t i = 1; i + 1 < wave.size(); ++i) {
      if ((wave[i] - wave[i - 1]) * (wave[i + 1] - wave[i]) < 0) at.push_back(static_cast<int>(i) + 2);
    }
    return at;  // the first step in the other direction
  };
  EXPECT_EQ(turns(pan), (std::vector<int>{201, 601, 1001, 1401}));
  EXPECT_EQ(turns(lift), (std::vector<int>{101, 301, 501, 701, 901, 1101, 1301, 1501}));
}

TEST(Navigation, SucceedsAtTheTargetWithoutContact) {
  const auto task = MakeNavigation();
  Begin(task.get(), {{"target_x", 0.19}});
  EXPECT_TRUE(task->Success());
  Begin(task.get(), {{"target_x", 0.21}});
  EXPECT_FALSE(task->Success());
}

TEST(Navigation, GivesThePapersRewardWhenConfigured) {
  v1::TaskOptions options;
  options.set_reward("paper");
  const auto paper = MakeNavigation(options), code = MakeNavigation();
  std::vector<double> obs = Begin(paper.get(), {}), other = Begin(code.get(), {});
  const double action[2] = {0.6, 0.8};
  for (int i = 0; i < 3; ++i) {
    const StepResult result = paper->Step(action, obs.data());
    const double distance = std::hypot(1 - obs[2], obs[3]);
    const double heading = -result.reward - distance - 0.1;  // the term of the goal heading; |action| = 1
    EXPECT_GE(heading, 0);
    EXPECT_LE(heading, 1);
    EXPECT_NE(result.reward, code->Step(action, other.data()).reward);
    EXPECT_EQ(obs, other);
  }
  EXPECT_NEAR(PaperReward({0, 0, 0.5}, {0, 0.2}, 0.5 + M_PI / 2, {0, -1}), -0.2 - 0.5 * 0.5 - 0.1, 1e-12);
}

TEST(Navigation, RefusesOptionsOfOtherTasks) {
  v1::TaskOptions options;
  options.set_mismatch_sigma(0.1);
  const absl::Status status = MakeTask("navigation", options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("mismatch_sigma"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("navigation"));
}

TEST(Navigation, AHeavierRobotAcceleratesMoreSlowlyAndALighterOneStillReachesItsSpeed) {
  const auto task = MakeNavigation();
  const auto speed_after = [&task](double mass, int steps) {
    task->ScalePhysics({mass, 1, 1});
    std::vector<double> obs = Begin(task.get(), {{"tiago_x", -2}});
    const double ahead[2] = {1, 0};
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(task->Step(ahead, obs.data()).valid);
    return Forward(Seen(&obs[2]));
  };
  const double nominal = speed_after(1, 10);
  EXPECT_NEAR(speed_after(2, 10), nominal / 2, 1e-3);
  EXPECT_NEAR(speed_after(0.25, 30), 1, 1e-3);
  EXPECT_EQ(speed_after(1, 10), nominal);
}

TEST(Navigation, ANaNActionMakesStepsInvalidUntilReset) {
  const auto task = MakeNavigation();
  std::vector<double> obs = Begin(task.get(), {});
  const double nan[2] = {std::numeric_limits<double>::quiet_NaN(), 0}, stay[2] = {0, 0}, huge[2] = {1e300, 1e300};
  EXPECT_FALSE(task->Step(nan, obs.data()).valid);
  EXPECT_FALSE(task->Step(stay, obs.data()).valid) << "an episode stays invalid until it ends";
  obs = Begin(task.get(), {});
  EXPECT_TRUE(task->Step(stay, obs.data()).valid);
  EXPECT_TRUE(task->Step(huge, obs.data()).valid) << "torque limits any command";
}

}  // namespace
}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
