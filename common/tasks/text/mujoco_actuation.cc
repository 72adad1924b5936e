#include "common/tasks/text/mujoco_actuation.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tasks/text/mujoco_names.h"

namespace datacom::text {
namespace {

constexpr double kPeriodTolerance = 1e-6;  // relative: a period is written with fewer digits than a time step
constexpr double kMostSubsteps = 1e9;
constexpr double kFarBeyond = 10;  // times the largest limit of a joint: degrees instead of radians are 57 times

// A range or mode of an actuator that the action does not have would do nothing.
absl::Status CheckActs(const mjModel& model, const v1::Control& control, const std::string& glob,
                       const std::string& field) {
  ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, mjOBJ_ACTUATOR, glob, field));
  const auto& action = control.actuator();
  for (const int id : found) {
    const auto has = [&](const std::string& each) { return Matches(model, mjOBJ_ACTUATOR, each, id); };
    if (action.empty() || std::any_of(action.begin(), action.end(), has)) return absl::OkStatus();
  }
  return Wrong(field, absl::StrCat("\"", glob, "\" is no part of the action (control.actuator)"));
}

absl::Status CheckSettings(const mjModel& model, const v1::Control& control) {
  for (int i = 0; i < control.range_size(); ++i) {
    const std::string at = absl::StrCat("control.range[", i, "].actuator");
    RETURN_IF_ERROR(CheckActs(model, control, control.range(i).actuator(), at));
  }
  for (int i = 0; i < control.actuator_mode_size(); ++i) {
    const std::string at = absl::StrCat("control.actuator_mode[", i, "]");
    RETURN_IF_ERROR(CheckActs(model, control, control.actuator_mode(i).actuator(), at + ".actuator"));
    if (control.mode() != "acceleration") continue;
    return Wrong(at, "acceleration control is for all actuators of the action; choose another control.mode");
  }
  return absl::OkStatus();
}

// A position servo's range in degrees would be far beyond the limits of its joint.
absl::Status CheckTargets(const mjModel& model, int actuator, double low, double high) {
  const int joint = model.actuator_trnid[2 * actuator];
  if (!IsPositionServo(model, actuator) || model.actuator_trntype[actuator] != mjTRN_JOINT ||
      model.jnt_type[joint] != mjJNT_HINGE || model.jnt_limited[joint] == 0) {
    return absl::OkStatus();
  }
  const mjtNum* const limits = model.jnt_range + 2 * joint;
  const double most = std::max(std::abs(limits[0]), std::abs(limits[1])) * std::abs(model.actuator_gear[6 * actuator]);
  if (std::max(std::abs(low), std::abs(high)) <= kFarBeyond * most) return absl::OkStatus();
  return Wrong("control.range", absl::StrCat(low, " to ", high, " goes far beyond the limits of the joint of ",
                                             PlainName(model, mjOBJ_ACTUATOR, actuator), ", which are ", limits[0],
                                             " to ", limits[1], " rad"));
}

Actuation::Mode ModeNamed(const std::string& name) {
  return name == "velocity"       ? Actuation::Mode::kVelocity
         : name == "position"     ? Actuation::Mode::kPosition
         : name == "acceleration" ? Actuation::Mode::kAcceleration
                                  : Actuation::Mode::kTorque;
}

}  // namespace

bool HasLinearGain(const mjModel& model, int actuator) {
  const int gain = model.actuator_gaintype[actuator], bias = model.actuator_biastype[actuator];
#if mjVERSION_HEADER >= 300
  if (model.actuator_plugin[actuator] >= 0) return false;
#endif
#if mjVERSION_HEADER >= 4000000
  if (gain == mjGAIN_PID) return true;
#endif
  return (gain == mjGAIN_FIXED || gain == mjGAIN_AFFINE) && (bias == mjBIAS_NONE || bias == mjBIAS_AFFINE);
}

bool IsPositionServo(const mjModel& model, int actuator) {
  const mjtNum gain = model.actuator_gainprm[mjNGAIN * actuator];
  return gain > 0 && HasLinearGain(model, actuator) && model.actuator_dyntype[actuator] != mjDYN_INTEGRATOR &&
         model.actuator_biasprm[mjNBIAS * actuator + 1] == -gain;
}

bool IsAffine(const mjModel& model, int actuator) {
#if mjVERSION_HEADER >= 4000000
  if (model.actuator_delay[actuator] > 0) return false;
#endif
  return model.actuator_dyntype[actuator] == mjDYN_NONE && HasLinearGain(model, actuator);
}

absl::StatusOr<Actuation> Actuation::Make(const mjModel& model, const v1::Control& control) {
  Actuation made;
  made.accelerates_ = control.mode() == "acceleration";
  made.finite_difference_ = control.dynamics() == "finite_difference";
  made.refresh_ = control.refresh() == "nothing" ? Refresh::kNothing
                  : control.refresh() == "all"   ? Refresh::kAll
                                                 : Refresh::kKinematics;
  made.split_ = model.opt.integrator != mjINT_RK4 && made.refresh_ != Refresh::kNothing;
  if (made.accelerates_ && !made.split_) {
    return Wrong("control.mode",
                 "acceleration control needs another integrator than RK4 and refresh other than nothing");
  }
  RETURN_IF_ERROR(CheckSettings(model, control));
  for (int i = 0; i < control.actuator_size(); ++i) {
    RETURN_IF_ERROR(made.AddChannels(model, control, control.actuator(i), absl::StrCat("control.actuator[", i, "]")));
  }
  if (control.actuator_size() == 0) RETURN_IF_ERROR(made.AddChannels(model, control, "*", "control.actuator"));
  RETURN_IF_ERROR(made.SetForms(model));
  RETURN_IF_ERROR(made.SetPeriod(model, control));
  return made;
}

absl::Status Actuation::SetPeriod(const mjModel& model, const v1::Control& control) {
  const double step = model.opt.timestep;
  period_ = control.has_period() ? control.period() : step;
  substeps_ = static_cast<int>(std::min(std::round(period_ / step), kMostSubsteps));
  if (substeps_ >= 1 && std::abs(substeps_ * step - period_) <= kPeriodTolerance * period_) return absl::OkStatus();
  return Wrong("control.period", absl::StrCat(period_, " s is not a multiple of the model's time step, ", step, " s"));
}

absl::Status Actuation::AddChannels(const mjModel& model, const v1::Control& control, const std::string& glob,
                                    const std::string& field) {
  ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, mjOBJ_ACTUATOR, glob, field));
  for (const int id : found) {
    Channel channel;
    channel.name = PlainName(model, mjOBJ_ACTUATOR, id);
    channel.actuator = id;
    const std::string name = mj_id2name(&model, mjOBJ_ACTUATOR, id);
    if (std::any_of(channels_.begin(), channels_.end(), [id](const Channel& each) { return each.actuator == id; })) {
      return Wrong(field, absl::StrCat("actuator ", name, " is already part of the action"));
    }
    const mjtNum* const own = model.actuator_ctrlrange + 2 * id;
    const bool limited = model.actuator_ctrllimited[id] != 0;
    double low = own[0], high = own[1];
    bool ranged = limited && std::isfinite(high - low);
    for (int i = 0; i < control.range_size(); ++i) {
      const v1::ActuatorRange& range = control.range(i);
      if (!Matches(model, mjOBJ_ACTUATOR, range.actuator(), id)) continue;
      const bool beyond = limited && !accelerates_ && (range.low() < own[0] || range.high() > own[1]);
      if (beyond) {
        return Wrong(absl::StrCat("control.range[", i, "]"),
                     absl::StrCat("goes beyond the control range of actuator ", name, ", which is ", own[0], " to ",
                                  own[1], " in the model"));
      }
      low = range.low(), high = range.high(), ranged = true;
    }
    if (!ranged) {
      return Wrong("control.range",
                   absl::StrCat("actuator ", name, " has no control range in the model; add range { actuator: \"", name,
                                "\" low: ... high: ... }"));
    }
    if (!limited && !accelerates_) RETURN_IF_ERROR(CheckTargets(model, id, low, high));
    channel.centre = (low + high) / 2;
    channel.half = (high - low) / 2;
    RETURN_IF_ERROR(SetMode(model, control, &channel));
    channels_.push_back(channel);
  }
  return absl::OkStatus();
}

absl::Status Actuation::SetMode(const mjModel& model, const v1::Control& control, Channel* channel) const {
  const int id = channel->actuator;
  channel->mode = ModeNamed(control.mode());
  for (const v1::ActuatorMode& each : control.actuator_mode()) {
    if (Matches(model, mjOBJ_ACTUATOR, each.actuator(), id)) channel->mode = ModeNamed(each.mode());
  }
  if (channel->mode == Mode::kTorque) return absl::OkStatus();
  const int joint = model.actuator_trnid[2 * id], type = joint < 0 ? -1 : model.jnt_type[joint];
  const bool on_joint = model.actuator_trntype[id] == mjTRN_JOINT || model.actuator_trntype[id] == mjTRN_JOINTINPARENT;
  if (!on_joint || (type != mjJNT_SLIDE && type != mjJNT_HINGE)) {
    return Wrong("control.mode",
                 absl::StrCat("velocity, position and acceleration control need actuators on slide or hinge joints; ",
                              channel->name, " is none"));
  }
  channel->joint = joint;
  channel->dof = model.jnt_dofadr[joint];
  for (const Channel& other : channels_) {
    if (other.dof != channel->dof) continue;
    return Wrong("control.actuator",
                 absl::StrCat(other.name, " and ", channel->name,
                              " drive the same joint; velocity, position and acceleration control need one actuator "
                              "for each"));
  }
  if (!channel->servo()) return absl::OkStatus();
  channel->gear = model.actuator_gear[6 * id];
  return CheckServo(model, *channel);
}

// A velocity servo's force is kv * (control - velocity), a position servo's kp * (control - position) - kv * velocity.
// A delay between the control and this force (an activation) is for finite differences.
absl::Status Actuation::CheckServo(const mjModel& model, const Channel& channel) const {
  const int id = channel.actuator;
  const mjtNum gain = model.actuator_gainprm[mjNGAIN * id], *const bias = model.actuator_biasprm + mjNBIAS * id;
  const bool velocity = channel.mode == Mode::kVelocity;
  const bool linear = gain > 0 && channel.gear != 0 && model.actuator_gaintype[id] == mjGAIN_FIXED &&
                      model.actuator_biastype[id] == mjBIAS_AFFINE && bias[0] == 0;
  const bool law = velocity ? bias[1] == 0 && bias[2] == -gain : bias[1] == -gain && bias[2] <= 0;
  const std::string kind = velocity ? "velocity" : "position";
  if (!linear || !law) {
    return Wrong("control.mode",
                 absl::StrCat("actuator ", channel.name, " is no ", kind, " servo: its force is not ",
                              velocity ? "kv * (control - velocity)" : "kp * (control - position) - kv * velocity",
                              ". Write mode: \"torque\", or for this actuator alone actuator_mode { actuator: \"",
                              mj_id2name(&model, mjOBJ_ACTUATOR, id), "\" mode: \"torque\" }; or make it a <", kind,
                              "> in the model"));
  }
  if (finite_difference_) return absl::OkStatus();
  if (!IsAffine(model, id)) {
    return Wrong("control.mode", absl::StrCat("the servo ", channel.name,
                                              " follows its control with a delay (an activation), which only "
                                              "dynamics: \"finite_difference\" sees"));
  }
  return absl::OkStatus();
}

absl::Status Actuation::SetForms(const mjModel& model) {
  const auto all = [this](const auto& has) { return std::all_of(channels_.begin(), channels_.end(), has); };
  first_order_ = all([](const Channel& channel) { return channel.servo(); });
  closed_form_ = !finite_difference_ && all([](const Channel& channel) { return channel.mode != Mode::kTorque; });
  if (finite_difference_) return absl::OkStatus();
  for (const Channel& channel : channels_) {
    const bool turns = channel.mode == Mode::kPosition && model.jnt_type[channel.joint] == mjJNT_HINGE &&
                       model.jnt_limited[channel.joint] == 0;
    if (!closed_form_ || !turns) continue;
    return Wrong("control.mode", absl::StrCat("the joint of ", channel.name,
                                              " turns without limits, so its angle in q does not say how far the servo "
                                              "has to turn; give it limits, or write dynamics: \"finite_difference\""));
  }
  for (const Channel& channel : channels_) {
    if (channel.mode != Mode::kTorque || IsAffine(model, channel.actuator)) continue;
    without_map_ = absl::StrCat("the force of actuator ", channel.name,
                                " is no affine function of its control (activation, delay, muscle or user dynamics); "
                                "write dynamics: \"finite_difference\" in `control`");
    break;
  }
  return absl::OkStatus();
}

void Actuation::Apply(const double* action, double* clipped, mjData* data) const {
  for (size_t i = 0; i < channels_.size(); ++i) {
    const Channel& channel = channels_[i];
    // Written as comparisons so that a NaN reaches the simulator.
    clipped[i] = action[i] < -1.0 ? -1.0 : action[i] > 1.0 ? 1.0 : action[i];
    const double control = channel.centre + channel.half * clipped[i];
    data->ctrl[channel.actuator] = accelerates_ ? control - control : control;  // 0, or NaN
  }
}

void Actuation::Advance(const mjModel& model, const double* clipped, mjData* data) const {
  if (!split_) {
    for (int i = 0; i < substeps_; ++i) mj_step(&model, data);
    Update(model, data);
    return;
  }
  for (int i = 0; i < substeps_; ++i) {
    if (accelerates_) Accelerate(model, clipped, data);
    mj_step2(&model, data);
    mj_step1(&model, data);
  }
  if (refresh_ == Refresh::kAll) mj_forward(&model, data);
}

// Applies the forces that give the commanded accelerations while all other joints keep their velocities.
void Actuation::Accelerate(const mjModel& model, const double* clipped, mjData* data) const {
  mj_fwdActuation(&model, data);
  mju_zero(data->qacc, model.nv);  // computed again by the step
  for (size_t i = 0; i < channels_.size(); ++i) {
    data->qacc[channels_[i].dof] = channels_[i].centre + channels_[i].half * clipped[i];
  }
  mjtNum* const force = data->qfrc_applied;
  mj_mulM(&model, data, force, data->qacc);
  for (int dof = 0; dof < model.nv; ++dof) {
    const bool commanded =
        std::any_of(channels_.begin(), channels_.end(), [dof](const Channel& c) { return c.dof == dof; });
    force[dof] = commanded ? force[dof] + data->qfrc_bias[dof] - data->qfrc_passive[dof] - data->qfrc_actuator[dof] : 0;
  }
}

void Actuation::Begin(const mjModel& model, mjData* data) const {
  refresh_ == Refresh::kAll ? mj_forward(&model, data) : mj_step1(&model, data);
}

void Actuation::Simulate(const mjModel& model, const double* clipped, int steps, mjData* data) const {
  for (int i = 0; i < steps; ++i) {
    if (!split_) {
      mj_step(&model, data);
      continue;
    }
    mj_step1(&model, data);
    if (accelerates_) Accelerate(model, clipped, data);
    mj_step2(&model, data);
  }
}

void Actuation::Update(const mjModel& model, mjData* data) const {
  if (refresh_ == Refresh::kKinematics) mj_step1(&model, data);
  if (refresh_ == Refresh::kAll) mj_forward(&model, data);
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
