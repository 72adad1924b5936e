#include "common/tasks/text/mujoco_differences.h"

#include <utility>

namespace datacom::text {
namespace {

// Of the action, whose range is [-1, 1]. Large, so that f + G u is near the motion for all actions also where it is not
// smooth: a contact begins, a force is clamped.
constexpr double kStep = 0.5;

}  // namespace

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
