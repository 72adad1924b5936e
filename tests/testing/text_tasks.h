// Task files for tests: their folder, a loaded task with everything that a role has of it, and MuJoCo's own dynamics.
#ifndef DATACOM_TESTS_TESTING_TEXT_TASKS_H_
#define DATACOM_TESTS_TESTING_TEXT_TASKS_H_

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::testing {

// A folder with a model and a task file, removed at the end.
class TaskFolder {
 public:
  TaskFolder(const std::string& model, const std::string& task) {
    Write("model.xml", model);
    Write("task.textproto", task);
  }
  void Write(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = std::filesystem::path(folder_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  std::string task() const { return folder_.path() + "/task.textproto"; }
  std::string Error() const { return std::string(text::LoadTask(task()).status().message()); }

 private:
  const TemporaryFolder folder_;
};

// The task of a file, with everything that a role has of it.
struct LoadedTask {
  explicit LoadedTask(const std::string& path, const std::string& options_text = "") {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(options_text, &options));
    auto loaded = text::LoadTask(path);
    if (!loaded.ok()) throw std::runtime_error(std::string(loaded.status().message()));
    *options.MutableExtension(v1::text_task) = *std::move(loaded);
    layout = text::RowLayout::Of(options.GetExtension(v1::text_task));
    auto made = MakeTask(name(), options);
    auto facts = MakeTaskModel(name(), options);
    if (!made.ok() || !facts.ok()) throw std::runtime_error(made.status().ToString() + facts.status().ToString());
    task = *std::move(made);
    model = *std::move(facts);
    observation.resize(model.spec.obs_dim);
    q.resize(layout.q), x.resize(layout.x), x_dot.resize(layout.x), f.resize(layout.q);
    G.resize(layout.q * layout.action);
  }
  const std::string& name() const { return options.GetExtension(v1::text_task).definition().name(); }
  void Evaluate() {
    model.dynamics->Evaluate(observation.data(), {q.data(), x.data(), x_dot.data(), f.data(), G.data()});
  }

  v1::TaskOptions options;
  text::RowLayout layout;
  std::unique_ptr<Task> task;
  TaskModel model;
  std::vector<double> observation, q, x, x_dot, f, G;
};

// Later versions have two flags for it.
#if mjVERSION_HEADER >= 300
inline constexpr int kNoPassiveForces = mjDSBL_SPRING | mjDSBL_DAMPER;
#else
inline constexpr int kNoPassiveForces = mjDSBL_PASSIVE;
#endif

// MuJoCo's own accelerations of a robot without contacts, limits and clamped forces, at the state of `simulation`.
inline std::vector<double> ForwardDynamics(const Simulation& simulation, const std::vector<double>& control,
                                           bool passive_forces = true) {
  mjModel* const model = mj_copyModel(nullptr, &simulation.model());
  mjData* const data = mj_makeData(model);
  model->opt.disableflags |= mjDSBL_CONTACT | mjDSBL_LIMIT | (passive_forces ? 0 : kNoPassiveForces);
  for (int i = 0; i < model->nu; ++i) model->actuator_forcelimited[i] = 0;
#if mjVERSION_HEADER >= 300
  for (int i = 0; i < model->njnt; ++i) model->jnt_actfrclimited[i] = 0;
#endif
#if mjVERSION_HEADER >= 331
  for (int i = 0; i < model->ntendon; ++i) model->tendon_actfrclimited[i] = 0;
#endif
  mju_copy(data->qpos, simulation.data()->qpos, model->nq);
  mju_copy(data->qvel, simulation.data()->qvel, model->nv);
  mju_copy(data->ctrl, control.data(), model->nu);
  mj_forward(model, data);
  std::vector<double> acceleration(data->qacc, data->qacc + model->nv);
  mj_deleteData(data);
  mj_deleteModel(model);
  return acceleration;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_TEXT_TASKS_H_
// SPDX-License-Identifier: Apache-2.0
