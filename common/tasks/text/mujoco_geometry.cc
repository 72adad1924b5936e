#include "common/tasks/text/mujoco_geometry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::text {
namespace {

using Kind = GeometryRow::Kind;

std::array<double, 3> Numbers(const v1::Vector& vector) { return {vector.x(), vector.y(), vector.z()}; }

// Degrees of freedom of q that move the body, in increasing order.
std::vector<int> DofsOf(const mjModel& model, int body, const StateJoints& joints) {
  std::vector<int> dofs;
  for (; body > 0; body = model.body_parentid[body]) {
    for (int dof = model.body_dofadr[body]; dof < model.body_dofadr[body] + model.body_dofnum[body]; ++dof) {
      if (std::find(joints.dofs.begin(), joints.dofs.end(), dof) != joints.dofs.end()) dofs.push_back(dof);
    }
  }
  std::sort(dofs.begin(), dofs.end());
  return dofs;
}

bool MovedByQ(const mjModel& model, const GeometryRow& row, const StateJoints& joints) {
  return DofsOf(model, row.bodies[0], joints) != DofsOf(model, row.bodies[1], joints);
}

absl::Status AddPlane(const v1::HalfSpace& half_space, const std::string& field, const GeometryRow& site,
                      std::vector<GeometryRow>* rows) {
  GeometryRow row = site;
  row.vector = Numbers(half_space.normal());
  const double length = mju_norm3(row.vector.data());
  if (!(length > 0)) return Wrong(field + ".half_space.normal", "is 0");
  mju_scl3(row.vector.data(), row.vector.data(), 1 / length);
  row.bound = half_space.offset();
  rows->push_back(std::move(row));
  return absl::OkStatus();
}

absl::Status AddBox(const v1::Box& box, double margin, const std::string& field, const GeometryRow& site,
                    std::vector<GeometryRow>* rows) {
  const std::array<double, 3> centre = Numbers(box.center()), size = Numbers(box.size());
  const bool set[3] = {box.size().has_x(), box.size().has_y(), box.size().has_z()};
  if (!set[0] && !set[1] && !set[2]) return Wrong(field + ".box.size", "needs at least one of x, y and z");
  for (int axis = 0; axis < 3; ++axis) {
    if (!set[axis]) continue;
    const std::string letter(1, "xyz"[axis]);
    if (!(size[axis] > 0)) return Wrong(absl::StrCat(field, ".box.size.", letter), "must be above 0");
    if (!(size[axis] > margin)) return Wrong(field + ".margin", "leaves no room in the box");
    for (const double sign : {1.0, -1.0}) {
      GeometryRow row = site;
      row.name = absl::StrCat(site.name, "_", letter, sign > 0 ? "_upper" : "_lower");
      row.vector[axis] = sign;
      row.bound = sign * centre[axis] + size[axis];
      rows->push_back(std::move(row));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GeometryRow>> OfSite(const mjModel& model, const v1::KnownConstraint& known,
                                                const std::string& field, const StateJoints& joints) {
  if (known.has_half_space() + known.has_sphere() + known.has_box() != 1) {
    return Wrong(field, "a site needs exactly one of half_space, sphere and box");
  }
  ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, mjOBJ_SITE, known.site(), field + ".site"));
  GeometryRow row;
  if (known.has_relative_to()) {
    ASSIGN_OR_RETURN(row.frame, FindPlace(model, known.relative_to(), field + ".relative_to"));
    row.bodies[1] = row.frame.body(model);
  }
  std::vector<GeometryRow> rows;
  for (const int id : found) {
    const std::string site = PlainName(model, mjOBJ_SITE, id);
    row.name = absl::StrCat(known.name(), "_", site);
    row.place = Place{mjOBJ_SITE, id};
    row.bodies[0] = model.site_bodyid[id];
    if (!MovedByQ(model, row, joints)) {
      return Wrong(field + ".site", absl::StrCat("site ", site, " is not moved by joints of q",
                                                 known.has_relative_to() ? " relative to that frame" : ""));
    }
    if (known.has_half_space()) RETURN_IF_ERROR(AddPlane(known.half_space(), field, row, &rows));
    if (known.has_box()) RETURN_IF_ERROR(AddBox(known.box(), known.margin(), field, row, &rows));
    if (!known.has_sphere()) continue;
    GeometryRow sphere = row;
    sphere.kind = Kind::kSphere;
    sphere.vector = Numbers(known.sphere().center());
    sphere.bound = known.sphere().radius();
    sphere.sign = known.sphere().side() == "outside" ? -1 : 1;
    if (sphere.sign > 0 && !(sphere.bound > known.margin())) {
      return Wrong(field + ".margin", "leaves no room in the sphere");
    }
    rows.push_back(std::move(sphere));
  }
  return rows;
}

absl::StatusOr<std::vector<GeometryRow>> OfDistance(const mjModel& model, const v1::KnownConstraint& known,
                                                    const std::string& field, const StateJoints& joints) {
  const v1::GeomDistance& given = known.distance();
  ASSIGN_OR_RETURN(const std::vector<int> first, Match(model, mjOBJ_GEOM, given.geom1(), field + ".distance.geom1"));
  ASSIGN_OR_RETURN(const std::vector<int> second, Match(model, mjOBJ_GEOM, given.geom2(), field + ".distance.geom2"));
  std::vector<GeometryRow> rows;
  std::vector<std::pair<int, int>> pairs;
  for (const int one : first) {
    for (const int two : second) {
      const std::pair<int, int> pair = std::minmax(one, two);
      GeometryRow row;
      row.kind = Kind::kDistance;
      row.place = Place{mjOBJ_GEOM, two}, row.frame = Place{mjOBJ_GEOM, one};
      row.bodies = {model.geom_bodyid[two], model.geom_bodyid[one]};
      row.bound = given.minimum();
      if (std::find(pairs.begin(), pairs.end(), pair) != pairs.end() || !MovedByQ(model, row, joints)) continue;
      pairs.push_back(pair);
      if (const std::string why = NoDistance(model, one, two); !why.empty()) return Wrong(field + ".distance", why);
      row.name =
          absl::StrCat(known.name(), "_", PlainName(model, mjOBJ_GEOM, one), "_", PlainName(model, mjOBJ_GEOM, two));
      rows.push_back(std::move(row));
    }
  }
  if (!rows.empty()) return rows;
  return Wrong(field + ".distance", absl::StrCat("joints of q change the distance of no \"", given.geom1(),
                                                 "\" from a \"", given.geom2(), "\""));
}

}  // namespace

absl::StatusOr<std::vector<GeometryRow>> MakeGeometryRows(const mjModel& model, const v1::KnownConstraint& known,
                                                          const std::string& field, const StateJoints& joints) {
  return known.has_distance() ? OfDistance(model, known, field, joints) : OfSite(model, known, field, joints);
}

Measured Measure(const mjModel& model, mjData* data, const GeometryRow& row) {
  Measured measured;
  if (row.kind == Kind::kDistance) {
    const Closest found = ClosestPoints(model, data, row.frame.id, row.place.id);
    measured.k = row.bound - found.distance + row.margin;
    mju_scl3(measured.gradient, found.normal, -1);
    mju_copy3(measured.points[0], found.points[1]);
    mju_copy3(measured.points[1], found.points[0]);
    return measured;
  }
  const mjtNum* const world = row.place.position(*data);
  mjtNum p[3], gradient[3], from[3];
  mju_copy3(p, world);
  if (row.frame.id >= 0) {
    mju_sub3(from, world, row.frame.position(*data));
    mju_mulMatTVec(p, row.frame.axes(*data), from, 3, 3);
  }
  if (row.kind == Kind::kPlane) {
    measured.k = mju_dot3(row.vector.data(), p) - row.bound + row.margin;
    mju_copy3(gradient, row.vector.data());
  } else {
    mju_sub3(from, p, row.vector.data());
    const double length = mju_norm3(from);
    measured.k = row.sign * (length - row.bound) + row.margin;
    mju_scl3(gradient, from, length > 0 ? row.sign / length : 0);
  }
  mju_copy3(measured.gradient, gradient);
  if (row.frame.id >= 0) mju_mulMatVec(measured.gradient, row.frame.axes(*data), gradient, 3, 3);
  mju_copy3(measured.points[0], world);
  mju_copy3(measured.points[1], world);
  return measured;
}

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
