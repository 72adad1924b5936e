// Hand-written controllers for TIAGo++, as a baseline for learned policies. They use only the observation, in any
// frame. Pure functions; thread-safe; nothing blocks or allocates once they are made.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_SCRIPTED_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_SCRIPTED_H_

#include <vector>

#include "common/tasks/navigation/observation.h"
#include "common/tasks/navigation/planar.h"
#include "common/tasks/task.h"

namespace datacom::navigation {

// Turns to the target and drives to it; ignores everything else.
Motion TurnAndDrive(const Sight& sight);

// The same, but gives way while Fetch's base or arm is near, and stops before walls.
Motion BackOff(const Sight& sight);

// back_off and turn_and_drive.
std::vector<ScriptedPolicy> ScriptedPolicies(Frame frame);

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_SCRIPTED_H_
// SPDX-License-Identifier: Apache-2.0
