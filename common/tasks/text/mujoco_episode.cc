#include "common/tasks/text/mujoco_episode.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tasks/text/mujoco_actuation.h"

namespace datacom::text {
namespace {

constexpr int kTries = 100;             // proto BodyStart.keep
constexpr uint64_t kEpisodes = 100;     // of CheckKeeps
constexpr int kMostTargets = 16;        // of one control step: waypoints may coincide
constexpr double kRounding = 1e-6;      // of a control step: an interval may be a multiple of it
constexpr double kLongestPause = 1e18;  // control steps

double DrawFrom(const v1::Interval& interval, RandomStream* stream) {
  if (stream == nullptr) return (interval.low() + interval.high()) / 2;
  return stream->Uniform(interval.low(), interval.high());
}

std::optional<RandomStream> ChildOf(const RandomStream* episode, const std::string& name) {
  return episode == nullptr ? std::nullopt : std::optional<RandomStream>(episode->Child(name));
}

RandomStream* PointerTo(std::optional<RandomStream>& stream) { return stream ? &*stream : nullptr; }

// The fields x, y and z of a message.
template <typename Message>
Box BoxOf(const Message& message) {
  Box box;
  if (message.has_x()) box[0] = message.x();
  if (message.has_y()) box[1] = message.y();
  if (message.has_z()) box[2] = message.z();
  return box;
}

}  // namespace

absl::StatusOr<StartRules> StartRules::Make(const mjModel& model, const v1::Start& start) {
  StartRules made;
  if (start.has_keyframe()) {
    ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, mjOBJ_KEY, start.keyframe(), "start.keyframe"));
    if (found.size() > 1) {
      return Wrong("start.keyframe",
                   absl::StrCat("\"", start.keyframe(), "\" matches ", found.size(), " keyframes; a start has one"));
    }
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
      if ((start.has_position() && other.at) || (start.has_velocity() && other.speed)) {
        return Wrong(field + ".joint", absl::StrCat("joint ", name, " has a start already"));
      }
    }
    rule.velocity = model.jnt_dofadr[joint];
    rule.stream = absl::StrCat("task.start.joint.", PlainName(model, mjOBJ_JOINT, joint));
    if (start.has_position()) {
      rule.at = start.position();
      RETURN_IF_ERROR(CheckWithinLimits(model, joint, rule.at->low(), rule.at->high(), field + ".position"));
    }
    if (start.has_velocity()) rule.speed = start.velocity();
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
    rule.at = BoxOf(start);
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
    std::optional<RandomStream> stream = ChildOf(episode, rule.stream);
    if (rule.at) data->qpos[rule.position] = DrawFrom(*rule.at, PointerTo(stream));
    if (rule.speed) data->qvel[rule.velocity] = DrawFrom(*rule.speed, PointerTo(stream));
  }
  for (size_t i = 0; i < bodies_.size(); ++i) {
    if (PlaceBody(model, bodies_[i], episode, data)) held(i);
  }
}

void StartRules::Apply(const mjModel& model, const RandomStream* episode, mjData* data) const {
  Begin(model, episode, data, [](size_t) {});
}

bool StartRules::PlaceBody(const mjModel& model, const BodyRule& rule, const RandomStream* episode, mjData* data) {
  std::optional<RandomStream> stream = ChildOf(episode, rule.stream);
  mjtNum* const position = rule.mocap >= 0 ? data->mocap_pos + 3 * rule.mocap : data->qpos + rule.position;
  mj_kinematics(&model, data);
  for (int attempt = 0; attempt < (episode == nullptr ? 1 : kTries); ++attempt) {
    for (int i = 0; i < 3; ++i) {
      if (rule.at[i]) position[i] = DrawFrom(*rule.at[i], PointerTo(stream));
    }
    const bool far = std::all_of(rule.keep.begin(), rule.keep.end(), [&](const Keep& keep) {
      return mju_dist3(position, keep.from.position(*data)) >= keep.at_least;
    });
    if (far) return true;
  }
  return rule.keep.empty() || episode == nullptr;
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
    if (std::any_of(made.motions_.begin(), made.motions_.end(),
                    [&](const Motion& other) { return other.mocap == motion.mocap; })) {
      return Wrong(field + ".body", absl::StrCat("body ", given.body(), " moves already"));
    }
    motion.speed = given.speed();
    motion.stream_name = absl::StrCat("task.motion.", PlainName(model, mjOBJ_BODY, found.front()));
    for (const v1::Waypoint& point : given.waypoint()) motion.waypoints.push_back({point.x(), point.y(), point.z()});
    motion.box = BoxOf(given);
    const bool boxed = given.has_x() || given.has_y() || given.has_z();
    if (boxed != motion.waypoints.empty()) return Wrong(field, "needs either waypoints or a box (x, y, z)");
    made.motions_.push_back(std::move(motion));
  }
  return made;
}

void Motions::Begin(const RandomStream* episode, const mjData& data) {
  for (Motion& motion : motions_) {
    motion.next = 0;
    motion.stream = ChildOf(episode, motion.stream_name);
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
    if (motion->box[axis]) motion->target[axis] = DrawFrom(*motion->box[axis], PointerTo(motion->stream));
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
    ASSIGN_OR_RETURN(const Named named, OnlyNamed(given, field));
    const mjtObj type = named.type;
    const char* const kind = mju_type2Str(type);
    const auto list = type == mjOBJ_BODY    ? &ElementScale::mass
                      : type == mjOBJ_JOINT ? &ElementScale::damping
                      : type == mjOBJ_GEOM  ? &ElementScale::friction
                                            : &ElementScale::force;
    const v1::Interval& range = given.factor();
    if (type == mjOBJ_BODY && !(range.low() > 0)) return Wrong(field + ".factor.low", "of a mass must be above 0");
    ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, type, named.glob, named.field));
    for (const int id : found) {
      Factor factor{list, id, 1, range, absl::StrCat("task.randomise.", kind, ".", PlainName(model, type, id))};
      if (!streams.insert(factor.stream).second) {
        return Wrong(named.field, absl::StrCat(kind, " ", PlainName(model, type, id), " has a factor already"));
      }
      if (type == mjOBJ_JOINT) {
        const int joint = model.jnt_type[id];
        factor.first = model.jnt_dofadr[id];
        factor.count = joint == mjJNT_FREE ? 6 : joint == mjJNT_BALL ? 3 : 1;
      }
      if (type == mjOBJ_ACTUATOR && !HasLinearGain(model, id)) {
        return Wrong(named.field, absl::StrCat("actuator ", PlainName(model, type, id),
                                               " is no motor or servo: its force is not gain * control + bias"));
      }
      made.factors_.push_back(std::move(factor));
    }
  }
  return made;
}

const ElementScale& ElementFactors::Draw(const RandomStream* episode) {
  for (const Factor& factor : factors_) {
    std::optional<RandomStream> stream = ChildOf(episode, factor.stream);
    std::fill_n((scale_.*factor.list).begin() + factor.first, factor.count, DrawFrom(factor.range, PointerTo(stream)));
  }
  return scale_;
}

absl::StatusOr<Pushes> Pushes::Make(const mjModel& model, const v1::TaskDefinition& definition, double control_dt) {
  Pushes made;
  made.control_dt_ = control_dt;
  for (int i = 0; i < definition.push_size(); ++i) {
    const v1::Push& given = definition.push(i);
    const std::string field = absl::StrCat("push[", i, "]");
    ASSIGN_OR_RETURN(const Named named, OnlyNamed(given, field));
    ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, named.type, named.glob, named.field));
    if (found.size() > 1) return Wrong(named.field, "matches several; a push has one");
    const int joint = !given.has_body() ? found[0] : model.body_jntnum[found[0]] > 0 ? model.body_jntadr[found[0]] : -1;
    const int kind = joint < 0 ? -1 : model.jnt_type[joint];
    if (given.has_body() && kind != mjJNT_FREE) return Wrong(named.field, "has no free joint; push one of its joints");
    if (given.has_joint() && kind != mjJNT_SLIDE && kind != mjJNT_HINGE) {
      return Wrong(named.field, "is neither a slide nor a hinge; push its body");
    }
    Push push;
    push.every = given.every();
    push.stream_name = absl::StrCat("task.push.", i, ".", PlainName(model, named.type, found[0]));
    const int dof = model.jnt_dofadr[joint];
    if (given.has_x()) push.kicks.push_back({dof, given.x()});
    if (given.has_y()) push.kicks.push_back({dof + 1, given.y()});
    if (given.has_z()) push.kicks.push_back({dof + 2, given.z()});
    if (given.has_velocity()) push.kicks.push_back({dof, given.velocity()});
    if (push.kicks.empty()) return Wrong(field, "needs a velocity: x, y or z of a body, velocity of a joint");
    made.pushes_.push_back(std::move(push));
  }
  return made;
}

uint64_t Pushes::Pause(Push* push) const {
  const double steps = std::ceil(DrawFrom(push->every, PointerTo(push->stream)) / control_dt_ - kRounding);
  return static_cast<uint64_t>(std::clamp(steps, 1.0, kLongestPause));
}

void Pushes::Begin(const RandomStream* episode) {
  step_ = 0;
  for (Push& push : pushes_) {
    push.stream = ChildOf(episode, push.stream_name);
    push.due = Pause(&push);
  }
}

bool Pushes::Apply(mjData* data) {
  bool pushed = false;
  for (Push& push : pushes_) {
    if (step_ != push.due) continue;
    for (const Kick& kick : push.kicks) data->qvel[kick.dof] += DrawFrom(kick.velocity, PointerTo(push.stream));
    push.due = step_ + Pause(&push);
    pushed = true;
  }
  ++step_;
  return pushed;
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
