// Environments of one task for a caller that chooses the actions: automatic resets, time limits, seeds.
//
// Not thread-safe; owns the tasks and the threads. Step blocks until all environments have stepped and allocates
// nothing.
#ifndef DATACOM_DEPLOY_PYTHON_NATIVE_ENVIRONMENTS_H_
#define DATACOM_DEPLOY_PYTHON_NATIVE_ENVIRONMENTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/team.h"
#include "common/tasks/task.h"
#include "deploy/python/native/datacom_env.h"
#include "deploy/tools/render/renderer.h"

namespace datacom::python {

class Environments {
 public:
  struct Settings {
    std::string task;     // name or path of a task file
    std::string options;  // TaskOptions as text
    int count = 1, threads = 1;
    int autoreset = DATACOM_ENV_NEXT_STEP;
  };
  // INVALID_ARGUMENT or NOT_FOUND, naming what is wrong; INTERNAL when the simulator cannot start.
  static absl::StatusOr<std::unique_ptr<Environments>> Make(const Settings& settings);

  const TaskModel& model() const { return model_; }
  int count() const { return static_cast<int>(slots_.size()); }

  // INVALID_ARGUMENT for an unknown start value, naming those that exist.
  absl::Status Reset(const datacom_env_start& start, const datacom_env_result& out);
  // FAILED_PRECONDITION, naming the environment, if its episode has ended and resets are disabled; INVALID_ARGUMENT if
  // an action is not finite. Then nothing has stepped.
  absl::Status Step(const float* action, const datacom_env_result& out);

  struct Look {
    std::string camera;
    int width = 0, height = 0;
    bool operator==(const Look&) const = default;
  };
  // rgb: [height, width, 3]. INVALID_ARGUMENT for an environment, a camera or a size that there is not; INTERNAL before
  // the first reset.
  absl::Status Draw(int index, const Look& look, uint8_t* rgb);

 private:
  struct Slot {
    std::unique_ptr<Task> task;
    std::vector<double> observation, action;
    uint64_t seed = 0, episode = 0;  // `episode` is the number of the next one
    int step = 0;
    bool finished = true;  // before the first reset, too
    double cost = 0;       // of the last valid state
  };
  Environments(TaskModel model, std::vector<Slot> slots, const Settings& settings);
  absl::Status Begin(const std::map<std::string, double>& init, Slot* slot);
  void WriteStart(int index, const datacom_env_result& out);
  void WriteNamedCosts(int index, const datacom_env_result& out) const;
  void StepOne(int index, const float* action, const datacom_env_result& out);

  const TaskModel model_;
  const int autoreset_;
  std::vector<Slot> slots_;
  Look look_;                                  // of renderer_
  std::unique_ptr<tools::Renderer> renderer_;  // null before the first picture
  std::vector<uint8_t> pixels_;                // its output
  std::unique_ptr<Team> team_;
};

}  // namespace datacom::python

#endif  // DATACOM_DEPLOY_PYTHON_NATIVE_ENVIRONMENTS_H_
// SPDX-License-Identifier: Apache-2.0
