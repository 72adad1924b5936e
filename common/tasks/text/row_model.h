// The static side of a task that is a text file: specification, slices, and a control-affine model that reads its terms
// from the row. Needs no MuJoCo.
//
// An observation of such a task is [policy's observation | model columns]. The simulated side evaluates the model
// columns in float64; rows hold them as float32:
//   q, x, x_dot
//   then, unless f and G have closed forms or do not hold (ResolvedTask.without_map), the rates of q's velocities
//   (where q has only positions: of these), that is
//                                    f, and their derivatives by the actions, [velocities, action] row-major, that is G
//   then, if the task has several costs, the cost of each
//   then each quantity that the task logs
//   then, for each known row on a site or a distance (KnownConstraintsOut says what the numbers are)
//                                    k, its gradient by the velocities of q [velocities], rate, and, unless q has only
//                                    positions, own_acceleration and acceleration
// Pure functions; the model is immutable and thread-safe.
#ifndef DATACOM_COMMON_TASKS_TEXT_ROW_MODEL_H_
#define DATACOM_COMMON_TASKS_TEXT_ROW_MODEL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/safety/control_affine.h"
#include "common/safety/known_constraints.h"
#include "common/tasks/task.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace datacom::text {

// The numbers of a joint's position and velocity, and how many of its positions are integrals of velocities.
struct JointSize {
  explicit JointSize(v1::ConstraintJoint::Kind kind) {
    if (kind == v1::ConstraintJoint::FREE) positions = 7, velocities = 6, linear = 3;
    if (kind == v1::ConstraintJoint::BALL) positions = 4, velocities = 3, linear = 0;
  }
  bool turns() const { return positions > velocities; }  // the others are a quaternion
  int positions = 1, velocities = 1, linear = 1;
};

// Where the parts of an observation begin.
struct RowLayout {
  static RowLayout Of(const v1::TextTask& task);
  // The entry of q that is the derivative of the position at `entry`; -1 if there is none: quaternions, velocities, and
  // all positions where q has only these.
  int VelocityOf(int entry) const;
  // Where the numbers of q begin that the action changes directly.
  int driven_at() const { return first_order ? 0 : positions; }

  bool first_order = false;  // q has only positions: velocity and position control
  bool evaluated = true;     // f and G are columns; else they have closed forms, or there are none
  std::vector<v1::ConstraintJoint::Kind> joints;
  int action = 0;
  int positions = 0;   // numbers of q that are positions (a quaternion counts four)
  int velocities = 0;  // degrees of freedom of q
  int q = 0;           // positions, and velocities unless first_order
  int x = 0;
  int costs = 0;  // 0 unless there are several
  int logs = 0;
  int known = 0;        // rows that the simulator evaluates
  int known_width = 0;  // numbers of each
  int policy = 0;
  int q_at = 0, x_at = 0, x_dot_at = 0, drift_at = 0, gain_at = 0, costs_at = 0, logs_at = 0, known_at = 0;
  int size = 0;  // of the whole observation
};

class RowDynamics : public ControlAffine {
 public:
  explicit RowDynamics(const v1::TextTask& task) : layout_(RowLayout::Of(task)), drives_(task.resolved().drive()) {}
  ControlAffineDims dims() const override { return {layout_.size, layout_.action, layout_.q, layout_.x}; }
  void Evaluate(const double* obs, const ControlAffineOut& out) const override;

 private:
  void Drift(const double* obs, double* f) const;
  void Gain(const double* obs, double* G) const;

  const RowLayout layout_;
  const google::protobuf::RepeatedPtrField<v1::DirectDrive> drives_;
};

// The known constraints: limits of joints as rows sign * q[entry] - bound, and rows whose numbers are model columns.
// Immutable; thread-safe.
class RowConstraints : public KnownConstraints {
 public:
  explicit RowConstraints(const v1::TextTask& task);
  bool observed() const override { return true; }
  bool simulated(int row) const override { return rows_[row].column >= 0; }
  void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const override;

 private:
  struct Row {
    int column = -1;  // of the observation, where its numbers begin; -1: the limit of a joint
    int entry = 0;
    double sign = 1, bound = 0;
  };
  void EvaluateLimit(const Row& row, int index, const KnownConstraintsState& at, const KnownConstraintsOut& out) const;
  void EvaluateColumns(const Row& row, int index, const KnownConstraintsState& at,
                       const KnownConstraintsOut& out) const;

  const RowLayout layout_;
  std::vector<Row> rows_;
};

// FAILED_PRECONDITION if `resolved` is missing; INVALID_ARGUMENT for options that no text task has.
absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_ROW_MODEL_H_
// SPDX-License-Identifier: Apache-2.0
