#include "common/tasks/text/mujoco_draft.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/text/draft_terms.h"
#include "common/tasks/text/mujoco_actuation.h"
#include "common/tasks/text/mujoco_names.h"
#include "common/tasks/text/mujoco_signals.h"

namespace datacom::text {

extern const char kDraft[];  // draft.textproto.in

namespace {

constexpr double kPeriod = 0.02, kEpisode = 10;  // s
constexpr double kMost = 1e6;                    // time steps of a control step, and control steps of an episode
constexpr double kInside = 0.9;                  // share of a joint's range without cost
constexpr double kStartInside = 0.78;  // share of a joint's range where starts are centred; they stay in kInside
constexpr double kStartHalf = 0.05;    // half of the start's interval: rad, m, or this share of a range

// Empty for an element without a name.
std::string NameOf(const mjModel& model, mjtObj type, int id) {
  const char* name = mj_id2name(&model, type, id);
  return name == nullptr ? "" : name;
}

// MuJoCo also takes an infinite range, which limits nothing.
bool IsFinite(const mjtNum* range) { return std::isfinite(range[1] - range[0]); }

using Values = std::map<std::string, std::string>;

// The text of draft.textproto.in. {{NAME}} stands for a value and {{?NAME}} for nothing. A line with the name of a
// value that there is not is left out.
std::string Filled(const Values& values) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(kDraft, "\n"), '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, "{{");
    std::string filled(parts[0]);
    bool kept = true;
    for (size_t i = 1; i < parts.size(); ++i) {
      std::pair<absl::string_view, absl::string_view> part = absl::StrSplit(parts[i], absl::MaxSplits("}}", 1));
      const bool shown = !absl::ConsumePrefix(&part.first, "?");
      const auto value = values.find(std::string(part.first));
      kept = kept && value != values.end();
      if (kept) absl::StrAppend(&filled, shown ? value->second : "", part.second);
    }
    if (kept) absl::StrAppend(&text, filled, "\n");
  }
  return text;
}

class Draft {
 public:
  explicit Draft(const mjModel& model) : model_(model) {}

  absl::StatusOr<std::string> Write(const std::string& name, const std::string& file,
                                    const std::vector<std::string>& named) {
    ASSIGN_OR_RETURN(data_, MakeMujocoData(model_));
    FindJoints();
    RETURN_IF_ERROR(FindActuators(file, named));
    RETURN_IF_ERROR(GuardMujoco([this] {
      if (keyframe_ >= 0) mj_resetDataKeyframe(&model_, data_.get(), keyframe_);
      mj_forward(&model_, data_.get());
    }));
    Head(name, file, named);
    Observation();
    Extra();
    Objective();
    Cost();
    Control();
    Start();
    State();
    Slice();
    return Filled(values_);
  }

 private:
  struct Joint {
    int id = 0;
    std::string name, plain;         // as in the model, as in expressions
    std::string position, velocity;  // what its signals are called
    bool scalar = false, limited = false;
    double low = 0, high = 0;                                  // of a limited joint
    double Width() const { return limited ? high - low : 1; }  // 1: rad or m
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
  // Adds a line to a value.
  void Line(const std::string& value, const std::string& line) {
    std::string& lines = values_[value];
    absl::StrAppend(&lines, lines.empty() ? "" : "\n", line);
  }
  void Nameless(mjtObj type, int id) {
    const std::string kind = mju_type2Str(type);
    Line(kind + "s",
         absl::StrCat("# ", kind, " number ", id, " has no name; give it one in the model to use it here."));
  }

  void FindJoints() {
    for (int id = 0; id < model_.njnt; ++id) {
      Joint joint;
      joint.id = id;
      joint.name = NameOf(model_, mjOBJ_JOINT, id);
      joint.plain = PlainName(model_, mjOBJ_JOINT, id);
      joint.scalar = model_.jnt_type[id] == mjJNT_SLIDE || model_.jnt_type[id] == mjJNT_HINGE;
      joint.limited = joint.scalar && model_.jnt_limited[id] != 0 && IsFinite(model_.jnt_range + 2 * id);
      joint.low = model_.jnt_range[2 * id], joint.high = model_.jnt_range[2 * id + 1];
      joints_.push_back(joint);
    }
    for (int id = 0; id < model_.nkey && keyframe_ < 0; ++id) {
      if (!NameOf(model_, mjOBJ_KEY, id).empty()) keyframe_ = id;
    }
  }

  absl::Status FindActuators(const std::string& file, const std::vector<std::string>& new_names) {
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
    return Wrong("model", NoActuator(file, new_names));
  }

  // The largest force on a joint, if the model says what it is; else 1.
  std::string Force([[maybe_unused]] int joint) const {
#if mjVERSION_HEADER >= 300
    const mjtNum* const range = model_.jnt_actfrcrange + 2 * joint;
    const double most = std::max(std::abs(range[0]), std::abs(range[1]));
    if (model_.jnt_actfrclimited[joint] != 0 && std::isfinite(most)) return Number(most);
#endif
    return "1";
  }

  // What to add to the model. Names that only the copy has are no names in the model.
  std::string NoActuator(const std::string& file, const std::vector<std::string>& new_names) const {
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
      const std::string gear = type == mjJNT_FREE ? "0 0 1 0 0 0" : type == mjJNT_BALL ? "1 0 0" : Force(joint.id);
      absl::StrAppend(&motors, "    <motor name=", name, " joint=", name, " gear=\"", gear,
                      "\" ctrllimited=\"true\" ctrlrange=\"-1 1\"/>\n");
    }
    return absl::StrCat(
        "it has no actuator. ",
        absl::EndsWithIgnoreCase(file, ".urdf") ? "A URDF model cannot have one: convert it to MJCF with MuJoCo's "
                                                  "`compile` first. "
                                                : "",
        "For example, write this before </mujoco> (gear: the largest force, N or Nm; of a ball or free joint a "
        "vector):\n  <actuator>\n",
        motors, "  </actuator>",
        nameless.empty() ? ""
                         : absl::StrCat("\nJoints without a name need these names in the model first: ", nameless));
  }

  void Head(const std::string& name, const std::string& file, const std::vector<std::string>& named) {
    std::string line = "#  ";
    for (size_t i = 0; i < named.size(); ++i) {
      const std::string element = InComment(named[i]);
      if (line.size() + element.size() > kDraftWidth) {
        Line("named", line);
        line = "#  ";
      }
      absl::StrAppend(&line, " ", element, i + 1 < named.size() ? "," : "");
    }
    if (!named.empty()) Line("named", line);
    const double step = model_.opt.timestep;
    const double substeps = std::clamp(std::round(kPeriod / step), 1.0, kMost);
    values_["file"] = InComment(file);
    values_["name"] = Quoted(name);
    values_["model"] = Quoted(file);
    values_["episode"] = Number(kEpisode);
    values_["horizon"] = absl::StrFormat("%.0f", std::clamp(std::round(kEpisode / (substeps * step)), 1.0, kMost));
    values_["period"] = absl::StrFormat("%.10g", substeps * step);
    values_["substeps"] = absl::StrFormat("%.0f", substeps);
  }

  void Observation() {
    for (Joint& joint : joints_) {
      if (joint.name.empty()) {
        Nameless(mjOBJ_JOINT, joint.id);
        continue;
      }
      const bool turns = model_.jnt_type[joint.id] == mjJNT_HINGE && !joint.limited;
      joint.position =
          Signal("observation", "joint", joint.name, joint.plain, turns ? " quantity: \"sine_cosine\"" : "",
                 joint.limited ? absl::StrCat("  # ", Span(joint.low, joint.high, " to ")) : "");
    }
    for (Joint& joint : joints_) {
      if (joint.name.empty()) continue;
      joint.velocity =
          Signal("observation", "joint", joint.name, joint.plain + "_velocity", " quantity: \"velocity\"", "");
    }
  }

  // Adds a signal to the value "KINDs" whose default name is `plain`; returns its name.
  std::string Signal(const std::string& list, const std::string& kind, const std::string& element,
                     const std::string& plain, const std::string& more, const std::string& comment) {
    const std::string name = Free(plain, kind);
    const std::string named = name == plain ? "" : absl::StrCat(" name: ", Quoted(name));
    Line(kind + "s", absl::StrCat(list, " { ", kind, ": ", Quoted(element), named, more, " }", comment));
    return name;
  }

  // What a range finder reads where it hits nothing.
  std::string WithoutHit(int sensor) const {
    if (model_.sensor_type[sensor] != mjSENS_RANGEFINDER) return "";
    if (!IsRangeFinder(model_, sensor)) return "; a distance is -1 where it hits nothing, also with a cutoff";
    const mjtNum cutoff = model_.sensor_cutoff[sensor];
    return cutoff > 0 ? absl::StrCat("; its cutoff, ", Number(cutoff), ", where it hits nothing")
                      : "; -1 where it hits nothing: give it a cutoff in the model";
  }

  // Whether joints move it. The others are fixed to the world or belong to mocap bodies.
  bool Moves(int body) const {
    return model_.body_weldid[body] != 0 && model_.body_mocapid[model_.body_rootid[body]] < 0;
  }

  void Extra() {
    for (int id = 0; id < model_.nsite; ++id) {
      const std::string site = NameOf(model_, mjOBJ_SITE, id);
      if (site.empty()) continue;
      const std::string name = Signal("extra", "site", site, PlainName(model_, mjOBJ_SITE, id), "", "");
      if (Moves(model_.site_bodyid[id])) {
        hand_ = id, values_["hand"] = name, values_["site"] = Quoted(site);
      } else {
        values_.try_emplace("goal", Quoted(site));
      }
    }
    if (hand_ >= 0 && values_.count("goal") > 0) values_["distance"] = Free("distance", "hand");
    for (int id = 0; id < model_.nsensor; ++id) {
      if (NameOf(model_, mjOBJ_SENSOR, id).empty()) {
        Nameless(mjOBJ_SENSOR, id);
        continue;
      }
      const bool force = model_.sensor_needstage[id] == mjSTAGE_ACC;
      if (force) values_["refresh"] = "";
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
          terms.push_back(SquareOf(n, joint.Start(at[0]), kDraftError * joint.Width()));
      }
    }
    return terms;
  }

  void Objective() {
    if (values_.count("distance") > 0) return;
    if (hand_ < 0) {
      const std::vector<std::string> terms = Deviations();
      values_["deviation"] = terms.empty() ? Quoted("0") : QuotedTerms("-(", terms, " + ", ")");
    }
    for (int i = 0; hand_ >= 0 && i < 3; ++i) {
      values_[absl::StrCat("goal_", std::string(1, "xyz"[i]))] = Number(data_->site_xpos[3 * hand_ + i]);
    }
  }

  void Cost() {
    std::vector<std::string> range, speed;
    for (const Joint& joint : joints_) {
      if (joint.limited && !joint.name.empty()) {
        const double centre = (joint.low + joint.high) / 2, half = (joint.high - joint.low) / 2;
        if (half <= 0) continue;
        const std::string off = Less(joint.position, centre, kDraftError * joint.Width());
        range.push_back(absl::StrCat("abs(", off, ") / ", Number(half)));
      } else if (joint.scalar && !joint.name.empty()) {
        speed.push_back(absl::StrCat("abs(", joint.velocity, ")"));
      }
    }
    if (!range.empty()) {
      values_["inside"] = absl::StrCat(100 * kInside);
      values_["range"] = QuotedTerms("max(", range, ", ", absl::StrCat(") - ", kInside));
    } else if (!speed.empty()) {
      values_["speed"] = QuotedTerms("max(", speed, ", ", ") / 5 - 1");
    } else {
      values_["no cost"] = "";
    }
  }

  void Control() {
    for (int id = 0; id < model_.nu; ++id) {
      if (NameOf(model_, mjOBJ_ACTUATOR, id).empty()) {
        Nameless(mjOBJ_ACTUATOR, id);
        continue;
      }
      const std::string name = Quoted(NameOf(model_, mjOBJ_ACTUATOR, id));
      if (!finite_difference_ && !IsAffine(model_, id)) {
        Line("actuators", absl::StrCat("  # actuator: ", name,
                                       "  # its force is no affine function of the control, which the safe map needs"));
        continue;
      }
      const double low = model_.actuator_ctrlrange[2 * id], high = model_.actuator_ctrlrange[2 * id + 1];
      const bool ranged = model_.actuator_ctrllimited[id] != 0 && IsFinite(model_.actuator_ctrlrange + 2 * id);
      Line("actuators",
           absl::StrCat("  actuator: ", name, ranged ? absl::StrCat("  # ", Span(low, high, " to ")) : ""));
      if (ranged) continue;
      const ControlRange range = DefaultRange(id);
      Line("actuators", absl::StrCat("  range { actuator: ", name, " low: ", Span(range.low, range.high, " high: "),
                                     " }  # the model has none", range.why, "; edit it"));
    }
    if (finite_difference_) values_["differences"] = "";
  }

  struct ControlRange {
    double low = -1, high = 1;
    const char* why = "";
  };
  // For an actuator to which the model gives none.
  ControlRange DefaultRange(int id) const {
    const mjtNum gain = model_.actuator_gainprm[mjNGAIN * id];
    const int target = model_.actuator_trnid[2 * id];
    if (model_.actuator_dyntype[id] == mjDYN_MUSCLE) return {0, 1, ", this is a muscle's"};
    const bool integrates = model_.actuator_dyntype[id] == mjDYN_INTEGRATOR;
    if (integrates || model_.actuator_gaintype[id] != mjGAIN_FIXED || gain <= 0) return {};
    const mjtNum* const force = model_.actuator_forcerange + 2 * id;
    if (model_.actuator_forcelimited[id] != 0 && IsFinite(force) && model_.actuator_biastype[id] == mjBIAS_NONE) {
      return {force[0] / gain, force[1] / gain, ", these give the limits of its force"};
    }
    if (IsPositionServo(model_, id) && model_.actuator_trntype[id] == mjTRN_JOINT && joints_[target].limited) {
      const double gear = model_.actuator_gear[6 * id];
      const auto [low, high] = std::minmax({gear * joints_[target].low, gear * joints_[target].high});
      return {low, high, ", these are the limits of its joint"};
    }
    return {};
  }

  void Start() {
    if (keyframe_ >= 0) values_["keyframe"] = Quoted(NameOf(model_, mjOBJ_KEY, keyframe_));
    for (const Joint& joint : joints_) {
      if (!joint.scalar || joint.name.empty()) continue;
      const double at = joint.Start(data_->qpos[model_.jnt_qposadr[joint.id]]);
      const double half = kStartHalf * joint.Width();
      // A wheel that has turned often stays as the model has it.
      if (!CheckWithinLimits(model_, joint.id, at - half, at + half, "").ok()) continue;
      Line("starts",
           absl::StrCat("  joint { joint: ", Quoted(joint.name), " position ", Interval(at - half, at + half), " }"));
    }
    for (int body = 0; body < model_.nbody; ++body) {
      if (model_.body_mocapid[body] < 0 || NameOf(model_, mjOBJ_BODY, body).empty()) continue;
      const std::string name = Quoted(NameOf(model_, mjOBJ_BODY, body));
      Line("motions",
           absl::StrCat("# Moves the body ", name, ": motion { body: ", name, " speed: 0.2 x { low: -1 high: 1 } }"));
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
    std::vector<const Joint*> mine, others;
    std::set<std::string> numbers;  // what numbers of q and x are called
    bool nameless = false;          // one of mine
    for (const Joint& joint : joints_) {
      const bool in = all || trees.count(model_.body_rootid[model_.jnt_bodyid[joint.id]]) > 0;
      nameless |= in && joint.name.empty();
      if (joint.name.empty()) continue;
      (in ? mine : others).push_back(&joint);
      if (in) numbers.insert({joint.plain, joint.plain + "_velocity"});
      if (in && joint.scalar) sliced_.push_back(joint);
    }
    if (!nameless) {  // else the default: all joints
      for (const Joint* const joint : mine) Line("state", absl::StrCat("  joint: ", Quoted(joint->name)));
      for (const Joint* const joint : others) {
        std::string name = joint->plain;
        while (!numbers.insert(name).second) name = "joint_" + name;
        const std::string given = name == joint->plain ? "" : absl::StrCat(" name: ", Quoted(name));
        Line("state", absl::StrCat("  uncontrolled { joint: ", Quoted(joint->name), given, " }"));
      }
    }
    const auto limited = std::find_if(sliced_.begin(), sliced_.end(), [](const Joint& joint) { return joint.limited; });
    if (limited != sliced_.end()) values_["limited"] = Quoted(limited->name);
    if (limited != sliced_.end() || hand_ >= 0) values_["known"] = "";
  }

  void Axis(const std::string& axis, const std::string& of, double low, double high) {
    values_[axis] = absl::StrCat("of: ", Quoted(of), " low: ", Span(low, high, " high: "));
  }
  void PositionAxis(const std::string& axis, const Joint& joint) {
    const double reach = model_.jnt_type[joint.id] == mjJNT_HINGE ? M_PI : 1;
    Axis(axis, joint.plain, joint.limited ? joint.low : -reach, joint.limited ? joint.high : reach);
  }

  void Slice() {
    if (sliced_.empty()) return;
    const bool two = sliced_.size() > 1;
    values_["slice"] = Quoted(two ? "joints" : "phase");
    PositionAxis("x", sliced_[0]);
    if (two) PositionAxis("y", sliced_[1]);
    if (!two) Axis("y", sliced_[0].plain + "_velocity", -5, 5);
  }

  const mjModel& model_;
  MujocoData data_;
  Values values_;
  std::vector<Joint> joints_, sliced_;
  std::vector<int> actuators_;      // that the action may have
  bool finite_difference_ = false;  // none of them has a force that is an affine function of its control
  std::set<std::string> taken_ = {"time", "pi", "action", "before", "command", "goal_x", "goal_y", "goal_z"};
  int hand_ = -1, keyframe_ = -1;  // the last site that moves, the first keyframe with a name; -1: none
};

}  // namespace

absl::StatusOr<std::string> DraftTask(const mjModel& model, const std::string& name, const std::string& file,
                                      const std::vector<std::string>& named) {
  return Draft(model).Write(name, file, named);
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
