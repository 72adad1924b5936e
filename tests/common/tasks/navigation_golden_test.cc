// Tests navigation against the reference: tables, and recorded trajectories of the simulator it was published with.
//
// The recordings are from another simulator. Formulas are compared on its recorded states, to the printed digits;
// motion is compared within bounds.
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/tasks/navigation/fetch.h"
#include "common/tasks/navigation/objective.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom::navigation {
namespace {

using ::datacom::testing::GoldenTable;
using ::datacom::testing::IsOk;
using ::datacom::testing::ReadGoldenCsv;

constexpr const char* kLinkNames[kLinkPoints] = {"shoulder_lift", "elbow_flex", "wrist_flex", "l_finger"};
constexpr const char* kLinkColumns[kLinkPoints] = {"l11", "l13", "l15", "l19"};
constexpr const char* kArmColumns[kArmJoints] = {"arm_q_pan", "arm_q_lift", "arm_q_elbow", "arm_q_wrist"};
constexpr Point kRecordedTarget = {0.5, 0.5};  // target of the recordings' rewards
constexpr double kPrinted = 2e-7;              // eight printed digits of numbers up to 10

TEST(Golden, table_fetch_fk_cost) {
  DATACOM_GOLDEN_FILES(files, "table_fetch_fk_cost");
  for (const std::string& file : files) {
    const GoldenTable table = ReadGoldenCsv(file);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(file, " row ", i));
      const PlanarState fetch = {table.value(i, "fetch_x"), table.value(i, "fetch_y"), table.value(i, "fetch_yaw")};
      const PlanarState tiago = {table.value(i, "tiago_x"), table.value(i, "tiago_y")};
      const LinkPoints points = FetchLinkPoints(
          fetch, {table.value(i, "pan"), table.value(i, "lift"), table.value(i, "elbow"), table.value(i, "wrist")});
      const CostTerms costs = Costs(tiago, fetch, points);
      for (int link = 0; link < kLinkPoints; ++link) {
        EXPECT_NEAR(points[link].x, table.value(i, absl::StrCat(kLinkNames[link], "_x")), 1e-12);
        EXPECT_NEAR(points[link].y, table.value(i, absl::StrCat(kLinkNames[link], "_y")), 1e-12);
        EXPECT_NEAR(points[link].z, table.value(i, absl::StrCat(kLinkNames[link], "_z")), 1e-12);
        EXPECT_NEAR(costs.link[link], table.value(i, absl::StrCat("c_", kLinkNames[link])), 1e-12);
      }
      EXPECT_NEAR(costs.wall, table.value(i, "c_wall"), 1e-12);
      EXPECT_NEAR(costs.base, table.value(i, "c_base"), 1e-12);
      EXPECT_NEAR(costs.Largest(), table.value(i, "cost"), 1e-12);
    }
  }
}

// A recording of both robots; Fetch idles in the step files.
struct Recording {
  explicit Recording(const std::string& file)
      : table(ReadGoldenCsv(file)), fetch_idles(absl::StrContains(file, "nav_bullet_step_")) {}
  PlanarState Robot(size_t row, const char* robot, const char* yaw_rate) const {
    const auto at = [&](const char* name) { return table.value(row, absl::StrCat(robot, name)); };
    return {at("x"), at("y"), at("yaw"), at("vx"), at("vy"), table.value(row, yaw_rate)};
  }
  PlanarState Tiago(size_t row) const { return Robot(row, "t", "twz"); }
  PlanarState Fetch(size_t row) const { return Robot(row, "f", "fwz"); }
  Point FetchTarget(size_t row) const { return {table.value(row, "ftarget_x"), table.value(row, "ftarget_y")}; }
  Motion Action(size_t row) const { return {table.value(row, "a_v"), table.value(row, "a_w")}; }
  Arm ArmAngles(size_t row) const {
    Arm arm;
    for (int i = 0; i < kArmJoints; ++i) arm[i] = table.value(row, kArmColumns[i]);
    return arm;
  }
  LinkPoints Links(size_t row) const {
    LinkPoints points;
    for (int i = 0; i < kLinkPoints; ++i) {
      const auto at = [&](const char* axis) { return table.value(row, absl::StrCat(kLinkColumns[i], axis)); };
      points[i] = {at("x"), at("y"), at("z")};
    }
    return points;
  }
  bool Contact(size_t row) const { return table.value(row, "contact_tf") + table.value(row, "contact_tw") > 0; }
  size_t rows() const { return table.rows.size(); }

  GoldenTable table;
  bool fetch_idles;
};

struct Difference {
  void Add(double difference) {
    sum += difference * difference;
    worst = testing::LargerOrNan(std::abs(difference), worst);
    ++count;
  }
  double rms() const { return std::sqrt(sum / count); }
  double sum = 0, worst = 0;
  int count = 0;
};

TEST(Golden, nav_bullet_controller) {
  DATACOM_GOLDEN_FILES(files, "nav_bullet_");
  int driven = 0;
  for (const std::string& file : files) {
    const Recording recording(file);
    if (recording.fetch_idles) continue;
    ++driven;
    ArmPattern pattern;
    for (size_t i = 1; i < recording.rows(); ++i) {
      SCOPED_TRACE(absl::StrCat(file, " step ", i));
      const PlanarState fetch = recording.Fetch(i - 1);
      const Point target = recording.FetchTarget(i - 1);
      const Motion command = FetchCommand(fetch, target);
      EXPECT_NEAR(command.v, recording.table.value(i, "f_v"), kPrinted);
      EXPECT_NEAR(command.omega, recording.table.value(i, "f_w"), 2e-6) << "near a target the bearing magnifies errors";
      EXPECT_EQ(FetchArrived(fetch, target), Distance(PlanarState{target.x, target.y}, recording.FetchTarget(i)) > 0);
      const Arm& arm = pattern.Next();
      for (int joint = 0; joint < kArmJoints; ++joint) {
        EXPECT_NEAR(arm[joint], recording.table.value(i, absl::StrCat("arm_t", joint)), 1e-8);
      }
    }
  }
  EXPECT_GT(driven, 0);
}

TEST(Golden, nav_bullet_objective) {
  DATACOM_GOLDEN_FILES(files, "nav_bullet_");
  for (const std::string& file : files) {
    const Recording recording(file);
    for (size_t i = 0; i < recording.rows(); ++i) {
      SCOPED_TRACE(absl::StrCat(file, " step ", i));
      const PlanarState tiago = recording.Tiago(i), fetch = recording.Fetch(i);
      EXPECT_NEAR(Costs(tiago, fetch, recording.Links(i)).Largest(), recording.table.value(i, "cost"), kPrinted);
      const Motion before = i > 0 ? recording.Action(i - 1) : Motion();
      EXPECT_NEAR(CodeReward(tiago, kRecordedTarget, recording.Action(i), before, recording.Contact(i)),
                  recording.table.value(i, "reward"), 1e-6);
    }
  }
}

// The arm unfolds within 30 steps. In steps 7 to 12 the recorded hand scrapes over the floor, which the servo law does
// not model. The recorded base rolls by about 0.02 rad, which the kinematics do not model.
TEST(Golden, nav_bullet_arm) {
  DATACOM_GOLDEN_FILES(files, "nav_bullet_");
  for (const std::string& file : files) {
    const Recording recording(file);
    Difference servo_start, servo, links, stale_motion, fresh_motion, velocity_start, velocity;
    for (size_t i = 1; i < recording.rows() && !recording.Contact(i); ++i) {
      const Arm before = recording.ArmAngles(i - 1), after = recording.ArmAngles(i);
      Arm rate;
      for (int joint = 0; joint < kArmJoints; ++joint) {
        const double target =
            recording.fetch_idles ? kTuckedArm[joint] : recording.table.value(i, absl::StrCat("arm_t", joint));
        rate[joint] = (after[joint] - before[joint]) / kControlDt;
        const double law = before[joint] + kArmGain * (target - before[joint]);
        if (i < 7) servo_start.Add(after[joint] - law);
        if (i > 12) servo.Add(after[joint] - law);
      }
      const Point hand =
          FetchHandVelocity(recording.Fetch(i), after, rate, FetchHandAxes(recording.Fetch(i - 1), before));
      (i <= 30 ? velocity_start : velocity)
          .Add(std::hypot(hand.x - recording.table.value(i, "l19vx"), hand.y - recording.table.value(i, "l19vy")));
      if (i <= 30) continue;
      const LinkPoints points = FetchLinkPoints(recording.Fetch(i - 1), before), recorded = recording.Links(i);
      for (int link = 0; link < kLinkPoints; ++link) {
        links.Add(std::hypot(points[link].x - recorded[link].x, points[link].y - recorded[link].y));
      }
      // Their motion in one step does not depend on the tilt of the base, only on the age of the link points.
      const LinkPoints older = FetchLinkPoints(recording.Fetch(i - 2), recording.ArmAngles(i - 2));
      const LinkPoints fresh = FetchLinkPoints(recording.Fetch(i), after);
      const double moved = recorded[kHand].x - recording.Links(i - 1)[kHand].x;
      stale_motion.Add(moved - (points[kHand].x - older[kHand].x));
      fresh_motion.Add(moved - (fresh[kHand].x - points[kHand].x));
    }
    EXPECT_LT(servo_start.worst, 1.5e-4) << file;
    EXPECT_LT(servo.rms(), 1.5e-3) << file;
    EXPECT_LT(links.rms(), 0.02) << file;
    EXPECT_LT(velocity_start.rms(), 0.5) << file << ": of up to 4 m/s, from a rocking base";
    EXPECT_LT(velocity.rms(), 0.1) << file;
    if (!recording.fetch_idles) {
      EXPECT_LT(stale_motion.rms(), fresh_motion.rms()) << file << ": the recorded link points are one step old";
    }
    std::printf(
        "%s: servo %.1e (first steps %.1e), link points %.3f m, their step %.4f m (as if fresh %.4f), hand %.3f m/s\n",
        file.c_str(), servo.rms(), servo_start.worst, links.rms(), stale_motion.rms(), fresh_motion.rms(),
        velocity.rms());
  }
}

double Forward(const double* robot) {
  return robot[2] * robot[4] + robot[3] * robot[5];
}  // robot: seven entries of an observation
double Forward(const PlanarState& robot) { return std::cos(robot.yaw) * robot.vx + std::sin(robot.yaw) * robot.vy; }

std::map<std::string, double> StartOf(const Recording& recording) {
  const PlanarState tiago = recording.Tiago(0), fetch = recording.Fetch(0);
  const Point fetch_target = recording.FetchTarget(0);
  return {{"tiago_x", tiago.x},
          {"tiago_y", tiago.y},
          {"tiago_yaw", tiago.yaw},
          {"fetch_x", fetch.x},
          {"fetch_y", fetch.y},
          {"fetch_yaw", fetch.yaw},
          {"target_x", kRecordedTarget.x},
          {"target_y", kRecordedTarget.y},
          {"fetch_target_x", fetch_target.x},
          {"fetch_target_y", fetch_target.y},
          {"fetch_idle", recording.fetch_idles ? 1 : 0}};
}

// The simulation plays the recorded actions from the recorded start. The bounds for TIAGo++ are the task's. Fetch's
// recorded chassis scrapes over the floor; its bounds are those that its model was fitted to.
TEST(Golden, nav_bullet_motion) {
  DATACOM_GOLDEN_FILES(files, "nav_bullet_");
  for (const std::string& file : files) {
    const Recording recording(file);
    const auto task = MakeTask("navigation", v1::TaskOptions());
    ASSERT_THAT(task, IsOk());
    double obs[22];
    RandomStream stream(1);
    ASSERT_THAT((*task)->ResetTo(StartOf(recording), &stream, obs), IsOk());
    EXPECT_NEAR((*task)->Cost(), recording.table.value(0, "cost"), kPrinted);
    for (int axis = 0; axis < 2; ++axis) {
      EXPECT_NEAR(obs[18 + axis], recording.table.value(0, axis == 0 ? "l19x" : "l19y"), 1e-4) << file;
    }
    Difference v, omega, fetch_v, fetch_omega;
    bool same_target = true;  // until Fetch draws the next target
    for (size_t i = 1; i < recording.rows() && !recording.Contact(i); ++i) {
      const Motion action = recording.Action(i);
      ASSERT_TRUE((*task)->Step(&action.v, obs).valid);
      const PlanarState tiago = recording.Tiago(i), fetch = recording.Fetch(i);
      v.Add(Forward(obs + 2) - Forward(tiago));
      omega.Add(obs[8] - tiago.yaw_rate);
      same_target &= recording.FetchTarget(i).x == recording.FetchTarget(0).x;
      if (!same_target) continue;
      fetch_v.Add(Forward(obs + 9) - Forward(fetch));
      fetch_omega.Add(obs[15] - fetch.yaw_rate);
    }
    EXPECT_LE(v.rms(), 0.03) << file;
    EXPECT_LE(omega.rms(), 0.15) << file;
    EXPECT_LE(fetch_v.rms(), 0.08) << file;
    EXPECT_LE(fetch_omega.rms(), 0.25) << file;
    std::printf("%s: rms over %d steps: TIAGo++ %.4f m/s %.4f rad/s, Fetch %.4f m/s %.4f rad/s\n", file.c_str(),
                v.count, v.rms(), omega.rms(), fetch_v.rms(), fetch_omega.rms());
  }
}

}  // namespace
}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
