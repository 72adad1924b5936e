#include "common/tasks/text/mujoco_closest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace datacom::text {
namespace {

constexpr double kParallel = 1e-12;  // squared sine of the angle between two segments

bool IsRound(int type) { return type == mjGEOM_SPHERE || type == mjGEOM_CAPSULE; }
bool IsSimple(int one, int two) {
  return (IsRound(one) && IsRound(two)) || (one == mjGEOM_PLANE && IsRound(two)) ||
         (IsRound(one) && two == mjGEOM_PLANE);
}
bool HasMujocosDistance(int type) {
  return IsRound(type) || type == mjGEOM_PLANE || type == mjGEOM_ELLIPSOID || type == mjGEOM_CYLINDER ||
         type == mjGEOM_BOX || type == mjGEOM_MESH;
}

// A capsule; a sphere is one of length 0.
struct Segment {
  Segment(const mjModel& model, const mjData& data, int geom)
      : centre(data.geom_xpos + 3 * geom), radius(model.geom_size[3 * geom]) {
    const bool capsule = model.geom_type[geom] == mjGEOM_CAPSULE;
    for (int i = 0; i < 3; ++i) {
      half[i] = capsule ? model.geom_size[3 * geom + 1] * data.geom_xmat[9 * geom + 3 * i + 2] : 0;
    }
  }
  const mjtNum* centre;
  mjtNum half[3];
  double radius;
};

// Minimises |c1 + s a - c2 - t b| over s and t in [-1, 1]. Once one of both is best for the unconstrained other, each
// is clamped in turn.
Closest OfSegments(const Segment& one, const Segment& two) {
  mjtNum between[3], way[3];
  mju_sub3(between, one.centre, two.centre);
  const double aa = mju_dot3(one.half, one.half), ab = mju_dot3(one.half, two.half), bb = mju_dot3(two.half, two.half);
  const double aw = mju_dot3(one.half, between), bw = mju_dot3(two.half, between), det = aa * bb - ab * ab;
  double s = det > kParallel * aa * bb ? std::clamp((ab * bw - bb * aw) / det, -1.0, 1.0) : 0;
  const double t = bb > 0 ? std::clamp((ab * s + bw) / bb, -1.0, 1.0) : 0;
  s = aa > 0 ? std::clamp((ab * t - aw) / aa, -1.0, 1.0) : 0;
  Closest found;
  mju_addScl3(found.points[0], one.centre, one.half, s);
  mju_addScl3(found.points[1], two.centre, two.half, t);
  mju_sub3(way, found.points[1], found.points[0]);
  const double length = mju_norm3(way);
  found.distance = length - one.radius - two.radius;
  if (length > 0) mju_scl3(found.normal, way, 1 / length);
  return found;
}

Closest OfPlane(const mjData& data, int plane, const Segment& round) {
  Closest found;
  const mjtNum* const axes = data.geom_xmat + 9 * plane;
  for (int i = 0; i < 3; ++i) found.normal[i] = axes[3 * i + 2];
  mju_addScl3(found.points[1], round.centre, round.half, mju_dot3(round.half, found.normal) > 0 ? -1 : 1);
  mjtNum from[3];
  mju_sub3(from, found.points[1], data.geom_xpos + 3 * plane);
  const double height = mju_dot3(from, found.normal);
  mju_addScl3(found.points[0], found.points[1], found.normal, -height);
  found.distance = height - round.radius;
  return found;
}

void Turn(Closest* found) {
  std::swap(found->points[0], found->points[1]);
  mju_scl3(found->normal, found->normal, -1);
}

#if mjVERSION_HEADER >= 300
constexpr double kFarthest = 1e6;  // m

Closest OfMujoco(const mjModel& model, mjData* data, int geom1, int geom2) {
  Closest found;
  mjtNum line[6] = {}, way[3];
  found.distance = mj_geomDistance(&model, data, geom1, geom2, kFarthest, line);
  mju_copy3(found.points[0], line);
  mju_copy3(found.points[1], line + 3);
  mju_sub3(way, line + 3, line);
  // If geoms overlap, the line goes from the first geom's deepest point back to the second's.
  const double length = mju_norm3(way);
  if (length > 0) mju_scl3(found.normal, way, (found.distance < 0 ? -1 : 1) / length);
  return found;
}
#endif

}  // namespace

std::string NoDistance(const mjModel& model, int geom1, int geom2) {
  const int one = model.geom_type[geom1], two = model.geom_type[geom2];
  if (IsSimple(one, two)) return "";
  const std::string both = absl::StrCat("there is no distance of the geoms ", mj_id2name(&model, mjOBJ_GEOM, geom1),
                                        " and ", mj_id2name(&model, mjOBJ_GEOM, geom2));
  const bool possible =
      HasMujocosDistance(one) && HasMujocosDistance(two) && (one != mjGEOM_PLANE || two != mjGEOM_PLANE);
  if (!possible) {
    return absl::StrCat(both,
                        ": the types are spheres, capsules, ellipsoids, cylinders, boxes, meshes, and a plane with "
                        "one of these");
  }
#if mjVERSION_HEADER >= 300
  return "";
#else
  return absl::StrCat(both, ": this MuJoCo, ", mj_versionString(),
                      ", has distances of spheres, capsules, and a plane with one of these; other types need MuJoCo 3");
#endif
}

Closest ClosestPoints(const mjModel& model, mjData* data, int geom1, int geom2) {
  const int one = model.geom_type[geom1], two = model.geom_type[geom2];
#if mjVERSION_HEADER >= 300
  if (!IsSimple(one, two)) return OfMujoco(model, data, geom1, geom2);
#endif
  if (one == mjGEOM_PLANE) return OfPlane(*data, geom1, Segment(model, *data, geom2));
  if (two != mjGEOM_PLANE) return OfSegments(Segment(model, *data, geom1), Segment(model, *data, geom2));
  Closest found = OfPlane(*data, geom2, Segment(model, *data, geom1));
  Turn(&found);
  return found;
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
