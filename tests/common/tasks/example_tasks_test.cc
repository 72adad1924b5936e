// Tests the tasks of deploy/examples: the text CartPole equals the built-in one, f and G are differences of MuJoCo's
// forward dynamics. DATACOM_EXAMPLE names one more task file (velocity_test.py).
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/row_model.h"
#include "common/tasks/text/task_file.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/text_tasks.h"

namespace datacom {
namespace {

using ::datacom::testing::ForwardDynamics;
using ::datacom::testing::IsOk;
using Loaded = ::datacom::testing::LoadedTask;

constexpr char kCartPole[] = "deploy/examples/cartpole/task.textproto";

TEST(Golden, TheTextCartPoleEqualsTheBuiltInOneOverAllRecordings) {
  DATACOM_GOLDEN_FILES(files, "cartpole_");
  const auto built_in = MakeTask("cartpole", {});
  const auto model = MakeTaskModel("cartpole", {});
  ASSERT_THAT(built_in, IsOk());
  ASSERT_THAT(model, IsOk());
  Loaded text(kCartPole);
  for (const std::string& file : files) {
    const testing::GoldenTable table = testing::ReadGoldenCsv(file);
    const double x = table.value(0, "qpos_x"), theta = table.value(0, "qpos_theta");
    double obs[5], q[4], f[4], G[4];
    ASSERT_THAT((*built_in)->ResetTo({{"x", x}, {"theta", theta}}, nullptr, obs), IsOk());
    ASSERT_THAT(text.task->ResetTo({{"slider", x}, {"hinge_1", theta}}, nullptr, text.observation.data()), IsOk());
    for (size_t i = 0; i < table.rows.size(); ++i) {
      if (i > 0) {
        const double action = table.value(i, "action");
        const StepResult expected = (*built_in)->Step(&action, obs);
        const StepResult result = text.task->Step(&action, text.observation.data());
        ASSERT_TRUE(result.valid) << file << " step " << i;
        ASSERT_EQ(result.absorbing, expected.absorbing);
        ASSERT_NEAR(result.reward, expected.reward, 1e-12) << file << " step " << i;
        ASSERT_NEAR(result.cost, expected.cost, 1e-12) << file << " step " << i;
        ASSERT_EQ(text.task->Success(), (*built_in)->Success()) << file << " step " << i;
      }
      ASSERT_NEAR(text.task->Cost(), (*built_in)->Cost(), 1e-12);
      for (int j = 0; j < 5; ++j) ASSERT_NEAR(text.observation[j], obs[j], 1e-12) << file << " step " << i;
      model->dynamics->Evaluate(obs, {q, nullptr, nullptr, f, G});
      text.Evaluate();
      for (int j = 0; j < 4; ++j) {
        ASSERT_NEAR(text.q[j], q[j], 1e-12) << file << " step " << i;
        ASSERT_NEAR(text.f[j], f[j], 1e-12 * std::max(1.0, std::abs(f[j]))) << file << " step " << i;
        ASSERT_NEAR(text.G[j], G[j], 1e-12 * std::max(1.0, std::abs(G[j]))) << file << " step " << i;
      }
    }
  }
}

std::vector<std::string> ExampleTasks() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("deploy/examples")) {
    const std::filesystem::path file = entry.path() / "task.textproto";
    if (std::filesystem::exists(file)) files.push_back(file.string());
  }
  if (const char* more = std::getenv("DATACOM_EXAMPLE"); more != nullptr) files.emplace_back(more);
  return files;
}

// Compares f and G with differences of MuJoCo's motion at the state of `example`. All joints are part of q, one number
// each; all actuators are controlled within the model's own ranges.
void ExpectDifferencesOfMujocosMotion(Loaded* example) {
  const v1::ConstraintState& state = example->options.GetExtension(v1::text_task).definition().constraint_state();
  const Simulation& simulation = *example->task->simulation();
  const mjModel& model = simulation.model();
  const int n = model.nv, actions = model.nu;
  example->Evaluate();
  const auto acceleration = [&](int changed, double action) {
    std::vector<double> control(actions);
    for (int i = 0; i < actions; ++i) {
      const double low = model.actuator_ctrlrange[2 * i], high = model.actuator_ctrlrange[2 * i + 1];
      control[i] = (low + high) / 2 + (i == changed ? action * (high - low) / 2 : 0);
    }
    return ForwardDynamics(simulation, control, state.passive_forces());
  };
  constexpr double kStep = 1e-6;
  std::vector<double> later(simulation.data()->qpos, simulation.data()->qpos + n), before = later;
  mj_integratePos(&model, later.data(), simulation.data()->qvel, kStep);
  mj_integratePos(&model, before.data(), simulation.data()->qvel, -kStep);
  const std::vector<double> drift = acceleration(-1, 0);
  for (int i = 0; i < n; ++i) {
    const double velocity = (later[i] - before[i]) / (2 * kStep);
    EXPECT_NEAR(example->f[i], velocity, 1e-7 * std::max(1.0, std::abs(velocity))) << "position " << i;
    EXPECT_NEAR(example->f[n + i], drift[i], 1e-9 * std::max(1.0, std::abs(drift[i]))) << "velocity " << i;
  }
  for (int j = 0; j < actions; ++j) {
    const std::vector<double> up = acceleration(j, 0.5), down = acceleration(j, -0.5);
    for (int i = 0; i < n; ++i) {
      const double gain = state.actuator_gain() * (up[i] - down[i]);
      EXPECT_EQ(example->G[i * actions + j], 0) << "a force does not change positions at once";
      EXPECT_NEAR(example->G[(n + i) * actions + j], gain, 1e-9 * std::max(1.0, std::abs(gain) + std::abs(up[i])));
    }
  }
}

TEST(ExampleTasks, FAndGOfAllExamplesAreDifferencesOfMujocosForwardDynamicsAtRandomStates) {
  const std::vector<std::string> files = ExampleTasks();
  ASSERT_THAT(files, ::testing::Contains(kCartPole));
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    Loaded example(file);
    const mjModel& model = example.task->simulation()->model();
    ASSERT_EQ(example.layout.q, 2 * model.nv);
    ASSERT_EQ(model.nq, model.nv);
    ASSERT_EQ(example.layout.action, model.nu);
    ASSERT_EQ(example.options.GetExtension(v1::text_task).definition().control().range_size(), 0);
    RandomStream random(11);
    for (uint64_t episode = 0; episode < 10; ++episode) {
      RandomStream stream(episode);
      std::map<std::string, double> start;
      for (const std::string& joint : example.model.spec.init_keys) start[joint] = random.Uniform(-1, 1);
      ASSERT_THAT(example.task->ResetTo(start, &stream, example.observation.data()), IsOk());
      for (int step = 0; step < 5; ++step) {
        ExpectDifferencesOfMujocosMotion(&example);
        std::vector<double> action(model.nu);
        for (double& u : action) u = random.Uniform(-1, 1);
        ASSERT_TRUE(example.task->Step(action.data(), example.observation.data()).valid);
      }
    }
  }
}

TEST(ExampleTasks, TheSuggestedKnownConstraintsOfTheArmAreRowsOfItsModel) {
  const std::string path = "deploy/examples/arm_reach/task.textproto", mark = "# known {";
  auto task = text::ReadTaskFile(path);
  ASSERT_THAT(task, IsOk());
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, mark.size(), mark) != 0) continue;
    ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(line.substr(2), task->mutable_definition())) << line;
  }
  const absl::Status resolved = text::Resolve(&*task);
  ASSERT_THAT(resolved, IsOk());
  std::vector<std::string> names;
  for (const v1::KnownRow& row : task->resolved().known()) names.push_back(row.name());
  EXPECT_THAT(names, ::testing::ElementsAre("sphere_fore_sphere_forearm", "sphere_fore_sphere_fore_roll",
                                            "sphere_palm_sphere_palm"));
  EXPECT_EQ(text::RowLayout::Of(*task).known_width * sizeof(float) * 2, 88u);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
