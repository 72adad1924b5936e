#include "common/tasks/text/mujoco_start.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::text {
namespace {

constexpr int kTries = 100;          // proto BodyStart.keep
constexpr uint64_t kEpisodes = 100;  // of CheckKeeps

// Degrees that were meant as radians would put the joint beyond its limits.
absl::Status CheckLimits(const mjModel& model, int joint, double low, double high, const std::string& field) {
  const mjtNum* const range = model.jnt_range + 2 * joint;
  const double slack = 1e-6 * (range[1] - range[0]);  // a limit is written with fewer digits
  if (!model.jnt_limited[joint] || (low >= range[0] - slack && high <= range[1] + slack)) return absl::OkStatus();
  const bool hinge = model.jnt_type[joint] == mjJNT_HINGE;
  return Wrong(
      field, absl::StrCat(low, " to ", high, " goes beyond the limits of joint ", PlainName(model, mjOBJ_JOINT, joint),
                          ", which are ", range[0], " to ", range[1], hinge ? " rad" : " m"));
}

}  // namespace

double StartRules::Value::Draw(RandomStream* stream) const {
  return stream == nullptr ? (low + high) / 2 : stream->Uniform(low, high);
}

absl::StatusOr<StartRules::Value> StartRules::ValueOf(const v1::Interval& interval, const std::string& field) {
  if (interval.high() < interval.low()) {
    return Wrong(field + ".high", absl::StrCat(interval.high(), " is below low, ", interval.low()));
  }
  return Value{interval.low(), interval.high(), true};
}

absl::StatusOr<StartRules> StartRules::Make(const mjModel& model, const v1::Start& start) {
  StartRules made;
  if (start.has_keyframe()) {
    ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, mjOBJ_KEY, start.keyframe(), "start.keyframe"));
    made.keyframe_ = found.front();
  }
  for (int i = 0; i < start.joint_size(); ++i) {
    RETURN_IF_ERROR(made.AddJoints(model, start.joint(i), absl::StrCat("start.joint[", i, "]")));
  }
  for (int i = 0; i < start.body_size(); ++i) {
    RETURN_IF_ERROR(made.AddBody(model, start.body(i), absl::StrCat("start.body[", i, "]")));
  }
  for (int joint = 0; joint < model.njnt; ++joint) {
    if (model.jnt_type[joint] != mjJNT_SLIDE && model.jnt_type[joint] != mjJNT_HINGE) continue;
    made.keys_[PlainName(model, mjOBJ_JOINT, joint)] = model.jnt_qposadr[joint];
  }
  return made;
}

absl::Status StartRules::AddJoints(const mjModel& model, const v1::JointStart& start, const std::string& field) {
  ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, mjOBJ_JOINT, start.joint(), field + ".joint"));
  for (const int joint : found) {
    if (model.jnt_type[joint] != mjJNT_SLIDE && model.jnt_type[joint] != mjJNT_HINGE) {
      return Wrong(field + ".joint", absl::StrCat("joint ", PlainName(model, mjOBJ_JOINT, joint),
                                                  " is neither a slide nor a hinge; place its body with start.body"));
    }
    JointRule rule;
    rule.position = model.jnt_qposadr[joint];
    const std::string name = PlainName(model, mjOBJ_JOINT, joint);
    for (const JointRule& other : joints_) {
      if (other.position != rule.position) continue;
      if ((start.has_position() && other.at.given) || (start.has_velocity() && other.speed.given)) {
        return Wrong(field + ".joint", absl::StrCat("joint ", name, " has a start already"));
      }
    }
    rule.velocity = model.jnt_dofadr[joint];
    rule.stream = absl::StrCat("task.start.joint.", PlainName(model, mjOBJ_JOINT, joint));
    if (start.has_position()) {
      ASSIGN_OR_RETURN(rule.at, ValueOf(start.position(), field + ".position"));
      RETURN_IF_ERROR(CheckLimits(model, joint, rule.at.low, rule.at.high, field + ".position"));
    }
    if (start.has_velocity()) {
      ASSIGN_OR_RETURN(rule.speed, ValueOf(start.velocity(), field + ".velocity"));
    }
    joints_.push_back(std::move(rule));
  }
  return absl::OkStatus();
}

absl::Status StartRules::AddBody(const mjModel& model, const v1::BodyStart& start, const std::string& field) {
  ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, mjOBJ_BODY, start.body(), field + ".body"));
  for (const int body : found) {
    BodyRule rule;
    rule.mocap = model.body_mocapid[body];
    const int joint = model.body_jntnum[body] > 0 ? model.body_jntadr[body] : -1;
    if (joint >= 0 && model.jnt_type[joint] == mjJNT_FREE) rule.position = model.jnt_qposadr[joint];
    if (rule.mocap < 0 && rule.position < 0) {
      return Wrong(field + ".body", absl::StrCat("body ", PlainName(model, mjOBJ_BODY, body),
                                                 " has neither a free joint nor mocap=\"true\""));
    }
    rule.stream = absl::StrCat("task.start.body.", PlainName(model, mjOBJ_BODY, body));
    const v1::Interval* const given[3] = {start.has_x() ? &start.x() : nullptr, start.has_y() ? &start.y() : nullptr,
                                          start.has_z() ? &start.z() : nullptr};
    const char* const axes[3] = {".x", ".y", ".z"};
    for (int i = 0; i < 3; ++i) {
      if (given[i] == nullptr) continue;
      ASSIGN_OR_RETURN(rule.at[i], ValueOf(*given[i], field + axes[i]));
    }
    for (int i = 0; i < start.keep_size(); ++i) {
      ASSIGN_OR_RETURN(const Place from,
                       FindPlace(model, start.keep(i).from(), absl::StrCat(field, ".keep[", i, "].from")));
      rule.keep.push_back({from, start.keep(i).at_least()});
    }
    if (std::any_of(bodies_.begin(), bodies_.end(),
                    [&](const BodyRule& other) { return other.stream == rule.stream; })) {
      return Wrong(field + ".body", absl::StrCat("body ", PlainName(model, mjOBJ_BODY, body), " has a start already"));
    }
    rule.field = field;
    bodies_.push_back(std::move(rule));
  }
  return absl::OkStatus();
}

template <typename Held>
void StartRules::Begin(const mjModel& model, const RandomStream* episode, mjData* data, Held held) const {
  if (keyframe_ >= 0) mj_resetDataKeyframe(&model, data, keyframe_);
  for (const JointRule& rule : joints_) {
    RandomStream stream = episode == nullptr ? RandomStream(0) : episode->Child(rule.stream);
    RandomStream* const source = episode == nullptr ? nullptr : &stream;
    if (rule.at.given) data->qpos[rule.position] = rule.at.Draw(source);
    if (rule.speed.given) data->qvel[rule.velocity] = rule.speed.Draw(source);
  }
  for (size_t i = 0; i < bodies_.size(); ++i) {
    if (PlaceBody(model, bodies_[i], episode, data)) held(i);
  }
}

void StartRules::Apply(const mjModel& model, const RandomStream* episode, mjData* data) const {
  Begin(model, episode, data, [](size_t) {});
}

bool StartRules::PlaceBody(const mjModel& model, const BodyRule& rule, const RandomStream* episode, mjData* data) {
  RandomStream stream = episode == nullptr ? RandomStream(0) : episode->Child(rule.stream);
  RandomStream* const source = episode == nullptr ? nullptr : &stream;
  mjtNum* const position = rule.mocap >= 0 ? data->mocap_pos + 3 * rule.mocap : data->qpos + rule.position;
  mj_kinematics(&model, data);
  for (int attempt = 0; attempt < (source == nullptr ? 1 : kTries); ++attempt) {
    for (int i = 0; i < 3; ++i) {
      if (rule.at[i].given) position[i] = rule.at[i].Draw(source);
    }
    const bool far = std::all_of(rule.keep.begin(), rule.keep.end(), [&](const Keep& keep) {
      return mju_dist3(position, keep.from.position(*data)) >= keep.at_least;
    });
    if (far) return true;
  }
  return rule.keep.empty() || source == nullptr;
}

absl::Status StartRules::CheckKeeps(const mjModel& model, mjData* data) const {
  if (std::all_of(bodies_.begin(), bodies_.end(), [](const BodyRule& rule) { return rule.keep.empty(); }))
    return absl::OkStatus();
  std::vector<int> held(bodies_.size());
  for (uint64_t episode = 0; episode < kEpisodes; ++episode) {
    const RandomStream stream(StreamKey("task.check_keep", {episode}));
    mj_resetData(&model, data);
    Begin(model, &stream, data, [&](size_t body) { ++held[body]; });
  }
  for (size_t i = 0; i < bodies_.size(); ++i) {
    if (held[i] > 0) continue;
    return Wrong(bodies_[i].field + ".keep", absl::StrCat("never holds: in ", kEpisodes, " episodes none of ", kTries,
                                                          " places of the body was far enough"));
  }
  return absl::OkStatus();
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
