#include "common/tasks/text/mujoco_draft.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/text/draft_terms.h"
#include "common/tasks/text/mujoco_actuation.h"
#include "common/tasks/text/mujoco_names.h"
#include "common/tasks/text/mujoco_signals.h"

namespace datacom::text {
namespace {

constexpr double kPeriod = 0.02, kEpisode = 10;  // s
constexpr double kInside = 0.9;                  // share of a joint's range without cost
constexpr double kStartInside = 0.78;  // share of a joint's range where starts are centred; they stay in kInside
constexpr double kStartHalf = 0.05;    // half of the start's interval: rad, m, or this share of a range

// Empty for an element without a name.
std::string NameOf(const mjModel& model, mjtObj type, int id) {
  const char* name = mj_id2name(&model, type, id);
  return name == nullptr ? "" : name;
}

class Draft {
 public:
  explicit Draft(const mjModel& model) : model_(model) {}

  absl::StatusOr<std::string> Write(const std::string& name, const std::string& file,
                                    const std::vector<std::string>& named) {
    ASSIGN_OR_RETURN(data_, MakeMujocoData(model_));
    FindJoints();
    RETURN_IF_ERROR(FindActuators(named));
    RETURN_IF_ERROR(GuardMujoco([this] {
      if (keyframe_ >= 0) mj_resetDataKeyframe(&model_, data_.get(), keyframe_);
      mj_forward(&model_, data_.get());
    }));
    Head(name, file, named);
    Observation();
    Extra();
    Objective();
    Control();
    Start();
    State();
    Slice();
    return text_;
  }

 private:
  struct Joint {
    int id = 0;
    std::string name, plain;         // as in the model, as in expressions
    std::string position, velocity;  // what its signals are called
    bool scalar = false, limited = false;
    double low = 0, high = 0;  // of a limited joint
    double Start(double reference) const {
      const double centre = (low + high) / 2, half = kStartInside * (high - low) / 2;
      return limited ? std::clamp(reference, centre - half, centre + half) : reference;
    }
  };

  // A name for expressions that no other signal has.
  std::string Free(const std::string& wanted, const std::string& prefix) {
    std::string name = wanted;
    while (!taken_.insert(name).second) name = absl::StrCat(prefix, "_", name);
    return name;
  }
  void Line(const std::string& line) { absl::StrAppend(&text_, line, "\n"); }
  void Nameless(mjtObj type, int id) {
    Line(absl::StrCat("# ", mju_type2Str(type), " number ", id,
                      " has no name; give it one in the model to use it here."));
  }

  void FindJoints() {
    for (int id = 0; id < model_.njnt; ++id) {
      Joint joint;
      joint.id = id;
      joint.name = NameOf(model_, mjOBJ_JOINT, id);
      joint.plain = PlainName(model_, mjOBJ_JOINT, id);
      joint.scalar = model_.jnt_type[id] == mjJNT_SLIDE || model_.jnt_type[id] == mjJNT_HINGE;
      joint.limited = joint.scalar && model_.jnt_limited[id] != 0;
      joint.low = model_.jnt_range[2 * id], joint.high = model_.jnt_range[2 * id + 1];
      joints_.push_back(joint);
    }
    for (int id = 0; id < model_.nkey && keyframe_ < 0; ++id) {
      if (!NameOf(model_, mjOBJ_KEY, id).empty()) keyframe_ = id;
    }
  }

  absl::Status FindActuators(const std::vector<std::string>& new_names) {
    if (joints_.empty()) return Wrong("model", "it has no joint, so nothing in it can move");
    std::vector<int> named;
    for (int id = 0; id < model_.nu; ++id) {
      if (NameOf(model_, mjOBJ_ACTUATOR, id).empty()) continue;
      named.push_back(id);
      if (IsAffine(model_, id)) actuators_.push_back(id);
    }
    finite_difference_ = actuators_.empty();
    if (finite_difference_) actuators_ = named;
    if (!actuators_.empty()) return absl::OkStatus();
    if (model_.nu > 0) return Wrong("model", "a task needs an actuator with a name; it has only nameless ones");
    return Wrong("model", NoActuator(new_names));
  }

  // What to add to the model. Names that only the copy has are no names in the model.
  std::string NoActuator(const std::vector<std::string>& new_names) const {
    std::string motors, nameless;
    for (const Joint& joint : joints_) {
      const auto is_this = [&](const std::string& name) { return name == "joint " + joint.name; };
      if (joint.name.empty() || std::any_of(new_names.begin(), new_names.end(), is_this)) {
        const std::string body = NameOf(model_, mjOBJ_BODY, model_.jnt_bodyid[joint.id]);
        absl::StrAppend(&nameless, nameless.empty() ? "" : ", ", "number ", joint.id,
                        body.empty() ? "" : absl::StrCat(" (in body ", body, ")"));
      }
      const std::string name = Quoted(joint.name.empty() ? absl::StrCat("joint_", joint.id) : joint.name);
      const int type = model_.jnt_type[joint.id];
      const char* const gear = type == mjJNT_FREE ? "0 0 1 0 0 0" : type == mjJNT_BALL ? "1 0 0" : "1";
      absl::StrAppend(&motors, "    <motor name=", name, " joint=", name, " gear=\"", gear,
                      "\" ctrllimited=\"true\" ctrlrange=\"-1 1\"/>\n");
    }
    return absl::StrCat(
        "it has no actuator. For example, write this before </mujoco> (gear: the largest force, N or Nm; of a ball or "
        "free joint a vector):\n  <actuator>\n",
        motors, "  </actuator>",
        nameless.empty() ? ""
                         : absl::StrCat("\nJoints without a name need these names in the model first: ", nameless));
  }

  void Head(const std::string& name, const std::string& file, const std::vector<std::string>& named) {
    Line(absl::StrCat("# A task of the model ", file, ". Made by `datacom task new`; edit it, then see what it does:"));
    Line("#   datacom task check task.textproto");
    Line("# `datacom explain task_file` explains every field. Units are MuJoCo's: m, rad, s, N, kg.");
    if (!named.empty()) {
      Line("# These names are new in this copy of the model, because the original has none there:");
      std::string line = "#  ";
      for (size_t i = 0; i < named.size(); ++i) {
        if (line.size() + named[i].size() > kDraftWidth) {
          Line(line);
          line = "#  ";
        }
        absl::StrAppend(&line, " ", named[i], i + 1 < named.size() ? "," : "");
      }
      Line(line);
    }
    Line(absl::StrCat("name: ", Quoted(name)));
    Line(absl::StrCat("model: ", Quoted(file)));
    substeps_ = std::max(1, static_cast<int>(std::lround(kPeriod / model_.opt.timestep)));
    Line(absl::StrCat("horizon: ", std::max(1L, std::lround(kEpisode / (substeps_ * model_.opt.timestep))),
                      "  # control steps of an episode: about ", Number(kEpisode), " s"));
  }

  void Observation() {
    Line("\n# What policy and critics see. A hinge without limits appears as sine and cosine of its angle.");
    for (Joint& joint : joints_) {
      if (joint.name.empty()) {
        Nameless(mjOBJ_JOINT, joint.id);
        continue;
      }
      const bool turns = model_.jnt_type[joint.id] == mjJNT_HINGE && !joint.limited;
      joint.position =
          Signal("observation", "joint", joint.name, joint.plain, turns ? " quantity: \"sine_cosine\"" : "",
                 joint.limited ? absl::StrCat("  # ", Number(joint.low), " to ", Number(joint.high)) : "");
    }
    for (Joint& joint : joints_) {
      if (joint.name.empty()) continue;
      joint.velocity =
          Signal("observation", "joint", joint.name, joint.plain + "_velocity", " quantity: \"velocity\"", "");
    }
  }

  // Writes a signal whose default name is `plain`; returns its name.
  std::string Signal(const std::string& list, const std::string& kind, const std::string& element,
                     const std::string& plain, const std::string& more, const std::string& comment) {
    const std::string name = Free(plain, kind);
    const std::string named = name == plain ? "" : absl::StrCat(" name: ", Quoted(name));
    Line(absl::StrCat(list, " { ", kind, ": ", Quoted(element), named, more, " }", comment));
    return name;
  }

  // What a range finder reads where it hits nothing.
  std::string WithoutHit(int sensor) const {
    if (!IsRangeFinder(model_, sensor)) return "";
    const mjtNum cutoff = model_.sensor_cutoff[sensor];
    return cutoff > 0 ? absl::StrCat("; its cutoff, ", Number(cutoff), ", where it hits nothing")
                      : "; -1 where it hits nothing: give it a cutoff in the model";
  }

  // Whether joints move it. The others are fixed to the world or belong to mocap bodies.
  bool Moves(int body) const {
    return model_.body_weldid[body] != 0 && model_.body_mocapid[model_.body_rootid[body]] < 0;
  }

  void Extra() {
    Line("\n# Further numbers, only for the expressions below. NAME.x, NAME.y and NAME.z are positions in the world.");
    Line("# Move a line up and call it `observation` to show it to the policy.");
    std::string goal;
    int hand = -1;
    for (int id = 0; id < model_.nsite; ++id) {
      if (NameOf(model_, mjOBJ_SITE, id).empty()) continue;
      const std::string site = NameOf(model_, mjOBJ_SITE, id);
      const std::string name = Signal("extra", "site", site, PlainName(model_, mjOBJ_SITE, id), "", "");
      if (Moves(model_.site_bodyid[id])) {
        hand = id, hand_ = name;
      } else if (goal.empty()) {
        goal = site;
      }
    }
    if (hand >= 0 && !goal.empty()) {
      distance_ = Free("distance", "hand");
      Line(absl::StrCat("extra { name: ", Quoted(distance_), " site: ", Quoted(NameOf(model_, mjOBJ_SITE, hand)),
                        " quantity: \"distance\" relative_to: ", Quoted(goal), " }"));
    }
    hand_id_ = hand;
    for (int id = 0; id < model_.nsensor; ++id) {
      if (NameOf(model_, mjOBJ_SENSOR, id).empty()) {
        Nameless(mjOBJ_SENSOR, id);
        continue;
      }
      const bool force = model_.sensor_needstage[id] == mjSTAGE_ACC;
      refresh_ |= force;
      Signal("extra", "sensor", NameOf(model_, mjOBJ_SENSOR, id), PlainName(model_, mjOBJ_SENSOR, id), "",
             absl::StrCat("  # ", model_.sensor_dim[id], model_.sensor_dim[id] == 1 ? " number" : " numbers",
                          WithoutHit(id)));
    }
  }

  // For each joint what is 0 where episodes start in the mean, and above 0 elsewhere.
  std::vector<std::string> Deviations() const {
    std::vector<std::string> terms;
    for (const Joint& joint : joints_) {
      if (joint.name.empty()) continue;
      const std::string& n = joint.position;
      const mjtNum* const at = data_->qpos + model_.jnt_qposadr[joint.id];
      switch (model_.jnt_type[joint.id]) {
        case mjJNT_FREE:
          for (int i = 0; i < 3; ++i) terms.push_back(SquareOf(absl::StrCat(n, ".", std::string(1, "xyz"[i])), at[i]));
          terms.push_back(Turned(n, at + 3, {"qw", "qx", "qy", "qz"}));
          break;
        case mjJNT_BALL:
          terms.push_back(Turned(n, at, {"w", "x", "y", "z"}));
          break;
        case mjJNT_HINGE:
          if (!joint.limited) {
            terms.push_back("1 - " + Product(n, {std::sin(at[0]), std::cos(at[0])}, {"sin", "cos"}));
            break;
          }
          [[fallthrough]];
        default:
          terms.push_back(SquareOf(n, joint.Start(at[0])));
      }
    }
    return terms;
  }

  void Objective() {
    Line(
        "\n# The reward of a control step: an expression over the numbers above, their values one control step "
        "earlier");
    Line("# (before.NUMBER), action.NAME in [-1, 1], time and constants.");
    if (!distance_.empty()) {
      Line("# This one brings the last moving site to the first fixed one. Edit it.");
      Line(absl::StrCat("reward: \"-", distance_, "\""));
      Line(absl::StrCat("# success: \"", distance_, " < 0.05\""));
    } else if (hand_id_ >= 0) {
      const mjtNum* at = &data_->site_xpos[3 * hand_id_];
      Line("# This one brings a site to a goal, which is now the place where the site starts. Edit both.");
      for (int i = 0; i < 3; ++i) {
        Line(absl::StrCat("constant { name: \"goal_", std::string(1, "xyz"[i]), "\" value: ", Number(at[i]), " }"));
      }
      const std::string& n = hand_;
      const std::string squares =
          absl::StrCat("(", n, ".x - goal_x)^2 + (", n, ".y - goal_y)^2 + (", n, ".z - goal_z)^2");
      Line(absl::StrCat("reward: \"-sqrt(", squares, ")\""));
      Line(absl::StrCat("# success: \"", squares, " < 0.0025\"  # nearer than 5 cm"));
    } else {
      Line("# This one brings every joint to where episodes start. Edit it.");
      const std::vector<std::string> terms = Deviations();
      Line(absl::StrCat("reward: ", terms.empty() ? Quoted("0") : QuotedTerms("-(", terms, " + ", ")")));
    }
    Line(
        "# The reward is clipped to this range; learner.bound_returns=true then keeps the critics within what it "
        "allows.");
    Line("# reward_range { low: -10 high: 0 }");
    Cost();
    Line("# An episode ends early where this is not 0:");
    Line("# absorbing: \"time > 5 && ...\"");
  }

  void Cost() {
    Line(
        "\n# Above 0 is a violation; training keeps it at or below 0. Several costs are possible; the largest counts.");
    std::vector<std::string> range, speed;
    for (const Joint& joint : joints_) {
      if (joint.limited && !joint.name.empty()) {
        const double centre = (joint.low + joint.high) / 2, half = (joint.high - joint.low) / 2;
        if (half <= 0) continue;
        range.push_back(absl::StrCat("abs(", Less(joint.position, centre), ") / ", Number(half)));
      } else if (joint.scalar && !joint.name.empty()) {
        speed.push_back(absl::StrCat("abs(", joint.velocity, ")"));
      }
    }
    if (!range.empty()) {
      Line(absl::StrCat("# This one is above 0 where a joint leaves the middle ", 100 * kInside, " % of its range."));
      Line(absl::StrCat("cost { name: \"joint_range\" value: ",
                        QuotedTerms("max(", range, ", ", absl::StrCat(") - ", kInside)), " }"));
    } else if (!speed.empty()) {
      Line("# This one is above 0 where a joint is faster than 5 rad/s or m/s.");
      Line(absl::StrCat("cost { name: \"speed\" value: ", QuotedTerms("max(", speed, ", ", ") / 5 - 1"), " }"));
    } else {
      Line("# This one is never above 0. Edit it.");
      Line("cost { name: \"none\" value: \"-1\" }");
    }
    if (hand_id_ >= 0) {
      Line(absl::StrCat("# A wall at x = 0.5 m: cost { name: \"wall\" value: \"", hand_, ".x - 0.5\" }"));
    }
  }

  void Control() {
    Line("\n# The action has one number in [-1, 1] for each actuator; -1 and 1 are the ends of its control range.");
    Line("control {");
    for (int id = 0; id < model_.nu; ++id) {
      if (NameOf(model_, mjOBJ_ACTUATOR, id).empty()) {
        Nameless(mjOBJ_ACTUATOR, id);
        continue;
      }
      const std::string name = Quoted(NameOf(model_, mjOBJ_ACTUATOR, id));
      if (!finite_difference_ && !IsAffine(model_, id)) {
        Line(absl::StrCat("  # actuator: ", name,
                          "  # its force is no affine function of the control, which the safe map needs"));
        continue;
      }
      const double low = model_.actuator_ctrlrange[2 * id], high = model_.actuator_ctrlrange[2 * id + 1];
      const bool ranged = model_.actuator_ctrllimited[id] != 0;
      Line(absl::StrCat("  actuator: ", name, ranged ? absl::StrCat("  # ", Number(low), " to ", Number(high)) : ""));
      if (ranged) continue;
      Line(absl::StrCat("  range { actuator: ", name, " low: -1 high: 1 }  # the model has none; edit it"));
    }
    const double step = model_.opt.timestep;
    Line(absl::StrFormat("  period: %.10g  # s, %d time steps of the model", substeps_ * step, substeps_));
    if (finite_difference_) {
      Line(
          "  # No actuator's force is an affine function of its control (activation, delay or muscle), so f and G are "
          "those");
      Line(
          "  # of a whole control step. Without this line only methods without a safety filter can train, and faster.");
      Line("  dynamics: \"finite_difference\"");
    }
    Line("  mode: \"torque\"  # f and G from MuJoCo's dynamics; see `datacom explain task_file.control.mode`");
    if (refresh_) Line("  refresh: \"all\"  # a sensor of forces or accelerations needs it; costs time");
    Line("}");
  }

  void Start() {
    Line("\n# The start of an episode: each joint uniform in its interval.");
    Line("start {");
    if (keyframe_ >= 0) Line(absl::StrCat("  keyframe: ", Quoted(NameOf(model_, mjOBJ_KEY, keyframe_))));
    for (const Joint& joint : joints_) {
      if (!joint.scalar || joint.name.empty()) continue;
      const double at = joint.Start(data_->qpos[model_.jnt_qposadr[joint.id]]);
      const double half = kStartHalf * (joint.limited ? joint.high - joint.low : 1);
      Line(absl::StrCat("  joint { joint: ", Quoted(joint.name), " position ", Interval(at - half, at + half), " }"));
    }
    Line("}");
    for (int body = 0; body < model_.nbody; ++body) {
      if (model_.body_mocapid[body] < 0 || NameOf(model_, mjOBJ_BODY, body).empty()) continue;
      Line(absl::StrCat("# Moves the body ", Quoted(NameOf(model_, mjOBJ_BODY, body)), ": motion { body: ",
                        Quoted(NameOf(model_, mjOBJ_BODY, body)), " speed: 0.2 x { low: -1 high: 1 } }"));
    }
  }

  // The bodies that an actuator pushes.
  std::vector<int> Driven(int actuator) const {
    const int target = model_.actuator_trnid[2 * actuator];
    switch (model_.actuator_trntype[actuator]) {
      case mjTRN_JOINT:
      case mjTRN_JOINTINPARENT:
        return {model_.jnt_bodyid[target]};
      case mjTRN_SITE:
      case mjTRN_SLIDERCRANK:
        return {model_.site_bodyid[target]};
      case mjTRN_TENDON:
        break;
      default:
        return {};
    }
    std::vector<int> bodies;
    for (int i = model_.tendon_adr[target]; i < model_.tendon_adr[target] + model_.tendon_num[target]; ++i) {
      if (model_.wrap_type[i] == mjWRAP_JOINT) bodies.push_back(model_.jnt_bodyid[model_.wrap_objid[i]]);
      if (model_.wrap_type[i] == mjWRAP_SITE) bodies.push_back(model_.site_bodyid[model_.wrap_objid[i]]);
    }
    return bodies;
  }

  void State() {
    std::set<int> trees;
    for (const int actuator : actuators_) {
      for (const int body : Driven(actuator)) trees.insert(model_.body_rootid[body]);
    }
    const auto has_joints = [&](int tree) {
      return std::any_of(joints_.begin(), joints_.end(),
                         [&](const Joint& joint) { return model_.body_rootid[model_.jnt_bodyid[joint.id]] == tree; });
    };
    const bool all = std::none_of(trees.begin(), trees.end(), has_joints);
    std::vector<std::string> mine, others;
    for (const Joint& joint : joints_) {
      if (joint.name.empty()) continue;
      const bool in = all || trees.count(model_.body_rootid[model_.jnt_bodyid[joint.id]]) > 0;
      (in ? mine : others).push_back(joint.name);
      if (in && joint.scalar) sliced_.push_back(joint);
    }
    Line(
        "\n# What the safety filter steers: q, the joints that the actuators move. The learned constraint depends on q "
        "and");
    Line("# on x, the uncontrolled numbers. Put a moving obstacle into x: uncontrolled { body: \"obstacle\" }");
    Line("constraint_state {");
    if (mine.size() + others.size() == joints_.size()) {  // else the default: all joints, because names are missing
      for (const std::string& joint : mine) Line(absl::StrCat("  joint: ", Quoted(joint)));
      for (const std::string& joint : others) Line(absl::StrCat("  uncontrolled { joint: ", Quoted(joint), " }"));
    }
    Line("}");
    std::string limited;
    for (const Joint& joint : sliced_) {
      if (joint.limited && limited.empty()) limited = joint.name;
    }
    if (limited.empty() && hand_id_ < 0) return;
    Line("# Limits that hold from the first step on, with `--set 'constraints.known=[NAME]'`:");
    if (!limited.empty()) {
      Line(absl::StrCat("# known { name: \"range\" joint_position: ", Quoted(limited),
                        " share: 0.95 viability_gain: 0.5 }"));
    }
    if (hand_id_ >= 0) {
      Line(absl::StrCat("# known { name: \"reach\" site: ", Quoted(NameOf(model_, mjOBJ_SITE, hand_id_)),
                        " half_space { normal { x: 1 } offset: 0.5 } viability_gain: 0.5 }"));
    }
  }

  std::string Axis(const std::string& axis, const std::string& of, double low, double high) const {
    return absl::StrCat("  ", axis, " { of: ", Quoted(of), " low: ", Number(low), " high: ", Number(high), " }");
  }
  std::string PositionAxis(const std::string& axis, const Joint& joint) const {
    const double reach = model_.jnt_type[joint.id] == mjJNT_HINGE ? M_PI : 1;
    return Axis(axis, joint.plain, joint.limited ? joint.low : -reach, joint.limited ? joint.high : reach);
  }

  void Slice() {
    if (sliced_.empty()) return;
    Line("\n# A plane through the constraint state, for `datacom render RUN --map`.");
    Line("slice {");
    const bool two = sliced_.size() > 1;
    Line(absl::StrCat("  name: ", Quoted(two ? "joints" : "phase")));
    Line(PositionAxis("x", sliced_[0]));
    Line(two ? PositionAxis("y", sliced_[1]) : Axis("y", sliced_[0].plain + "_velocity", -5, 5));
    Line("}");
  }

  const mjModel& model_;
  MujocoData data_;
  std::string text_;
  std::vector<Joint> joints_, sliced_;
  std::vector<int> actuators_;      // that the action may have
  bool finite_difference_ = false;  // none of them has a force that is an affine function of its control
  std::set<std::string> taken_ = {"time", "pi", "action", "goal_x", "goal_y", "goal_z"};
  std::string hand_, distance_;
  int hand_id_ = -1, keyframe_ = -1, substeps_ = 1;
  bool refresh_ = false;
};

}  // namespace

absl::StatusOr<std::string> DraftTask(const mjModel& model, const std::string& name, const std::string& file,
                                      const std::vector<std::string>& named) {
  return Draft(model).Write(name, file, named);
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
