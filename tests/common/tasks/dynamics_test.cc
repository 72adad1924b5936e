// Tests the control-affine models against the reference's tables, and the register of task models.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/tasks/cartpole/dynamics.h"
#include "common/tasks/navigation/dynamics.h"
#include "common/tasks/navigation/objective.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/double_integrator.h"
#include "tests/testing/golden.h"

namespace datacom {
namespace {

using ::testing::HasSubstr;

struct Model {
  explicit Model(const ControlAffine& dynamics)
      : dims(dynamics.dims()), q(dims.q), x(dims.x), x_dot(dims.x), f(dims.q), G(dims.q * dims.action) {}
  void Evaluate(const ControlAffine& dynamics, const std::vector<double>& obs) {
    dynamics.Evaluate(obs.data(), {q.data(), x.data(), x_dot.data(), f.data(), G.data()});
  }
  ControlAffineDims dims;
  std::vector<double> q, x, x_dot, f, G;
};

TEST(Golden, table_cartpole_dynamics) {
  DATACOM_GOLDEN_FILES(files, "table_cartpole_dynamics");
  const cartpole::Dynamics dynamics;
  for (const std::string& file : files) {
    const testing::GoldenTable table = testing::ReadGoldenCsv(file);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      const double theta = table.value(i, "theta");
      Model model(dynamics);
      model.Evaluate(dynamics, {table.value(i, "x"), std::sin(theta), std::cos(theta), table.value(i, "xdot"),
                                table.value(i, "thetadot")});
      EXPECT_NEAR(std::remainder(model.q[1] - theta, 2 * M_PI), 0, 1e-12);
      for (int j = 0; j < 4; ++j) {
        const double f = table.value(i, absl::StrCat("f", j)), G = table.value(i, absl::StrCat("G", j));
        EXPECT_NEAR(model.f[j], f, 1e-11 * (1 + std::abs(f))) << file << " row " << i << " f" << j;
        EXPECT_NEAR(model.G[j], G, 1e-11 * (1 + std::abs(G))) << file << " row " << i << " G" << j;
      }
    }
  }
}

TEST(Golden, table_navigation_dynamics) {
  DATACOM_GOLDEN_FILES(files, "table_navigation_dynamics");
  const navigation::Dynamics dynamics(navigation::Frame::kWorld);
  for (const std::string& file : files) {
    const testing::GoldenTable table = testing::ReadGoldenCsv(file);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      std::vector<double> obs;
      for (int j = 0; j < 22; ++j) obs.push_back(table.value(i, absl::StrCat("obs", j)));
      Model model(dynamics);
      model.Evaluate(dynamics, obs);
      for (int j = 0; j < 3; ++j) {
        EXPECT_NEAR(model.q[j], table.value(i, absl::StrCat("q", j)), 1e-12) << file << " row " << i;
        EXPECT_EQ(model.f[j], table.value(i, absl::StrCat("f", j))) << file << " row " << i;
        for (int a = 0; a < 2; ++a) {
          EXPECT_NEAR(model.G[j * 2 + a], table.value(i, absl::StrCat("G", j, a)), 1e-12) << file << " row " << i;
        }
      }
      for (int j = 0; j < 5; ++j) {
        EXPECT_NEAR(model.x[j], table.value(i, absl::StrCat("x", j)), 1e-12) << file << " row " << i;
        EXPECT_EQ(model.x_dot[j], table.value(i, absl::StrCat("xdot", j))) << file << " row " << i;
      }
    }
  }
}

// TIAGo++ at (1, 0) with 0.6 m/s towards Fetch, whose base is at the origin with 0.2 m/s towards it, and whose hand is
// at (0, 1) with 0.4 m/s towards it. The arm's point nearest to TIAGo++ is the base, so both rows see the same.
TEST(NavigationConstraints, ApproachRowsAddTheBrakingDistanceToTheDistance) {
  const navigation::Constraints constraints;
  const double q[3] = {1, 0, 0}, x[5] = {0, 0, 0, 0, 1};
  double observation[22] = {}, k[8], J_q[24], J_x[40];
  observation[6] = -0.6, observation[13] = 0.2, observation[20] = 0.4;
  constraints.Evaluate({q, x, observation}, {k, J_q, J_x});
  const double braking = 0.8 * 0.8 / (2 * 1.21);
  EXPECT_NEAR(k[4], -0.2, 1e-12) << "opponent_base ignores velocities";
  EXPECT_NEAR(k[6], -0.2 + braking, 1e-12);
  EXPECT_NEAR(k[7], -0.5 + braking, 1e-12);
  observation[6] = 0.9;  // away from Fetch, faster than it comes
  constraints.Evaluate({q, x, observation}, {k, nullptr, nullptr});
  EXPECT_NEAR(k[6], -0.2, 1e-12);
  // Beside the middle of an arm from (0, 0) to (0, 1), which moves at (0.2 + 0.4) / 2: the row moves half with each
  // end.
  const double beside[3] = {1, 0.5, 0};
  observation[6] = -0.6;
  constraints.Evaluate({beside, x, observation}, {k, J_q, J_x});
  EXPECT_NEAR(k[7], -0.5 + 0.9 * 0.9 / (2 * 1.21), 1e-12);
  EXPECT_NEAR(J_q[7 * 3], -1, 1e-12);
  EXPECT_NEAR(J_x[7 * 5], 0.5, 1e-12);
  EXPECT_NEAR(J_x[7 * 5 + 3], 0.5, 1e-12);
}

TEST(ControlAffine, SkipsThePartsThatAreNotRequested) {
  const std::vector<double> obs(22, 0.5);
  cartpole::Dynamics().Evaluate(obs.data(), {});
  navigation::Dynamics(navigation::Frame::kWorld).Evaluate(obs.data(), {});
  testing::DoubleIntegrator().Evaluate(obs.data(), {});
  double G[4];
  ControlAffineOut out;
  out.G = G;
  cartpole::Dynamics().Evaluate(obs.data(), out);
  EXPECT_GT(G[2], 0);
}

TEST(TaskRegister, AnUnknownTaskListsTheKnownOnes) {
  const absl::Status status = MakeTaskModel("cart_pole", v1::TaskOptions()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cart_pole"));
  for (const std::string& name : TaskNames()) EXPECT_THAT(std::string(status.message()), HasSubstr(name));
}

TEST(TaskRegister, TheHorizonIsTheTasksUnlessTheOptionsSetOne) {
  v1::TaskOptions options;
  EXPECT_EQ(MakeTaskModel("cartpole", options)->spec.horizon, 1000);
  options.set_horizon(7);
  EXPECT_EQ(MakeTaskModel("cartpole", options)->spec.horizon, 7);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
