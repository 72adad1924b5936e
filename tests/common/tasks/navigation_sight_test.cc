// Tests TIAGo++'s observation of its target, and the scripted controllers that use it.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/tasks/navigation/dynamics.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom::navigation {
namespace {

using ::datacom::testing::IsOk;

v1::TaskOptions Showing(const char* observation) {
  v1::TaskOptions options;
  options.set_observation(observation);
  return options;
}
v1::TaskOptions RobotFrame() { return Showing("robot_frame"); }

// Turned by 30 degrees, target at x + 2 m, y - 1 m: ahead 2 cos 30 - sin 30, left - cos 30 - 2 sin 30.
TEST(Navigation, RobotFrameGivesTheTargetAheadAndToTheLeft) {
  const std::map<std::string, double> start = {
      {"tiago_x", 1}, {"tiago_y", 2}, {"tiago_yaw", M_PI / 6}, {"target_x", 3}, {"target_y", 1}};
  const auto robot = MakeTask("navigation", RobotFrame()).value(), world = MakeTask("navigation", {}).value();
  std::vector<double> obs(22), plain(22);
  RandomStream stream(1);
  ASSERT_THAT(robot->ResetTo(start, &stream, obs.data()), IsOk());
  ASSERT_THAT(world->ResetTo(start, &stream, plain.data()), IsOk());
  EXPECT_NEAR(obs[0], 1.2320508075688774, 1e-15);
  EXPECT_NEAR(obs[1], -1.8660254037844386, 1e-15);
  EXPECT_EQ(plain[0], 3);
  EXPECT_EQ(plain[1], 1);
}

// The observations of robot_frame, and nine numbers computed from them with rotation matrices of the observed yaw.
TEST(Navigation, RobotFrameAllAddsFetchAndItsHandInTheRobotsAxes) {
  const auto all = MakeTask("navigation", Showing("robot_frame_all")).value();
  const auto robot = MakeTask("navigation", RobotFrame()).value();
  ASSERT_EQ(all->spec().obs_dim, 31);
  std::vector<double> obs(31), plain(22);
  RandomStream one(3), two(3), actions(4);
  all->Reset(&one, obs.data());
  robot->Reset(&two, plain.data());
  for (int step = 0; step < 300; ++step) {
    ASSERT_TRUE(std::equal(plain.begin(), plain.end(), obs.begin())) << "step " << step;
    // A vector in the room's frame, projected on the robot's axes.
    const auto expect = [&](int at, double x, double y) {
      EXPECT_NEAR(obs[at], x * obs[4] + y * obs[5], 1e-14) << "step " << step << " entry " << at;
      EXPECT_NEAR(obs[at + 1], y * obs[4] - x * obs[5], 1e-14) << "step " << step << " entry " << at + 1;
    };
    EXPECT_NEAR(obs[22], obs[6] * obs[4] + obs[7] * obs[5], 1e-14);
    expect(23, obs[9] - obs[2], obs[10] - obs[3]);
    expect(25, obs[13], obs[14]);
    expect(27, obs[18] - obs[2], obs[19] - obs[3]);
    expect(29, obs[20], obs[21]);
    const double action[2] = {actions.Uniform(-1, 1), actions.Uniform(-1, 1)};
    all->Step(action, obs.data());
    robot->Step(action, plain.data());
  }
}

// All entries but those two are the same, and so are the safe map's inputs.
TEST(Navigation, TheTargetsFrameChangesNothingElse) {
  const auto robot = MakeTask("navigation", RobotFrame()).value(), world = MakeTask("navigation", {}).value();
  const TaskModel robots = MakeTaskModel("navigation", RobotFrame()).value();
  const TaskModel worlds = MakeTaskModel("navigation", {}).value();
  struct Inputs {
    double q[3], x[5], x_dot[5], f[3], G[6];
    bool operator==(const Inputs& other) const = default;
  };
  const auto inputs = [](const TaskModel& model, const std::vector<double>& obs) {
    Inputs in;
    model.dynamics->Evaluate(obs.data(), {in.q, in.x, in.x_dot, in.f, in.G});
    return in;
  };
  std::vector<double> obs(22), plain(22);
  RandomStream one(3), two(3), actions(4);
  robot->Reset(&one, obs.data());
  world->Reset(&two, plain.data());
  for (int step = 0; step < 300; ++step) {
    ASSERT_TRUE(std::equal(obs.begin() + 2, obs.end(), plain.begin() + 2)) << "step " << step;
    ASSERT_TRUE(inputs(robots, obs) == inputs(worlds, plain));
    // Back to the room's frame: rotate by the observed yaw, then shift.
    const double yaw = std::atan2(obs[5], obs[4]), angle = std::atan2(obs[1], obs[0]) + yaw;
    const double distance = std::sqrt(obs[0] * obs[0] + obs[1] * obs[1]);
    EXPECT_NEAR(obs[2] + distance * std::cos(angle), plain[0], 1e-14);
    EXPECT_NEAR(obs[3] + distance * std::sin(angle), plain[1], 1e-14);
    for (size_t i = 0; i < worlds.scripted.size(); ++i) {
      double seen[2], known[2];
      robots.scripted[i].act(obs.data(), seen);
      worlds.scripted[i].act(plain.data(), known);
      for (int a = 0; a < 2; ++a) EXPECT_NEAR(seen[a], known[a], 1e-12) << worlds.scripted[i].name;
    }
    const double action[2] = {actions.Uniform(-1, 1), actions.Uniform(-1, 1)};
    const StepResult by_robot = robot->Step(action, obs.data()), by_world = world->Step(action, plain.data());
    EXPECT_EQ(by_robot.reward, by_world.reward);
    EXPECT_EQ(by_robot.cost, by_world.cost);
  }
  ASSERT_TRUE(robots.slices[0].at(1.5, -2, obs.data()));  // target in the room's middle, heading along x
  EXPECT_EQ(obs[0], -1.5);
  EXPECT_EQ(obs[1], 2);
}

Sight Seeing(Point target, PlanarState fetch, Point hand) {
  Sight sight;
  sight.target = target;
  sight.fetch = fetch;
  sight.hand = hand;
  return sight;
}
const PlanarState kFarAway = {3, 2};
const Point kFarHand = {3, 1.5};

TEST(Scripted, TurnsToTheTargetAndSlowsDownNearIt) {
  const auto move = [](Point target) { return TurnAndDrive(Seeing(target, kFarAway, kFarHand)); };
  EXPECT_EQ(move({2, 0}).v, 1);
  EXPECT_EQ(move({2, 0}).omega, 0);
  EXPECT_EQ(move({0.5, 0}).v, 0.5);
  EXPECT_EQ(move({0.09, 0}).v, 0) << "at the target";
  EXPECT_NEAR(move({0, 2}).v, 0, 1e-15) << "to the side";
  EXPECT_EQ(move({0, 2}).omega, M_PI / 3) << "turns left at full speed";
  EXPECT_EQ(move({-2, -0.1}).v, 0);
  EXPECT_EQ(move({-2, -0.1}).omega, -M_PI / 3);
  EXPECT_NEAR(move({1, 0.1}).omega, 3 * std::atan(0.1), 1e-15);
}

TEST(Scripted, BacksOffFromFetchsBaseAndArmOnlyWhenTheyAreNear) {
  const auto near = [](PlanarState fetch, Point hand) { return BackOff(Seeing({2, 0}, fetch, hand)); };
  EXPECT_EQ(near(kFarAway, kFarHand).v, 1) << "like turn_and_drive";
  EXPECT_EQ(near({0.6, 0}, {3, 0}).v, -1) << "ahead: backwards";
  EXPECT_EQ(near({-0.6, 0}, {-3, 0}).v, 1) << "behind: forwards";
  EXPECT_EQ(near({0.5, 2}, {0.5, -2}).v, -1) << "the middle of its arm";
  EXPECT_NEAR(near({0.85, 0}, {3, 0}).v, 0, 1e-12) << "half way between";
  const Motion beside = near({0.3, 0.5}, {0.3, 2});
  EXPECT_EQ(beside.v, -1);
  EXPECT_EQ(beside.omega, M_PI / 3) << "turns until driving back leads away";
}

TEST(Scripted, StopsBeforeWallsForwardsAndBackwards) {
  Sight sight = Seeing({2, 0}, {0.6, 0}, {3, 0});
  sight.tiago.x = -2.95;  // 0.55 m to the wall behind it, where it stops; Fetch 0.6 m ahead
  sight.fetch.x = -2.35;
  sight.hand.x = 0;
  EXPECT_NEAR(BackOff(sight).v, 0, 1e-12);
  sight.tiago.x = -2.75, sight.fetch.x = -2.15;
  EXPECT_NEAR(BackOff(sight).v, -0.2, 1e-12);
  sight.fetch = kFarAway, sight.hand = kFarHand;
  sight.tiago = {0, 1.75, M_PI / 2};  // facing the wall at 2.5
  EXPECT_NEAR(BackOff(sight).v, 0.2, 1e-12);
}

}  // namespace
}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
