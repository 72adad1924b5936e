#include "deploy/tools/play/check_task_speed.h"

#include <time.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/base/status.h"
#include "common/tasks/mujoco.h"
#include "mujoco/mujoco.h"

namespace datacom::tools {
namespace {

constexpr int kBlockSteps = 100, kMostBlocks = 100;

double ProcessorSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class Measurement {
 public:
  Measurement(const text::CompiledTask& compiled, const TaskModel& model, MujocoData bare, Task* task)
      : compiled_(compiled), model_(model), bare_(std::move(bare)), task_(task) {
    const ControlAffineDims dims = model.dynamics->dims();
    observation_.resize(dims.obs), f_.resize(dims.q), G_.resize(dims.q * dims.action);
    clipped_.resize(dims.action);
    steps_ = std::min(kBlockSteps, model.spec.horizon);
  }

  // Adds the time of one block of steps to `speed`.
  absl::Status Block(RandomStream stream, TaskSpeed* speed) {
    std::vector<double> actions(steps_ * clipped_.size());
    for (double& action : actions) action = stream.Uniform(-1, 1);
    task_->Reset(&stream, observation_.data());
    const mjData& start = *task_->simulation()->data();
    const mjModel& physics = *compiled_.model;
    return GuardMujoco([&] {
      mj_resetData(&physics, bare_.get());
      mju_copy(bare_->qpos, start.qpos, static_cast<int>(physics.nq));
      mju_copy(bare_->qvel, start.qvel, static_cast<int>(physics.nv));
      mju_copy(bare_->act, start.act, static_cast<int>(physics.na));
      mju_copy(bare_->mocap_pos, start.mocap_pos, 3 * static_cast<int>(physics.nmocap));
      mju_copy(bare_->mocap_quat, start.mocap_quat, 4 * static_cast<int>(physics.nmocap));
      mj_forward(&physics, bare_.get());
      const double began = ProcessorSeconds();
      for (size_t at = 0; at < actions.size(); at += clipped_.size()) TaskStep(&actions[at]);
      const double middle = ProcessorSeconds();
      for (size_t at = 0; at < actions.size(); at += clipped_.size()) BareStep(&actions[at]);
      speed->task += middle - began;
      speed->bare += ProcessorSeconds() - middle;
    });
  }
  int steps() const { return steps_; }

 private:
  void TaskStep(const double* action) {
    task_->Step(action, observation_.data());
    model_.dynamics->Evaluate(observation_.data(), {nullptr, nullptr, nullptr, f_.data(), G_.data()});
  }
  void BareStep(const double* action) {
    compiled_.actuation->Apply(action, clipped_.data(), bare_.get());
    for (int i = 0; i < compiled_.actuation->substeps(); ++i) mj_step(compiled_.model.get(), bare_.get());
  }

  const text::CompiledTask& compiled_;
  const TaskModel& model_;
  MujocoData bare_;
  Task* const task_;
  int steps_ = 0;
  std::vector<double> observation_, f_, G_, clipped_;
};

}  // namespace

absl::StatusOr<TaskSpeed> MeasureTaskSpeed(const text::CompiledTask& compiled, const TaskModel& model, uint64_t seed,
                                           double seconds, Task* task) {
  ASSIGN_OR_RETURN(MujocoData bare, MakeMujocoData(*compiled.model));
  Measurement measurement(compiled, model, std::move(bare), task);
  TaskSpeed warm_up, speed;
  RETURN_IF_ERROR(measurement.Block(RandomStream(StreamKey("check_task.warm_up", {seed})), &warm_up));
  int steps = 0;
  for (uint64_t block = 0; block < kMostBlocks && speed.task + speed.bare < seconds; ++block) {
    RETURN_IF_ERROR(measurement.Block(RandomStream(StreamKey("check_task.speed", {seed, block})), &speed));
    steps += measurement.steps();
  }
  return TaskSpeed{speed.task / steps, speed.bare / steps};
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
