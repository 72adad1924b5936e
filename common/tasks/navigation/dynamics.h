// Navigation without its simulator: the task's static facts and the nominal control-affine model
// (docs/safe_map.md 1; docs/navigation.md 8).
//
// q = robot x, y, heading; x = opponent x, y, heading, its hand x, y (uncontrollable); u = forward speed, turn rate.
// Kinematic: f = 0; the robot's acceleration limits are not modelled.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_DYNAMICS_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_DYNAMICS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/safety/control_affine.h"
#include "common/tasks/navigation/observation.h"
#include "common/tasks/navigation/planar.h"
#include "common/tasks/task.h"

namespace datacom::navigation {

// Reads only observations 2 to 21, which are the same in every frame. Immutable; thread-safe; Evaluate neither blocks
// nor allocates.
class Dynamics : public ControlAffine {
 public:
  explicit Dynamics(Frame frame) : observations_(ObservationSize(frame)) {}
  ControlAffineDims dims() const override { return {observations_, 2, 3, 5}; }
  void Evaluate(const double* obs, const ControlAffineOut& out) const override;

 private:
  const int observations_;
};

Frame FrameOf(const v1::TaskOptions& options);
absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options);

// Hand-written controllers for TIAGo++, as a baseline for learned policies. They use only the observation, in any
// frame. Pure functions; thread-safe; nothing blocks or allocates once they are made.

// Turns to the target and drives to it; ignores everything else.
Motion TurnAndDrive(const Sight& sight);

// The same, but gives way while Fetch's base or arm is near, and stops before walls.
Motion BackOff(const Sight& sight);

// back_off and turn_and_drive.
std::vector<ScriptedPolicy> ScriptedPolicies(Frame frame);

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_DYNAMICS_H_
// SPDX-License-Identifier: Apache-2.0
