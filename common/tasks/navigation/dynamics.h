// Nominal control-affine model of the navigation robot (algorithms.md 16; environments.md 3.10).
//
// q = robot x, y, heading; x = opponent x, y, heading, its hand x, y (nobody's to control); u = forward speed, turn
// rate. Kinematic: f = 0, and the robot's acceleration limits are not modelled.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_DYNAMICS_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_DYNAMICS_H_

#include "common/safety/control_affine.h"

namespace datacom::navigation {

// Immutable; thread-safe; Evaluate blocks and allocates nothing.
class Dynamics : public ControlAffine {
 public:
  ControlAffineDims dims() const override { return {22, 2, 3, 5}; }
  void Evaluate(const double* obs, const ControlAffineOut& out) const override;
};

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_DYNAMICS_H_
