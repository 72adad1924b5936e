#include "common/tasks/text/mujoco_known_columns.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tasks/text/mujoco_names.h"

namespace datacom::text {
namespace {

// The places of the scalar joint's position and velocity in q; -1 if the joint is no slide or hinge of q.
struct Entries {
  Entries(const StateJoints& joints, int joint) {
    int positions = 0, velocities = 0;
    for (size_t i = 0; i < joints.joints.size(); ++i) {
      const JointSize size(joints.kinds[i]);
      if (joints.joints[i] == joint && !size.turns()) position = positions, velocity = velocities;
      positions += size.positions;
      velocities += size.velocities;
    }
    if (velocity >= 0) velocity += positions;
  }
  int position = -1, velocity = -1;
};

// Rows sign * q[entry] <= bound.
void AddLimits(const std::string& group, const std::string& joint, int entry, double low, double high, double gain,
               std::vector<v1::KnownRow>* rows) {
  for (const double sign : {1.0, -1.0}) {
    v1::KnownRow& row = rows->emplace_back();
    row.set_name(absl::StrCat(group, "_", joint, sign > 0 ? "_upper" : "_lower"));
    row.set_group(group);
    row.set_entry(static_cast<uint32_t>(entry));
    row.set_sign(sign);
    row.set_bound(sign > 0 ? high : -low);
    row.set_viability_gain(gain);
  }
}

absl::Status AddJoints(const mjModel& model, const v1::KnownConstraint& known, const std::string& field,
                       const StateJoints& joints, bool first_order, std::vector<v1::KnownRow>* rows) {
  const bool position = known.has_joint_position();
  const std::string at = field + (position ? ".joint_position" : ".joint_velocity");
  if (!position && !known.has_limit()) return Wrong(field + ".limit", "must be set");
  if (!position && first_order) {
    return Wrong(at, "velocities are no part of q with velocity control or position control");
  }
  ASSIGN_OR_RETURN(const std::vector<int> found,
                   Match(model, mjOBJ_JOINT, position ? known.joint_position() : known.joint_velocity(), at));
  for (const int joint : found) {
    const std::string name = PlainName(model, mjOBJ_JOINT, joint);
    const Entries entries(joints, joint);
    if (entries.position < 0) return Wrong(at, absl::StrCat("joint ", name, " is no slide or hinge of q"));
    const mjtNum* const range = model.jnt_range + 2 * joint;
    if (position && !known.equality() && (model.jnt_limited[joint] == 0 || !std::isfinite(range[1] - range[0])))
      return Wrong(at, absl::StrCat("joint ", name, " has no limits"));
    if (known.equality()) {
      RETURN_IF_ERROR(CheckWithinLimits(model, joint, known.value(), known.value(), field + ".value"));
      v1::KnownRow& row = rows->emplace_back();
      row.set_name(absl::StrCat(known.name(), "_", name));
      row.set_group(known.name());
      row.set_entry(static_cast<uint32_t>(entries.position));
      row.set_sign(1);
      row.set_bound(known.value());
      row.set_viability_gain(first_order ? 0 : known.viability_gain());
      row.set_equality(true);
      continue;
    }
    double low = -known.share() * known.limit(), high = known.share() * known.limit();
    if (position) {
      const double centre = (range[0] + range[1]) / 2, half = known.share() * (range[1] - range[0]) / 2;
      low = centre - half, high = centre + half;
    }
    low += known.margin(), high -= known.margin();
    if (low > high) return Wrong(field + ".margin", absl::StrCat("leaves joint ", name, " no range"));
    AddLimits(known.name(), name, position ? entries.position : entries.velocity, low, high,
              position && !first_order ? known.viability_gain() : 0, rows);
  }
  return absl::OkStatus();
}

absl::Status AddGeometry(const mjModel& model, const v1::KnownConstraint& known, const std::string& field,
                         const StateJoints& joints, bool first_order, KnownOfTask* made) {
  ASSIGN_OR_RETURN(std::vector<GeometryRow> geometry, MakeGeometryRows(model, known, field, joints));
  for (GeometryRow& each : geometry) {
    each.margin = known.margin();
    v1::KnownRow& row = made->rows.emplace_back();
    row.set_name(each.name);
    row.set_group(known.name());
    row.set_viability_gain(first_order ? 0 : known.viability_gain());
    row.set_evaluated(true);
    if (known.equality()) row.set_equality(true);
    made->geometry.push_back(std::move(each));
  }
  return absl::OkStatus();
}

// Fields that do not go together.
absl::Status CheckKind(const v1::KnownConstraint& known, const std::string& field) {
  if (known.has_joint_position() + known.has_joint_velocity() + known.has_site() + known.has_distance() != 1) {
    return Wrong(field, "needs exactly one of joint_position, joint_velocity, site and distance");
  }
  if (!known.equality()) return RefuseFields(known, {"value"}, field, "is only for joint_position with equality");
  RETURN_IF_ERROR(RefuseFields(known, {"share", "margin"}, field, "is only for inequalities"));
  if (known.has_joint_position() && !known.has_value()) {
    return Wrong(field + ".value", "must be set: the position that the equality keeps");
  }
  const char* const wrong = known.has_joint_velocity() ? "joint_velocity"
                            : known.has_sphere()       ? "sphere"
                            : known.has_box()          ? "box"
                                                       : nullptr;
  if (wrong == nullptr) return absl::OkStatus();
  return Wrong(field + ".equality",
               absl::StrCat("a ", wrong, " cannot be an equality; joint_position, half_space and distance can"));
}

}  // namespace

absl::StatusOr<KnownOfTask> KnownOfTask::Make(const mjModel& model, const v1::TaskDefinition& definition,
                                              const StateJoints& joints, bool first_order) {
  KnownOfTask made;
  std::set<std::string> names;
  for (int i = 0; i < definition.known_size(); ++i) names.insert(definition.known(i).name());
  for (int i = 0; i < definition.known_size(); ++i) {
    const v1::KnownConstraint& known = definition.known(i);
    const std::string field = absl::StrCat("known[", i, "]");
    const size_t first = made.rows.size();
    RETURN_IF_ERROR(CheckKind(known, field));
    if (known.has_site() || known.has_distance()) {
      RETURN_IF_ERROR(AddGeometry(model, known, field, joints, first_order, &made));
    } else {
      RETURN_IF_ERROR(AddJoints(model, known, field, joints, first_order, &made.rows));
    }
    for (size_t row = first; row < made.rows.size(); ++row) {
      if (names.insert(made.rows[row].name()).second) continue;
      return Wrong(field + ".name", absl::StrCat("the row ", made.rows[row].name(),
                                                 " has the name of another row or group; choose another name"));
    }
  }
  return made;
}

namespace {

constexpr double kStep = 1e-3;  // s

}  // namespace

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
