#include "common/tasks/text/mujoco_randomise.h"

#include <algorithm>
#include <cmath>
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

namespace {

constexpr double kRounding = 1e-6;  // of a control step: an interval may be a multiple of it

absl::Status CheckInterval(const v1::Interval& interval, const std::string& field) {
  if (interval.low() <= interval.high()) return absl::OkStatus();
  return Wrong(field + ".high", absl::StrCat(interval.high(), " is below low, ", interval.low()));
}

}  // namespace

absl::StatusOr<Pushes> Pushes::Make(const mjModel& model, const v1::TaskDefinition& definition, double control_dt) {
  Pushes made;
  made.control_dt_ = control_dt;
  for (int i = 0; i < definition.push_size(); ++i) {
    const v1::Push& given = definition.push(i);
    const std::string field = absl::StrCat("push[", i, "]");
    if (given.has_body() == given.has_joint()) return Wrong(field, "needs exactly one of body and joint");
    const mjtObj type = given.has_body() ? mjOBJ_BODY : mjOBJ_JOINT;
    const std::string named = field + (given.has_body() ? ".body" : ".joint");
    ASSIGN_OR_RETURN(const std::vector<int> found,
                     Match(model, type, given.has_body() ? given.body() : given.joint(), named));
    if (found.size() > 1) return Wrong(named, "matches several; a push has one");
    const int joint = !given.has_body() ? found[0] : model.body_jntnum[found[0]] > 0 ? model.body_jntadr[found[0]] : -1;
    const int kind = joint < 0 ? -1 : model.jnt_type[joint];
    if (given.has_body() && kind != mjJNT_FREE) return Wrong(named, "has no free joint; push one of its joints");
    if (given.has_joint() && kind != mjJNT_SLIDE && kind != mjJNT_HINGE) {
      return Wrong(named, "is neither a slide nor a hinge; push its body");
    }
    Push push;
    push.every = given.every();
    RETURN_IF_ERROR(CheckInterval(push.every, field + ".every"));
    if (!(push.every.low() > 0)) return Wrong(field + ".every.low", "must be above 0");
    push.stream_name = absl::StrCat("task.push.", i, ".", PlainName(model, type, found[0]));
    const int dof = model.jnt_dofadr[joint];
    const auto add = [&](bool has, const v1::Interval& velocity, int at, const char* part,
                         bool allowed) -> absl::Status {
      if (!has) return absl::OkStatus();
      if (!allowed) return Wrong(field + part, given.has_body() ? "is for a joint" : "is for a body");
      push.kicks.push_back({at, velocity});
      return CheckInterval(velocity, field + part);
    };
    RETURN_IF_ERROR(add(given.has_x(), given.x(), dof, ".x", given.has_body()));
    RETURN_IF_ERROR(add(given.has_y(), given.y(), dof + 1, ".y", given.has_body()));
    RETURN_IF_ERROR(add(given.has_z(), given.z(), dof + 2, ".z", given.has_body()));
    RETURN_IF_ERROR(add(given.has_velocity(), given.velocity(), dof, ".velocity", given.has_joint()));
    if (push.kicks.empty()) return Wrong(field, "needs a velocity: x, y or z of a body, velocity of a joint");
    made.pushes_.push_back(std::move(push));
  }
  return made;
}

double Pushes::Draw(const v1::Interval& interval, Push* push) {
  if (!push->stream.has_value()) return (interval.low() + interval.high()) / 2;
  return push->stream->Uniform(interval.low(), interval.high());
}

uint64_t Pushes::Pause(Push* push) const {
  return static_cast<uint64_t>(std::max(1.0, std::ceil(Draw(push->every, push) / control_dt_ - kRounding)));
}

void Pushes::Begin(const RandomStream* episode) {
  step_ = 0;
  for (Push& push : pushes_) {
    push.stream.reset();
    if (episode != nullptr) push.stream = episode->Child(push.stream_name);
    push.due = Pause(&push);
  }
}

bool Pushes::Apply(mjData* data) {
  bool pushed = false;
  for (Push& push : pushes_) {
    if (step_ != push.due) continue;
    for (const Kick& kick : push.kicks) data->qvel[kick.dof] += Draw(kick.velocity, &push);
    push.due = step_ + Pause(&push);
    pushed = true;
  }
  ++step_;
  return pushed;
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
