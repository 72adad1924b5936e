// Control of a task that is a text file (proto Control): turns the action into controls and advances MuJoCo by one
// control step. Immutable once made; thread-safe for distinct data; Apply and Advance neither block nor allocate.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_ACTUATION_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_ACTUATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

// Returns whether the actuator's force is an affine function of its control, as f and G need it: no activation, no
// muscle, no delay.
bool IsAffine(const mjModel& model, int actuator);

class Actuation {
 public:
  using Mode = RowLayout::Mode;
  // INVALID_ARGUMENT "control.field: why".
  static absl::StatusOr<Actuation> Make(const mjModel& model, const v1::Control& control);

  struct Channel {
    std::string name;
    int actuator = 0;
    int dof = -1;  // of velocity and acceleration control
    double gear = 1;
    double centre = 0, half = 0;  // control = centre + half * action
  };
  const std::vector<Channel>& channels() const { return channels_; }  // one for each number of the action
  Mode mode() const { return mode_; }
  double period() const { return period_; }   // s
  int substeps() const { return substeps_; }  // time steps of the model in a period
  // Returns whether positions, velocities and what MuJoCo derives from them (mass matrix, bias) match the state after
  // Advance.
  bool keeps_fresh() const { return refresh_ != Refresh::kNothing; }

  // Stores the control of `action` [channels], clipped to [-1, 1]; writes the clipped action. A NaN stays a NaN: MuJoCo
  // rejects it.
  void Apply(const double* action, double* clipped, mjData* data) const;
  // One control step under the control that Apply stored for this clipped action. Call Begin first after a change of
  // the state.
  void Advance(const mjModel& model, const double* clipped, mjData* data) const;
  // Computes everything that follows from a new state.
  void Begin(const mjModel& model, mjData* data) const;

 private:
  enum class Refresh { kNothing, kKinematics, kAll };
  absl::Status AddChannels(const mjModel& model, const v1::Control& control, const std::string& glob,
                           const std::string& field);
  absl::Status SetDof(const mjModel& model, Channel* channel) const;
  absl::Status SetPeriod(const mjModel& model, const v1::Control& control);
  void Update(const mjModel& model, mjData* data) const;
  void Accelerate(const mjModel& model, const double* clipped, mjData* data) const;

  Mode mode_ = Mode::kTorque;
  Refresh refresh_ = Refresh::kKinematics;
  bool split_ = true;  // the integrator can be called in two halves
  int substeps_ = 1;
  double period_ = 0;
  std::vector<Channel> channels_;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_ACTUATION_H_
// SPDX-License-Identifier: Apache-2.0
