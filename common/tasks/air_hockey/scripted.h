// A hand-written striker, as a baseline for learned policies. It uses only the observation. Pure functions;
// thread-safe; nothing blocks or allocates once they are made.
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_SCRIPTED_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_SCRIPTED_H_

#include <vector>

#include "common/tasks/task.h"

namespace datacom::air_hockey {

// Places the mallet behind the puck, on the line from the goal through the puck, and drives it along that line; brakes
// once the puck moves. observation: [kObservation]; action: [kJoints], in [-1, 1].
void Strike(const double* observation, double* action);

// strike.
std::vector<ScriptedPolicy> ScriptedPolicies();

}  // namespace datacom::air_hockey

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_SCRIPTED_H_
// SPDX-License-Identifier: Apache-2.0
