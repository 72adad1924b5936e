#include "common/tasks/text/mujoco_motion.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tasks/text/mujoco_names.h"

namespace datacom::text {
namespace {

constexpr int kMostTargets = 16;  // of one control step: waypoints may coincide

}  // namespace

absl::StatusOr<Motions> Motions::Make(const mjModel& model, const v1::TaskDefinition& definition) {
  Motions made;
  for (int i = 0; i < definition.motion_size(); ++i) {
    const v1::Motion& given = definition.motion(i);
    const std::string field = absl::StrCat("motion[", i, "]");
    Motion motion;
    ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, mjOBJ_BODY, given.body(), field + ".body"));
    motion.mocap = model.body_mocapid[found.front()];
    if (found.size() > 1 || motion.mocap < 0) {
      return Wrong(field + ".body", absl::StrCat("\"", given.body(), "\" is not one body with mocap=\"true\""));
    }
    motion.speed = given.speed();
    motion.stream_name = absl::StrCat("task.motion.", PlainName(model, mjOBJ_BODY, found.front()));
    for (const v1::Waypoint& point : given.waypoint()) motion.waypoints.push_back({point.x(), point.y(), point.z()});
    if (given.has_x()) motion.box[0] = given.x();
    if (given.has_y()) motion.box[1] = given.y();
    if (given.has_z()) motion.box[2] = given.z();
    const char* const axes[3] = {".x", ".y", ".z"};
    bool boxed = false;
    for (int axis = 0; axis < 3; ++axis) {
      if (!motion.box[axis].has_value()) continue;
      boxed = true;
      if (motion.box[axis]->high() < motion.box[axis]->low())
        return Wrong(field + axes[axis] + ".high", "is below low");
    }
    if (boxed != motion.waypoints.empty()) return Wrong(field, "needs either waypoints or a box (x, y, z)");
    made.motions_.push_back(std::move(motion));
  }
  return made;
}

void Motions::Begin(const RandomStream* episode, const mjData& data) {
  for (Motion& motion : motions_) {
    motion.next = 0;
    motion.stream.reset();
    if (episode != nullptr) motion.stream = episode->Child(motion.stream_name);
    std::copy_n(data.mocap_pos + 3 * motion.mocap, 3, motion.target.begin());
    Choose(&motion);
  }
}

void Motions::Choose(Motion* motion) {
  if (!motion->waypoints.empty()) {
    motion->target = motion->waypoints[motion->next];
    motion->next = (motion->next + 1) % motion->waypoints.size();
    return;
  }
  for (int axis = 0; axis < 3; ++axis) {
    if (!motion->box[axis].has_value()) continue;
    const double low = motion->box[axis]->low(), high = motion->box[axis]->high();
    motion->target[axis] = motion->stream.has_value() ? motion->stream->Uniform(low, high) : (low + high) / 2;
  }
}

void Motions::Advance(double dt, mjData* data) {
  for (Motion& motion : motions_) {
    mjtNum* const position = data->mocap_pos + 3 * motion.mocap;
    double left = motion.speed * dt;
    for (int targets = 0; targets < kMostTargets; ++targets) {
      const double distance = mju_dist3(position, motion.target.data());
      if (distance > left) {
        for (int axis = 0; axis < 3; ++axis) position[axis] += left / distance * (motion.target[axis] - position[axis]);
        break;
      }
      mju_copy3(position, motion.target.data());
      left -= distance;
      Choose(&motion);
    }
  }
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
