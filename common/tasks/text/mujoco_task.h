// The simulated side of a task that is a text file (proto/datacom/v1/task.proto): one environment.
//
// Not thread-safe; owns its simulation state; environments of the same task share the compiled model. Steps neither
// block nor allocate.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_TASK_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_TASK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "common/tasks/text/expression.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/mujoco_differences.h"
#include "common/tasks/text/mujoco_known_columns.h"
#include "common/tasks/text/mujoco_terms.h"
#include "common/tasks/text/observed.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::text {

// INVALID_ARGUMENT as CompiledTask::Make. The task must be resolved.
absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options);

class TextTask : public Task {
 public:
  static absl::StatusOr<std::unique_ptr<TextTask>> Make(std::shared_ptr<const CompiledTask> compiled, TaskSpec spec,
                                                        const RowLayout& layout);

  const TaskSpec& spec() const override { return spec_; }
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  StepResult Step(const double* action, double* observation) override;
  double Cost() const override { return cost_; }
  bool Success() const override { return objective_->success.has_value() && objective_->success->Value() != 0; }
  void ScalePhysics(const PhysicsScale& scale) override;
  const Simulation* simulation() const override { return &simulation_; }

 private:
  TextTask(std::shared_ptr<const CompiledTask> compiled, TaskSpec spec, const RowLayout& layout, Simulation simulation,
           Terms terms, Motions motions, Pushes pushes, ElementFactors factors, KnownColumns known);
  // Fills signals, costs and the observation; false when MuJoCo fails. dt: since the last call, 0 at the start.
  bool Observe(double dt, double* observation);
  void KeepNumbers();            // signals and action, for the next step as its previous values
  bool WriteModel(double* out);  // f and G; false when MuJoCo fails

  const std::shared_ptr<const CompiledTask> compiled_;
  const TaskSpec spec_;
  const RowLayout layout_;
  Simulation simulation_;
  Terms terms_;
  std::optional<Differences> differences_;
  Motions motions_;
  Pushes pushes_;
  ElementFactors factors_;
  PhysicsScale scale_;
  KnownColumns known_;
  std::vector<std::string> command_streams_;
  std::vector<double> values_;  // of CompiledTask::names; the objective reads them
  std::optional<Objective> objective_;
  std::optional<Observed> observed_;
  std::vector<double> cost_values_, x_before_;
  double cost_ = 0;
  uint32_t step_ = 0;  // of the episode
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_TASK_H_
// SPDX-License-Identifier: Apache-2.0
