// Tests air hockey against recorded trajectories and tables of the reference.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/tasks/air_hockey/arm.h"
#include "common/tasks/air_hockey/task.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom::air_hockey {
namespace {

using ::datacom::testing::GoldenTable;
using ::datacom::testing::IsOk;

// Tolerances before the first contact of the puck, for observations, rewards and costs, and for torques.
struct Tolerance {
  double state, torque;
};
constexpr Tolerance kFree = {1e-9, 1e-8};
// From the first force of a joint limit on. The reference is MuJoCo 2.2.2; its iterative solver of constraint forces
// was changed later. MuJoCo 4.0.0 differs by 1.1e-8 then (torque: 7.4e-6 of 110 N m), and by 4e-13 in free motion.
constexpr Tolerance kLimited = mjVERSION_HEADER >= 300 ? Tolerance{1e-7, 1e-4} : kFree;

std::map<std::string, double> StartOf(const GoldenTable& table) {
  return {{"puck_x", table.value(0, "puck_x")},
          {"puck_y", table.value(0, "puck_y")},
          {"puck_yaw", table.value(0, "puck_yaw")}};
}

std::unique_ptr<Task> Make(const v1::TaskOptions& options) {
  auto task = MakeTask(options);
  if (!task.ok()) throw std::runtime_error(std::string(task.status().message()));
  return *std::move(task);
}

// The columns name0, name1, name2.
std::array<double, 3> Three(const GoldenTable& table, size_t row, const std::string& name) {
  return {table.value(row, name + "0"), table.value(row, name + "1"), table.value(row, name + "2")};
}

const char* Name(Ending ending) {
  constexpr const char* kNames[] = {"NONE", "GOAL", "UP", "RIGHT", "LEFT", "BOTTOM"};
  return kNames[static_cast<int>(ending)];
}

// Positions 1e-4 m, velocities 1e-3 m/s; the puck's yaw and spin 1e-2, because a hit changes them easily.
double ToleranceAfterContact(int entry) {
  constexpr double kTolerances[16] = {1e-4, 1e-4, 1e-2, 1e-3, 1e-3, 1e-2, 1e-4, 1e-4,
                                      1e-4, 1e-3, 1e-3, 1e-3, 1e-4, 1e-4, 1e-3, 1e-3};
  return kTolerances[entry];
}

// Replays a file to its first absorbing row; returns the largest differences before contact and after.
std::pair<double, double> Replay(const GoldenTable& table, AirHockey* task, const std::string& file) {
  double obs[16], before = 0, after = 0;
  RandomStream stream(1);
  EXPECT_THAT(task->ResetTo(StartOf(table), &stream, obs), IsOk());
  EXPECT_NEAR(task->Cost(), table.value(0, "cost"), kFree.state) << file;
  const bool mismatch = table.has("eps0");
  bool touched = false;
  Tolerance exact = kFree;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const std::string where = absl::StrCat(file, " step ", i);
    touched |= table.value(i, "hit_mallet") != 0 || table.value(i, "hit_rim") != 0;
    if (i > 0) {
      const auto action = Three(table, i, "a");
      const auto noise = mismatch ? Three(table, i, "eps") : std::array<double, 3>{};
      const StepResult result =
          mismatch ? task->StepWithNoise(action.data(), noise.data(), obs) : task->Step(action.data(), obs);
      EXPECT_TRUE(result.valid) << where;
      if (task->simulation()->data()->nefc > 0) exact = kLimited;
      const double reward_tolerance = !touched ? exact.state : result.absorbing ? 1e-2 : 1e-3;
      EXPECT_NEAR(result.reward, table.value(i, "reward"), reward_tolerance) << where;
      EXPECT_NEAR(result.cost, table.value(i, "cost"), touched ? 1e-3 : exact.state) << where;
      EXPECT_EQ(result.absorbing, table.value(i, "absorbing") != 0) << where;
      EXPECT_EQ(Name(task->ending()), table.text(i, "absorb_type")) << where;
      const auto torque = Three(table, i, "tau");
      for (int j = 0; j < 3 && !touched; ++j) {
        EXPECT_NEAR(task->simulation()->data()->ctrl[j], torque[j], exact.torque) << where << " torque " << j;
      }
    }
    for (int j = 0; j < 16; ++j) {
      const double difference = std::abs(obs[j] - table.value(i, absl::StrCat("obs", j)));
      EXPECT_LE(difference, touched ? ToleranceAfterContact(j) : exact.state) << where << " obs" << j;
      (touched ? after : before) = testing::LargerOrNan(difference, touched ? after : before);
    }
    if (table.value(i, "absorbing") != 0 || ::testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(task->Success(), task->ending() == Ending::kGoal);
  return {before, after};
}

TEST(Golden, hockey) {
  DATACOM_GOLDEN_FILES(files, "hockey_");
  int found = 0;
  for (const std::string& file : files) {
    if (absl::StrContains(file, "_substeps")) continue;
    ++found;
    v1::TaskOptions options;
    if (absl::StrContains(file, "mismatch_sigma0p3")) options.set_mismatch_sigma(0.3);
    const auto task = Make(options);
    auto* const hockey = static_cast<AirHockey*>(task.get());
    const GoldenTable table = testing::ReadGoldenCsv(file);
    const auto [before, after] = Replay(table, hockey, file);
    std::printf("%s: %s, largest difference %.1e before contact, %.1e after\n", file.c_str(), Name(hockey->ending()),
                before, after);
    if (HasFailure()) return;
  }
  EXPECT_GT(found, 0);
}

TEST(Golden, hockey_substeps) {
  DATACOM_GOLDEN_FILES(files, "hockey_");
  int found = 0;
  for (const std::string& file : files) {
    if (!absl::StrContains(file, "_substeps")) continue;
    ++found;
    const GoldenTable table = testing::ReadGoldenCsv(file);
    const auto task = Make({});
    auto* const hockey = static_cast<AirHockey*>(task.get());
    RandomStream stream(1);
    double obs[16];
    ASSERT_THAT(
        task->ResetTo(StartOf(testing::ReadGoldenCsv(absl::StrReplaceAll(file, {{"_substeps", ""}}))), &stream, obs),
        IsOk());
    const mjData& data = *task->simulation()->data();
    bool touched = false;
    for (size_t i = 0; i < table.rows.size(); ++i) {
      const std::string where = absl::StrCat(file, " row ", i);
      touched |= table.value(i, "ncon") != 0;
      const auto desired = Three(table, i, "acc_des"), limited = Three(table, i, "acc_clip");
      double acceleration[3];
      LimitAcceleration(desired.data(), hockey->filtered_velocity(), acceleration);
      ASSERT_TRUE(hockey->Substep(desired.data()));
      const auto torque = Three(table, i, "tau"), q = Three(table, i, "q"), dq = Three(table, i, "dq"),
                 filtered = Three(table, i, "dqf");
      for (int j = 0; j < 3; ++j) {
        ASSERT_NEAR(acceleration[j], limited[j], touched ? 1e-3 : 1e-9) << where;
        ASSERT_NEAR(data.ctrl[j], torque[j], touched ? 1e-3 : 1e-9) << where;
        ASSERT_NEAR(data.qpos[j], q[j], touched ? 1e-5 : 1e-11) << where;
        ASSERT_NEAR(data.qvel[j], dq[j], touched ? 1e-3 : 1e-10) << where;
        ASSERT_NEAR(hockey->filtered_velocity()[j], filtered[j], touched ? 1e-3 : 1e-10) << where;
      }
      ASSERT_NEAR(data.qpos[3], table.value(i, "puck_x"), touched ? 1e-4 : 1e-12) << where;
      ASSERT_NEAR(data.qvel[3], table.value(i, "puck_vx"), touched ? 1e-3 : 1e-12) << where;
      ASSERT_EQ(data.ncon, static_cast<int>(table.value(i, "ncon"))) << where;
    }
  }
  EXPECT_GT(found, 0);
}

TEST(Golden, table_planar_fk_cost) {
  DATACOM_GOLDEN_FILES(files, "table_planar_fk_cost");
  for (const std::string& file : files) {
    const GoldenTable table = testing::ReadGoldenCsv(file);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      const auto q = Three(table, i, "q"), velocity = Three(table, i, "dq");
      double mallet[2];
      ForwardKinematics(q.data(), mallet, nullptr);
      EXPECT_NEAR(mallet[0], table.value(i, "ee_x"), 1e-13) << file << " row " << i;
      EXPECT_NEAR(mallet[1], table.value(i, "ee_y"), 1e-13) << file << " row " << i;
      EXPECT_NEAR(Cost(q.data(), velocity.data(), mallet), table.value(i, "cost"), 1e-13) << file << " row " << i;
    }
  }
}

TEST(Golden, table_planar_constraints) {
  DATACOM_GOLDEN_FILES(files, "table_planar_constraints");
  const Constraints constraints;
  for (const std::string& file : files) {
    const GoldenTable table = testing::ReadGoldenCsv(file);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      double state[6], k[17], J[17 * 6];
      for (int j = 0; j < 6; ++j) state[j] = table.value(i, absl::StrCat(j < 3 ? "q" : "dq", j % 3));
      constraints.Evaluate({state}, {k, J, nullptr});
      for (int r = 0; r < 17; ++r) {
        EXPECT_NEAR(k[r], table.value(i, absl::StrCat("c", r)), 1e-13) << file << " row " << i << " constraint " << r;
        for (int j = 0; j < 6; ++j) {
          EXPECT_NEAR(J[r * 6 + j], table.value(i, absl::StrCat("J_", r, "_", j)), 1e-13)
              << file << " row " << i << " constraint " << r << " state " << j;
        }
      }
    }
  }
}

TEST(Golden, table_planar_inverse_dynamics) {
  DATACOM_GOLDEN_FILES(files, "table_planar_inverse_dynamics");
  auto dynamics = InverseDynamics::Make();
  ASSERT_THAT(dynamics, IsOk());
  for (const std::string& file : files) {
    const GoldenTable table = testing::ReadGoldenCsv(file);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      const auto q = Three(table, i, "q"), dq = Three(table, i, "dq"), ddq = Three(table, i, "ddq"),
                 want = Three(table, i, "tau");
      double torque[3];
      ASSERT_THAT(GuardMujoco([&] { dynamics->Torque(q.data(), dq.data(), ddq.data(), torque); }), IsOk());
      for (int j = 0; j < 3; ++j) EXPECT_NEAR(torque[j], want[j], 1e-10) << file << " row " << i << " joint " << j;
    }
  }
}

// The puck against a rim, to 1e-2 m/s at the puck's edge. The reference's end rims are meshes with slightly inexact
// collisions: a straight hit gives the reference's puck a little spin, and none here.
TEST(Golden, table_hockey_bounce) {
  DATACOM_GOLDEN_FILES(files, "table_hockey_bounce");
  const auto task = Make({});
  const mjModel& model = task->simulation()->model();
  mjData* const data = task->simulation()->data();
  const std::pair<const char*, double> velocities[3] = {{"vx", 1e-2}, {"vy", 1e-2}, {"w", 1e-2 / kPuckRadius}};
  for (const std::string& file : files) {
    const GoldenTable table = testing::ReadGoldenCsv(file);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      mj_resetData(&model, data);
      std::copy_n(kStartPosition, kJoints, data->qpos);
      data->qpos[3] = table.value(i, "x0");
      data->qpos[4] = table.value(i, "y0");
      data->qvel[3] = table.value(i, "vx0");
      data->qvel[4] = table.value(i, "vy0");
      double before[3] = {};
      int contacts = 0;
      for (int step = 0; step < 3000 && (contacts == 0 || data->ncon > 0); ++step) {
        if (contacts == 0) std::copy_n(data->qvel + 3, 3, before);
        ASSERT_TRUE(StepMujoco(model, 1, data));
        contacts += data->ncon > 0 ? 1 : 0;
      }
      EXPECT_EQ(contacts, static_cast<int>(table.value(i, "contact_steps"))) << file << " row " << i;
      for (int j = 0; j < 3; ++j) {
        const auto& [name, tolerance] = velocities[j];
        EXPECT_NEAR(before[j], table.value(i, absl::StrCat(name, "_before")), 1e-8) << file << " row " << i << name;
        EXPECT_NEAR(data->qvel[3 + j], table.value(i, absl::StrCat(name, "_after")), tolerance)
            << file << " row " << i << " " << name;
      }
    }
  }
}

}  // namespace
}  // namespace datacom::air_hockey
// SPDX-License-Identifier: Apache-2.0
