#include "common/tasks/text/mujoco_known_columns.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace datacom::text {
namespace {

constexpr double kStep = 1e-3;  // s

}  // namespace

absl::StatusOr<KnownColumns> KnownColumns::Make(MujocoModel model, std::vector<GeometryRow> rows,
                                                const StateJoints& joints, bool second_order) {
  MujocoData own;
  if (!rows.empty()) {
    ASSIGN_OR_RETURN(own, MakeMujocoData(*model));
  }
  return KnownColumns(std::move(model), std::move(own), std::move(rows), joints, second_order);
}

KnownColumns::KnownColumns(MujocoModel model, MujocoData own, std::vector<GeometryRow> rows, const StateJoints& joints,
                           bool second_order)
    : model_(std::move(model)),
      own_(std::move(own)),
      rows_(std::move(rows)),
      dofs_(joints.dofs),
      second_order_(second_order),
      positions_(model_->nq),
      mocap_(3 * model_->nmocap),
      mocap_before_(mocap_.size()),
      velocity_(model_->nv),
      rest_velocity_(model_->nv),
      mocap_velocity_(mocap_.size()),
      jacobians_(static_cast<size_t>(6) * model_->nv),
      k_(rows_.size()),
      later_(rows_.size()),
      before_(rows_.size()),
      first_(rows_.size()),
      second_(rows_.size()) {}

bool KnownColumns::Write(const mjData& data, double dt, double* out) {
  if (rows_.empty()) return true;
  std::copy_n(data.qpos, positions_.size(), positions_.begin());
  std::copy_n(data.mocap_pos, mocap_.size(), mocap_.begin());
  mju_copy(own_->mocap_quat, data.mocap_quat, 4 * model_->nmocap);
  std::copy_n(data.qvel, rest_velocity_.size(), rest_velocity_.begin());
  for (const int dof : dofs_) velocity_[dof] = std::exchange(rest_velocity_[dof], 0);
  for (size_t i = 0; i < mocap_.size(); ++i) mocap_velocity_[i] = dt > 0 ? (mocap_[i] - mocap_before_[i]) / dt : 0;
  mocap_before_ = mocap_;
  return RunMujoco(*own_, [&] { Evaluate(out); });
}

bool KnownColumns::OthersMove() const {
  const auto moves = [](mjtNum velocity) { return velocity != 0; };
  return std::any_of(rest_velocity_.begin(), rest_velocity_.end(), moves) ||
         std::any_of(mocap_velocity_.begin(), mocap_velocity_.end(), moves);
}

void KnownColumns::Evaluate(double* out) {
  const size_t rate_at = 1 + dofs_.size(), width = rate_at + (second_order_ ? 3 : 1);
  std::fill_n(out, rows_.size() * width, 0.0);
  Move(0, 0);
  mj_comPos(model_.get(), own_.get());
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Measured measured = Measure(*model_, own_.get(), rows_[i]);
    k_[i] = out[i * width] = measured.k;
    WriteGradient(rows_[i], measured, out + i * width + 1);
  }
  const auto at = [&](size_t row, size_t number) -> double& { return out[row * width + rate_at + number]; };
  if (second_order_) {
    Differentiate(1, 0);
    for (size_t i = 0; i < rows_.size(); ++i) at(i, 1) = second_[i];
  }
  if (!OthersMove()) return;
  Differentiate(0, 1);
  for (size_t i = 0; i < rows_.size(); ++i) {
    at(i, 0) = first_[i];
    if (second_order_) at(i, 2) = second_[i];
  }
  if (!second_order_) return;
  // Half of what both motions together add: the mixed second derivative, a part of both accelerations.
  Differentiate(1, 1);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double mixed = (second_[i] - at(i, 1) - at(i, 2)) / 2;
    at(i, 1) += mixed;
    at(i, 2) += mixed;
  }
}

void KnownColumns::WriteGradient(const GeometryRow& row, const Measured& measured, double* out) {
  const int nv = static_cast<int>(model_->nv);
  mjtNum* const jacobian[2] = {jacobians_.data(), jacobians_.data() + 3 * nv};
  for (int i = 0; i < 2; ++i) {
    mj_jac(model_.get(), own_.get(), jacobian[i], nullptr, measured.points[i], row.bodies[i]);
  }
  for (size_t j = 0; j < dofs_.size(); ++j) {
    for (int axis = 0; axis < 3; ++axis) {
      const int entry = axis * nv + dofs_[j];
      out[j] += measured.gradient[axis] * (jacobian[0][entry] - jacobian[1][entry]);
    }
  }
}

void KnownColumns::Move(double own, double others) {
  mju_copy(own_->qpos, positions_.data(), model_->nq);
  mju_copy(own_->mocap_pos, mocap_.data(), 3 * model_->nmocap);
  if (own != 0) mj_integratePos(model_.get(), own_->qpos, velocity_.data(), own);
  if (others != 0) {
    mj_integratePos(model_.get(), own_->qpos, rest_velocity_.data(), others);
    mju_addToScl(own_->mocap_pos, mocap_velocity_.data(), others, 3 * model_->nmocap);
  }
  mj_kinematics(model_.get(), own_.get());
}

void KnownColumns::EvaluateAt(double own, double others, std::vector<double>* k) {
  Move(own, others);
  for (size_t i = 0; i < rows_.size(); ++i) (*k)[i] = Measure(*model_, own_.get(), rows_[i]).k;
}

void KnownColumns::Differentiate(double own, double others) {
  EvaluateAt(own * kStep, others * kStep, &later_);
  EvaluateAt(-own * kStep, -others * kStep, &before_);
  for (size_t i = 0; i < rows_.size(); ++i) {
    first_[i] = (later_[i] - before_[i]) / (2 * kStep);
    second_[i] = (later_[i] - 2 * k_[i] + before_[i]) / (kStep * kStep);
  }
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
