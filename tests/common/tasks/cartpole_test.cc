// Tests CartPole against recorded trajectories, and the error handling of MuJoCo.
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

std::unique_ptr<Task> MakeCartPole() {
  auto task = MakeTask("cartpole", v1::TaskOptions());
  if (!task.ok()) throw std::runtime_error(std::string(task.status().message()));
  return *std::move(task);
}

constexpr double kFree = 1e-9;
// From the first force of the joint limit on. The reference is MuJoCo 2.2.2; its iterative solver of constraint forces
// was changed later. MuJoCo 4.0.0 differs by 8.5e-8 then, and by 2e-13 in free motion.
constexpr double kLimited = mjVERSION_HEADER >= 300 ? 1e-6 : 1e-9;

// Takes memory from the data's stack, in units of mjtNum. MuJoCo 3 renamed the function and counts in bytes.
void TakeStack(mjData* data, size_t numbers) {
#if mjVERSION_HEADER >= 300
  mj_stackAllocNum(data, numbers);
#else
  mj_stackAlloc(data, static_cast<int>(numbers));
#endif
}

size_t FreeStack(const mjData& data) {
#if mjVERSION_HEADER >= 300
  return (data.narena - data.parena - data.pstack) / sizeof(mjtNum);
#else
  return data.nstack - data.pstack;
#endif
}

TEST(Golden, cartpole) {
  DATACOM_GOLDEN_FILES(files, "cartpole_");
  for (const std::string& file : files) {
    const testing::GoldenTable table = testing::ReadGoldenCsv(file);
    const auto task = MakeCartPole();
    double obs[5];
    ASSERT_THAT(task->ResetTo({{"x", table.value(0, "qpos_x")}, {"theta", table.value(0, "qpos_theta")}}, nullptr, obs),
                IsOk());
    double worst = 0, tolerance = kFree;
    for (size_t i = 0; i < table.rows.size(); ++i) {
      StepResult result;
      if (i > 0) {
        const double action = table.value(i, "action");
        result = task->Step(&action, obs);
        ASSERT_TRUE(result.valid);
        if (task->simulation()->data()->nefc > 0) tolerance = kLimited;
        ASSERT_EQ(result.absorbing, table.value(i, "absorbing") != 0);
        ASSERT_NEAR(result.reward, table.value(i, "reward_wrapper"), tolerance) << file << " step " << i;
        ASSERT_NEAR(result.cost, table.value(i, "cost"), tolerance) << file << " step " << i;
      }
      const char* names[5] = {"obs0_x", "obs1_sin", "obs2_cos", "obs3_xdot", "obs4_thetadot"};
      for (int j = 0; j < 5; ++j) {
        worst = testing::LargerOrNan(std::abs(obs[j] - table.value(i, names[j])), worst);
        ASSERT_NEAR(obs[j], table.value(i, names[j]), tolerance) << file << " step " << i << " " << names[j];
      }
    }
    std::printf("%s: %zu steps, largest difference %.2e\n", file.c_str(), table.rows.size() - 1, worst);
  }
}

TEST(CartPole, SucceedsWhileTheTipIsNearTheGoal) {
  const auto task = MakeCartPole();
  double obs[5];
  ASSERT_THAT(task->ResetTo({{"x", 3.9}}, nullptr, obs), IsOk());
  EXPECT_TRUE(task->Success());
  ASSERT_THAT(task->ResetTo({{"x", 3.7}}, nullptr, obs), IsOk());
  EXPECT_FALSE(task->Success());
  const double stay = 0;
  ASSERT_THAT(task->ResetTo({{"x", 4.0}}, nullptr, obs), IsOk());
  EXPECT_NEAR(task->Step(&stay, obs).reward, 1.0, 1e-6);
  EXPECT_TRUE(task->Success());
  task->Reset(nullptr, obs);
  EXPECT_FALSE(task->Success());
}

TEST(CartPole, TheCostWrapsTheAngleAfterAFullTurn) {
  const auto task = MakeCartPole();
  double obs[5];
  const double stay = 0;
  ASSERT_THAT(task->ResetTo({{"theta", 2 * M_PI + 0.3}}, nullptr, obs), IsOk());
  EXPECT_NEAR(task->Step(&stay, obs).cost, 0.3 / 1.5707 - 1, 1e-2);
  ASSERT_THAT(task->ResetTo({{"theta", M_PI}}, nullptr, obs), IsOk());
  EXPECT_NEAR(task->Step(&stay, obs).cost, M_PI / 1.5707 - 1, 1e-3);
}

TEST(CartPole, ClipsTheActionToTheMotorsRange) {
  const auto one = MakeCartPole(), two = MakeCartPole();
  double a[5], b[5];
  one->Reset(nullptr, a);
  two->Reset(nullptr, b);
  const double inside = 1, outside = 1e300;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(one->Step(&inside, a).valid);
    EXPECT_TRUE(two->Step(&outside, b).valid);
  }
  for (int j = 0; j < 5; ++j) EXPECT_EQ(a[j], b[j]);
}

TEST(CartPole, ANaNActionMakesStepsInvalidUntilReset) {
  const auto task = MakeCartPole();
  double obs[5];
  task->Reset(nullptr, obs);
  const double nan = std::numeric_limits<double>::quiet_NaN(), push = 0.5;
  EXPECT_FALSE(task->Step(&nan, obs).valid);
  EXPECT_FALSE(task->Step(&push, obs).valid) << "an episode stays invalid until it ends";
  task->Reset(nullptr, obs);
  EXPECT_TRUE(task->Step(&push, obs).valid);
}

TEST(CartPole, AnImpossibleStartIsInvalidAtTheFirstStep) {
  const auto task = MakeCartPole();
  double obs[5];
  const double stay = 0;
  ASSERT_THAT(task->ResetTo({{"x", 1e200}}, nullptr, obs), IsOk());
  EXPECT_FALSE(task->Step(&stay, obs).valid);
  EXPECT_FALSE(task->ResetTo({{"x", std::numeric_limits<double>::infinity()}}, nullptr, obs).ok());
}

TEST(Mujoco, AnInvalidModelGivesAStatusWithTheReason) {
  const absl::Status status = CompileMujocoModel("broken", "<mujoco><worldbody><geom/></body></mujoco>").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("broken"));
}

TEST(Mujoco, AnErrorInsideTheLibraryGivesAStatusAndKeepsTheData) {
  const std::string xml =
      "<mujoco><size nstack='40000'/><worldbody><body><joint type='slide'/><geom size='.1' "
      "mass='1'/></body></worldbody></mujoco>";
  const absl::StatusOr<MujocoModel> model = CompileMujocoModel("stack", xml);
  ASSERT_THAT(model, IsOk());
  auto data = MakeMujocoData(**model);
  ASSERT_THAT(data, IsOk());
  for (int round = 0; round < 3; ++round) {
    const absl::Status status = GuardMujoco([&] { TakeStack(data->get(), 1 << 28); });
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("tack overflow"));
    mj_resetData(model->get(), data->get());
    EXPECT_TRUE(StepMujoco(**model, 2, data->get()));
    // The next step overflows this stack: the error occurs inside mj_step, and the step is invalid.
    const absl::Status filled = GuardMujoco([&] { TakeStack(data->get(), FreeStack(**data) - 1); });
    ASSERT_THAT(filled, IsOk());
    EXPECT_FALSE(StepMujoco(**model, 1, data->get()));
    mj_resetData(model->get(), data->get());
  }
}

TEST(Mujoco, AnUnguardedErrorEndsTheProcessWithItsMessage) {
  ASSERT_THAT(GuardMujoco([] {}), IsOk());  // installs the handler
  EXPECT_DEATH(mju_error("unguarded"), "MuJoCo: unguarded");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
