// The closest points of two geoms of a MuJoCo model, at the kinematics of its data. Spheres, capsules and planes have
// closed forms; other types need mj_geomDistance of MuJoCo 3 or later. Pure but for scratch memory of the data; neither
// blocks nor allocates.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_CLOSEST_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_CLOSEST_H_

#include <string>

#include "mujoco/mujoco.h"

namespace datacom::text {

struct Closest {
  double distance = 0;       // of the surfaces; below 0 when the geoms overlap
  mjtNum normal[3] = {};     // from the first to the second geom, of length 1; 0 where it is not defined
  mjtNum points[2][3] = {};  // of each geom, in the world: their velocities along the normal change the distance
};

// Why there is no distance of these geoms; empty if there is one.
std::string NoDistance(const mjModel& model, int geom1, int geom2);
Closest ClosestPoints(const mjModel& model, mjData* data, int geom1, int geom2);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_CLOSEST_H_
// SPDX-License-Identifier: Apache-2.0
