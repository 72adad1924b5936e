#include "common/tasks/text/mujoco_terms.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tasks/text/mujoco_names.h"

namespace datacom::text {
namespace {

using Kind = v1::ConstraintJoint;

Kind::Kind KindOf(const mjModel& model, int joint) {
  switch (model.jnt_type[joint]) {
    case mjJNT_FREE:
      return Kind::FREE;
    case mjJNT_BALL:
      return Kind::BALL;
    case mjJNT_HINGE:
      return model.jnt_limited[joint] != 0 ? Kind::SCALAR : Kind::WRAPPED;
    default:
      return Kind::SCALAR;
  }
}

// Of the action, whose range is [-1, 1]. Large, so that f + G u is near the motion for all actions also where it is not
// smooth: a contact begins, a force is clamped.
constexpr double kStep = 0.5;

// Adds the part of the passive forces that takes gravity away: without springs, damping and fluid it is still there.
void AddCompensation([[maybe_unused]] const mjModel& model, [[maybe_unused]] const mjData& data,
                     [[maybe_unused]] mjtNum* force) {
#if mjVERSION_HEADER >= 314
  for (int dof = 0; dof < model.nv; ++dof) {
    const bool passive = model.jnt_actgravcomp[model.dof_jntid[dof]] == 0;  // else it is an actuators' force
    if (passive && data.qfrc_gravcomp[dof] != 0) force[dof] += data.qfrc_gravcomp[dof];  // keeps -0
  }
#endif
}

using Suffixes = std::initializer_list<const char*>;

// The names of the joints' numbers: of each joint its name and `what`, followed by the suffixes of its kind.
std::vector<std::string> NumberNames(const StateJoints& state, const mjModel& model, const std::string& what,
                                     Suffixes free, Suffixes ball) {
  const Suffixes scalar = {""};
  std::vector<std::string> names;
  for (size_t i = 0; i < state.joints.size(); ++i) {
    const std::string name = PlainName(model, mjOBJ_JOINT, state.joints[i]) + what;
    const Suffixes& suffixes = state.kinds[i] == Kind::FREE ? free : state.kinds[i] == Kind::BALL ? ball : scalar;
    for (const char* suffix : suffixes) names.push_back(absl::StrCat(name, suffix));
  }
  return names;
}

}  // namespace

absl::StatusOr<StateJoints> StateJoints::Make(const mjModel& model, const v1::ConstraintState& state) {
  StateJoints made;
  for (int i = 0; i < state.joint_size(); ++i) {
    const std::string field = absl::StrCat("constraint_state.joint[", i, "]");
    ASSIGN_OR_RETURN(const std::vector<int> found, Match(model, mjOBJ_JOINT, state.joint(i), field));
    for (const int joint : found) {
      if (std::find(made.joints.begin(), made.joints.end(), joint) != made.joints.end()) {
        return Wrong(field, absl::StrCat("joint ", PlainName(model, mjOBJ_JOINT, joint), " is named twice"));
      }
      made.joints.push_back(joint);
    }
  }
  for (int joint = 0; state.joint_size() == 0 && joint < model.njnt; ++joint) made.joints.push_back(joint);
  if (made.joints.empty()) return Wrong("constraint_state.joint", "the model has no joint");
  for (const int joint : made.joints) {
    made.kinds.push_back(KindOf(model, joint));
    for (int i = 0; i < JointSize(made.kinds.back()).velocities; ++i) made.dofs.push_back(model.jnt_dofadr[joint] + i);
  }
  return made;
}

std::vector<std::string> StateJoints::PositionNames(const mjModel& model) const {
  return NumberNames(*this, model, "", {".x", ".y", ".z", ".qw", ".qx", ".qy", ".qz"}, {".w", ".x", ".y", ".z"});
}

std::vector<std::string> StateJoints::VelocityNames(const mjModel& model) const {
  return NumberNames(*this, model, "_velocity", {".x", ".y", ".z", ".wx", ".wy", ".wz"}, {".x", ".y", ".z"});
}

MujocoModel WithoutConstraints(const mjModel& model) {
  mjModel* const copy = mj_copyModel(nullptr, &model);
  copy->opt.disableflags |= mjDSBL_CONSTRAINT | mjDSBL_CONTACT;
  std::fill_n(copy->actuator_ctrllimited, copy->nu, 0);
  std::fill_n(copy->actuator_forcelimited, copy->nu, 0);
#if mjVERSION_HEADER >= 300
  std::fill_n(copy->jnt_actfrclimited, copy->njnt, 0);
#endif
#if mjVERSION_HEADER >= 331
  std::fill_n(copy->tendon_actfrclimited, copy->ntendon, 0);
#endif
  return MujocoModel(copy, &mj_deleteModel);
}

Terms::Terms(MujocoModel unconstrained, MujocoData own, const StateJoints& joints, const Actuation& actuation,
             const v1::ConstraintState& state)
    : unconstrained_(std::move(unconstrained)),
      own_(std::move(own)),
      joints_(joints),
      channels_(actuation.channels()),
      positions_only_(actuation.first_order()),
      passive_(state.passive_forces()),
      gain_(state.actuator_gain()),
      period_(actuation.period()),
      force_((1 + channels_.size()) * unconstrained_->nv),
      acceleration_(force_.size()) {
  for (size_t i = 0; i < channels_.size(); ++i) {
    if (channels_[i].servo()) servos_.push_back(static_cast<int>(i));
  }
  pushed_.resize(servos_.size() * unconstrained_->nv);
  answer_.resize(servos_.size() * servos_.size());
  missing_.resize(servos_.size());
}

void Terms::WriteState(const mjModel& model, const mjData& data, double* out) const {
  for (size_t i = 0; i < joints_.joints.size(); ++i) {
    const mjtNum* position = data.qpos + model.jnt_qposadr[joints_.joints[i]];
    const Kind::Kind kind = joints_.kinds[i];
    if (kind == Kind::WRAPPED) {
      *out++ = std::atan2(std::sin(*position), std::cos(*position));
    } else {
      out = std::copy_n(position, JointSize(kind).positions, out);
    }
  }
  if (positions_only_) return;
  for (const int dof : joints_.dofs) *out++ = data.qvel[dof];
}

bool Terms::Write(const mjModel& model, mjData* data, bool fresh, double* out) {
  if (fresh) return RunMujoco(*data, [&] { Solve(data, out); });
  CopyState(model, *data, own_.get());
  const bool computed = RunMujoco(*own_, [&] {
    mj_fwdPosition(unconstrained_.get(), own_.get());
    mj_fwdVelocity(unconstrained_.get(), own_.get());
    Solve(own_.get(), out);
  });
  if (!computed) GuardMujoco([&] { mj_resetData(unconstrained_.get(), own_.get()); }).IgnoreError();
  return computed;
}

void Terms::Solve(mjData* data, double* out) {
  const mjModel& model = *unconstrained_;
  const int nv = model.nv, n = static_cast<int>(channels_.size());
  const auto forces = [&] { mj_fwdActuation(&model, data); };
  for (const Actuation::Channel& channel : channels_) data->ctrl[channel.actuator] = channel.centre;
  forces();
  double* const base = force_.data();
  mju_copy(base, data->qfrc_actuator, nv);
  for (int i = 0; i < n; ++i) {
    const Actuation::Channel& channel = channels_[i];
    data->ctrl[channel.actuator] = channel.centre + channel.half;
    forces();
    mju_sub(base + (1 + i) * nv, data->qfrc_actuator, base, nv);
    data->ctrl[channel.actuator] = channel.centre;
  }
  mju_subFrom(base, data->qfrc_bias, nv);
  if (passive_) {
    mju_addTo(base, data->qfrc_passive, nv);
  } else {
    AddCompensation(model, *data, base);
  }
  mj_solveM(&model, data, acceleration_.data(), force_.data(), 1 + n);
  if (!servos_.empty()) HoldServos(data);
  for (const int dof : joints_.dofs) *out++ = acceleration_[dof];
  for (const int dof : joints_.dofs) {
    for (int i = 0; i < n; ++i) *out++ = gain_ * acceleration_[(1 + i) * nv + dof];
  }
}

// Adds to each acceleration the one by the forces at the servos' joints that give these joints the commanded one.
void Terms::HoldServos(mjData* data) {
  const mjModel& model = *unconstrained_;
  const int nv = model.nv, n = static_cast<int>(channels_.size()), s = static_cast<int>(servos_.size());
  const auto dof = [this](int servo) { return channels_[servos_[servo]].dof; };
  std::fill_n(force_.begin(), s * nv, 0.0);  // at least as long: every servo is a channel
  for (int i = 0; i < s; ++i) force_[i * nv + dof(i)] = 1;
  mj_solveM(&model, data, pushed_.data(), force_.data(), s);
  for (int i = 0; i < s; ++i) {
    for (int j = 0; j < s; ++j) answer_[i * s + j] = pushed_[j * nv + dof(i)];
  }
  mju_cholFactor(answer_.data(), s, 0);
  for (int column = 0; column <= n; ++column) {
    double* const acceleration = acceleration_.data() + column * nv;
    for (int i = 0; i < s; ++i) {
      const Actuation::Channel& servo = channels_[servos_[i]];
      const bool position = servo.mode == Actuation::Mode::kPosition, own = column == 1 + servos_[i];
      const double command = (column == 0 ? servo.centre : own ? servo.half : 0) / servo.gear;
      double target = command;
      if (position) target = (command - (column == 0 ? data->qpos[model.jnt_qposadr[servo.joint]] : 0)) / period_;
      missing_[i] = (target - (column == 0 ? data->qvel[servo.dof] : 0)) / period_ - acceleration[servo.dof];
    }
    mju_cholSolve(missing_.data(), answer_.data(), missing_.data(), s);
    for (int i = 0; i < s; ++i) mju_addToScl(acceleration, pushed_.data() + i * nv, missing_[i], nv);
  }
}

Differences::Differences(MujocoModel model, MujocoData own, const StateJoints& joints, const Actuation& actuation,
                         double actuator_gain)
    : model_(std::move(model)),
      own_(std::move(own)),
      actuation_(&actuation),
      gain_(actuator_gain),
      action_(actuation.channels().size()),
      clipped_(action_.size()) {
  addresses_ = joints.dofs;
  for (size_t i = 0; actuation.first_order() && i < joints.joints.size(); ++i) {  // one number each
    addresses_[i] = model_->jnt_qposadr[joints.joints[i]];
  }
  for (std::vector<double>* each : {&before_, &free_, &pushed_}) each->resize(addresses_.size());
#if mjVERSION_HEADER >= 300
  state_.resize(mj_stateSize(model_.get(), mjSTATE_INTEGRATION));
#endif
}

bool Differences::Write(const mjData& data, double* out) {
  const size_t v = addresses_.size(), n = action_.size();
  const double period = actuation_->period();
  const bool played = RunMujoco(*own_, [&] {
    Take(data);
    Read(&before_);
    Play(&free_);
    for (size_t row = 0; row < v; ++row) out[row] = (free_[row] - before_[row]) / period;
    for (size_t i = 0; i < n; ++i) {
      action_[i] = kStep;
      Take(data);
      Play(&pushed_);
      action_[i] = 0;
      for (size_t row = 0; row < v; ++row) {
        out[v + row * n + i] = gain_ * (pushed_[row] - free_[row]) / (kStep * period);
      }
    }
  });
  if (!played) {
    action_.assign(n, 0);
    GuardMujoco([&] { mj_resetData(model_.get(), own_.get()); }).IgnoreError();
  }
  return played;
}

void Differences::Take(const mjData& data) {
#if mjVERSION_HEADER >= 300
  mj_getState(model_.get(), &data, state_.data(), mjSTATE_INTEGRATION);
  mj_setState(model_.get(), own_.get(), state_.data(), mjSTATE_INTEGRATION);
#else
  const mjModel& model = *model_;
  own_->time = data.time;
  CopyState(model, data, own_.get());
  mju_copy(own_->qacc_warmstart, data.qacc_warmstart, model.nv);
  mju_copy(own_->qfrc_applied, data.qfrc_applied, model.nv);
  mju_copy(own_->xfrc_applied, data.xfrc_applied, 6 * model.nbody);
  mju_copy(own_->userdata, data.userdata, model.nuserdata);
#endif
}

void Differences::Play(std::vector<double>* reached) {
  actuation_->Apply(action_.data(), clipped_.data(), own_.get());
  actuation_->Simulate(*model_, clipped_.data(), actuation_->substeps(), own_.get());
  Read(reached);
}

void Differences::Read(std::vector<double>* numbers) const {
  const mjtNum* const from = actuation_->first_order() ? own_->qpos : own_->qvel;
  for (size_t i = 0; i < addresses_.size(); ++i) (*numbers)[i] = from[addresses_[i]];
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
