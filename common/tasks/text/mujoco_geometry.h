// Known rows on places of a MuJoCo model (proto KnownConstraint): a site in a half-space, sphere or box, and the
// distance of two geoms. Pure functions; Measure neither blocks nor allocates.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_GEOMETRY_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_GEOMETRY_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/text/mujoco_names.h"
#include "common/tasks/text/mujoco_terms.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

struct GeometryRow {
  enum class Kind { kPlane, kSphere, kDistance };
  std::string name;
  Kind kind = Kind::kPlane;
  Place place;                         // the site, or the second geom
  Place frame;                         // of plane and sphere, id -1: the world; or the first geom
  std::array<int, 2> bodies = {0, 0};  // of place and frame
  std::array<double, 3> vector = {};   // the plane's normal, of length 1, or the sphere's centre
  // kPlane: k = vector p - bound. kSphere: k = sign (|p - vector| - bound). kDistance: k = bound - distance.
  double bound = 0, sign = 1;
  double margin = 0;  // is added to k
};

// The rows of a constraint on a site or a distance. INVALID_ARGUMENT "field.part: why", listing what there is to choose
// from.
absl::StatusOr<std::vector<GeometryRow>> MakeGeometryRows(const mjModel& model, const v1::KnownConstraint& known,
                                                          const std::string& field, const StateJoints& joints);

// A row's value and gradient: k changes with gradient (velocity of points[0] with the body of `place` - velocity of
// points[1] with the body of `frame`).
struct Measured {
  double k = 0;
  mjtNum gradient[3] = {};   // in the world
  mjtNum points[2][3] = {};  // in the world
};
// Measures at the kinematics of `data`.
Measured Measure(const mjModel& model, mjData* data, const GeometryRow& row);

// The closest points of two geoms of a MuJoCo model, at the kinematics of its data. Spheres, capsules and planes have
// closed forms; other types need mj_geomDistance of MuJoCo 3 or later. Pure but for scratch memory of the data; neither
// blocks nor allocates.
struct Closest {
  double distance = 0;       // of the surfaces; below 0 when the geoms overlap
  mjtNum normal[3] = {};     // from the first to the second geom, of length 1; 0 where it is not defined
  mjtNum points[2][3] = {};  // of each geom, in the world: their velocities along the normal change the distance
};

// Why there is no distance of these geoms; empty if there is one.
std::string NoDistance(const mjModel& model, int geom1, int geom2);
Closest ClosestPoints(const mjModel& model, mjData* data, int geom1, int geom2);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_GEOMETRY_H_
// SPDX-License-Identifier: Apache-2.0
