// Control of a task that is a text file (proto Control): turns the action into controls and advances MuJoCo by one
// control step. Immutable once made; thread-safe for distinct data; Apply and Advance neither block nor allocate.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_ACTUATION_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_ACTUATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

// Whether the actuator's force is gain * control + bias, or gain * activation + bias, where gain and bias are affine
// functions of length and velocity: no muscle, no DC motor, no plugin.
bool HasLinearGain(const mjModel& model, int actuator);
// Whether the control is the length that the actuator strives for. That of an integrator is a velocity.
bool IsPositionServo(const mjModel& model, int actuator);
// Returns whether the actuator's force is an affine function of its control, as instantaneous f and G need it: no
// activation, no muscle, no delay.
bool IsAffine(const mjModel& model, int actuator);

class Actuation {
 public:
  enum class Mode { kTorque, kVelocity, kPosition, kAcceleration };
  // INVALID_ARGUMENT "control.field: why".
  static absl::StatusOr<Actuation> Make(const mjModel& model, const v1::Control& control);

  struct Channel {
    std::string name;
    int actuator = 0;
    Mode mode = Mode::kTorque;
    int joint = -1, dof = -1;  // unless the mode is torque
    double gear = 1;           // of velocity and position control
    bool servo() const { return mode == Mode::kVelocity || mode == Mode::kPosition; }
    double centre = 0, half = 0;  // control = centre + half * action
  };
  const std::vector<Channel>& channels() const { return channels_; }  // one for each number of the action
  // Whether q has only positions: all actuators are servos.
  bool first_order() const { return first_order_; }
  // Whether f and G have closed forms: all actuators command velocities, positions or accelerations.
  bool closed_form() const { return closed_form_; }
  // Whether f and G come from copies of the simulation (proto Control.dynamics).
  bool finite_difference() const { return finite_difference_; }
  // Why f and G do not hold; empty: they do.
  const std::string& without_map() const { return without_map_; }
  double period() const { return period_; }   // s
  int substeps() const { return substeps_; }  // time steps of the model in a period
  // Returns whether positions, velocities and what MuJoCo derives from them (mass matrix, bias) match the state after
  // Advance.
  bool keeps_fresh() const { return refresh_ != Refresh::kNothing; }
  // Whether the forces of contacts and constraints after Advance belong to the same state as the contacts.
  bool keeps_forces() const { return refresh_ != Refresh::kKinematics; }

  // Stores the control of `action` [channels], clipped to [-1, 1]; writes the clipped action. A NaN stays a NaN: MuJoCo
  // rejects it.
  void Apply(const double* action, double* clipped, mjData* data) const;
  // One control step under the control that Apply stored for this clipped action. Call Begin first after a change of
  // the state.
  void Advance(const mjModel& model, const double* clipped, mjData* data) const;
  // Computes everything that follows from a new state.
  void Begin(const mjModel& model, mjData* data) const;
  // `steps` time steps under the control that Apply stored, from a state for which nothing has been computed yet. Only
  // positions, velocities and activations belong to the state that it reaches.
  void Simulate(const mjModel& model, const double* clipped, int steps, mjData* data) const;

 private:
  enum class Refresh { kNothing, kKinematics, kAll };
  absl::Status AddChannels(const mjModel& model, const v1::Control& control, const std::string& glob,
                           const std::string& field);
  absl::Status SetMode(const mjModel& model, const v1::Control& control, Channel* channel) const;
  absl::Status CheckServo(const mjModel& model, const Channel& channel) const;
  absl::Status SetForms(const mjModel& model);
  absl::Status SetPeriod(const mjModel& model, const v1::Control& control);
  void Update(const mjModel& model, mjData* data) const;
  void Accelerate(const mjModel& model, const double* clipped, mjData* data) const;

  bool accelerates_ = false, first_order_ = false, closed_form_ = false, finite_difference_ = false;
  std::string without_map_;
  Refresh refresh_ = Refresh::kKinematics;
  bool split_ = true;  // the integrator can be called in two halves
  int substeps_ = 1;
  double period_ = 0;
  std::vector<Channel> channels_;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_ACTUATION_H_
// SPDX-License-Identifier: Apache-2.0
