// The model columns of known rows on sites and distances (row_model.h says which), from MuJoCo's kinematics.
//
// k and its gradient by the velocities of q come from positions and Jacobians (mj_jac) of the state reached. How fast k
// and its rate change are central differences of k along the state's motion (mj_integratePos, step 1e-3 s), apart for q
// and for the rest: joints that are not part of q, with their velocities, and mocap bodies, with the velocity of the
// last control step (0 at the start). The kinematics come from the nominal model.
//
// Not thread-safe: owns its mjData and remembers where the mocap bodies were. Write neither blocks nor allocates.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_KNOWN_COLUMNS_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_KNOWN_COLUMNS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/text/mujoco_geometry.h"
#include "common/tasks/text/mujoco_terms.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

// The known constraints of a task file (proto KnownConstraint): what their names mean in the compiled model. Pure
// function; thread-safe.
struct KnownOfTask {
  // `first_order`: q has only positions. INVALID_ARGUMENT "known[i].field: why".
  static absl::StatusOr<KnownOfTask> Make(const mjModel& model, const v1::TaskDefinition& definition,
                                          const StateJoints& joints, bool first_order);

  std::vector<v1::KnownRow> rows;     // all, in the order of the file
  std::vector<GeometryRow> geometry;  // of the evaluated ones, in the same order
};

class KnownColumns {
 public:
  // second_order: whether the rows have gains. Velocity control has none.
  // own: of the model.
  KnownColumns(MujocoModel model, MujocoData own, std::vector<GeometryRow> rows, const StateJoints& joints,
               bool second_order);

  // Writes the rows' numbers at the positions and velocities of `data`. dt: since the last call, 0 at the start. False
  // when MuJoCo fails.
  bool Write(const mjData& data, double dt, double* out);

 private:
  // Returns whether something that is not part of q moves at the state.
  bool OthersMove() const;
  void Evaluate(double* out);
  void WriteGradient(const GeometryRow& row, const Measured& measured, double* out);
  // k of every row after `own` seconds of q's motion and `others` seconds of the rest's.
  void EvaluateAt(double own, double others, std::vector<double>* k);
  void Move(double own, double others);
  // first_, second_: derivatives of k by the time t of a motion of own * t and others * t.
  void Differentiate(double own, double others);

  MujocoModel model_;
  MujocoData own_;  // scratch
  std::vector<GeometryRow> rows_;
  std::vector<int> dofs_;  // of q
  bool second_order_ = true;
  std::vector<mjtNum> positions_, mocap_, mocap_before_;           // qpos and mocap_pos at the state
  std::vector<mjtNum> velocity_, rest_velocity_, mocap_velocity_;  // of q, of other joints, of mocap bodies
  std::vector<mjtNum> jacobians_;                                  // [2, 3, nv]
  std::vector<double> k_, later_, before_, first_, second_;        // [rows]
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_KNOWN_COLUMNS_H_
// SPDX-License-Identifier: Apache-2.0
