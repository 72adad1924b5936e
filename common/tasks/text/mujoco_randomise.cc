#include "common/tasks/text/mujoco_randomise.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tasks/text/mujoco_names.h"

namespace datacom::text {

absl::StatusOr<ElementFactors> ElementFactors::Make(const mjModel& model, const v1::TaskDefinition& definition) {
  ElementFactors made;
  if (definition.randomise().empty()) return made;
  made.scale_.mass.assign(model.nbody, 1.0);
  made.scale_.damping.assign(model.nv, 1.0);
  made.scale_.friction.assign(model.ngeom, 1.0);
  made.scale_.force.assign(model.nu, 1.0);
  std::set<std::string> streams;
  for (int i = 0; i < definition.randomise_size(); ++i) {
    const v1::Randomise& given = definition.randomise(i);
    const std::string field = absl::StrCat("randomise[", i, "]");
    if (given.has_body() + given.has_joint() + given.has_geom() + given.has_actuator() != 1) {
      return Wrong(field, "needs exactly one of body, joint, geom and actuator");
    }
    const v1::Interval& range = given.factor();
    if (range.low() < 0) return Wrong(field + ".factor.low", "is below 0");
    if (range.high() < range.low()) {
      return Wrong(field + ".factor.high", absl::StrCat(range.high(), " is below low, ", range.low()));
    }
    const auto [type, part, glob, list] =
        given.has_body()    ? std::tuple(mjOBJ_BODY, "body", given.body(), &ElementScale::mass)
        : given.has_joint() ? std::tuple(mjOBJ_JOINT, "joint", given.joint(), &ElementScale::damping)
        : given.has_geom()  ? std::tuple(mjOBJ_GEOM, "geom", given.geom(), &ElementScale::friction)
                            : std::tuple(mjOBJ_ACTUATOR, "actuator", given.actuator(), &ElementScale::force);
    const std::string named = absl::StrCat(field, ".", part);
    if (type == mjOBJ_BODY && !(range.low() > 0)) return Wrong(field + ".factor.low", "of a mass must be above 0");
    ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, type, glob, named));
    for (const int id : found) {
      Factor factor{list, id, 1, range, absl::StrCat("task.randomise.", part, ".", PlainName(model, type, id))};
      if (!streams.insert(factor.stream).second) {
        return Wrong(named, absl::StrCat(part, " ", PlainName(model, type, id), " has a factor already"));
      }
      if (type == mjOBJ_JOINT) {
        const int kind = model.jnt_type[id];
        factor.first = model.jnt_dofadr[id];
        factor.count = kind == mjJNT_FREE ? 6 : kind == mjJNT_BALL ? 3 : 1;
      }
      const bool affine = type != mjOBJ_ACTUATOR ||
                          (model.actuator_gaintype[id] != mjGAIN_MUSCLE && model.actuator_gaintype[id] != mjGAIN_USER &&
                           model.actuator_biastype[id] != mjBIAS_USER);
      if (!affine)
        return Wrong(named, absl::StrCat("actuator ", PlainName(model, type, id), " is a muscle or user-defined"));
      made.factors_.push_back(std::move(factor));
    }
  }
  return made;
}

const ElementScale& ElementFactors::Draw(const RandomStream* episode) {
  for (const Factor& factor : factors_) {
    const double low = factor.range.low(), high = factor.range.high();
    const double drawn = episode == nullptr ? (low + high) / 2 : episode->Child(factor.stream).Uniform(low, high);
    std::fill_n((scale_.*factor.list).begin() + factor.first, factor.count, drawn);
  }
  return scale_;
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
