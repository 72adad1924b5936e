#include "common/tasks/air_hockey_7dof/dynamics.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/tasks/air_hockey_7dof/arm.h"
#include "common/tasks/hockey_rules.h"
#include "common/tasks/register_task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::air_hockey_7dof {
namespace {

using air_hockey::kPuckPosition;
using air_hockey::kPuckVelocity;

// The first joint turns the arm about the vertical, so the mallet stays in its plane.
ObservationSlice TurnSlice() {
  ObservationSlice slice;
  slice.name = "turn";
  slice.title = "first joint, the others at rest in the start's posture, puck at (-0.5, 0)";
  slice.x_label = "joint 1 / rad";
  slice.y_label = "joint 1 velocity / rad/s";
  slice.x_low = -1.5, slice.x_high = 1.5, slice.y_low = -kVelocityLimits[0], slice.y_high = kVelocityLimits[0];
  slice.at = [](double x, double y, double* observation) {
    std::fill_n(observation, kObservation, 0.0);
    observation[kPuckPosition] = -0.5 + air_hockey::kBaseX;
    std::copy_n(kStartPosition, kJoints, observation + kJointPosition);
    observation[kJointPosition] = x;
    observation[kJointVelocity] = y;
    ObserveMallet(observation);
    return true;
  };
  return slice;
}

}  // namespace

void ObserveMallet(double* observation) {
  const double* const velocity = observation + kJointVelocity;
  const Pose pose = ForwardKinematics(observation + kJointPosition);
  for (int i = 0; i < 3; ++i) {
    double speed = 0;
    for (int j = 0; j < kJoints; ++j) speed += pose.mallet_jacobian[i * kJoints + j] * velocity[j];
    observation[kMalletPosition + i] = pose.mallet[i] - (i < 2 ? observation[kPuckPosition + i] : kPlane);
    observation[kMalletVelocity + i] = speed - (i < 2 ? observation[kPuckVelocity + i] : 0);
  }
}

absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options) {
  RETURN_IF_ERROR(RejectOtherOptions("air_hockey_7dof", options, {"puck_region"}));
  std::vector<double> gains;
  for (const double limit : kVelocityLimits) gains.push_back(kAccelerationShare * limit);
  TaskModel model = air_hockey::HockeyModel(
      gains,
      {"mallet x from puck / m", "mallet y from puck / m", "mallet height above its plane / m",
       "mallet velocity x from puck / m/s", "mallet velocity y from puck / m/s", "mallet velocity upwards / m/s"},
      options);
  model.spec.name = "air_hockey_7dof";
  model.spec.summary =
      "Score with a seven-joint arm; keep its mallet on the table and its joints and links within limits.";
  model.known_constraints = std::make_shared<Constraints>();
  model.cost = [](const double* observation) {
    return Cost(observation + kJointPosition, observation + kJointVelocity);
  };
  model.slices.push_back(TurnSlice());
  return model;
}

const RegisterTaskModel kRegistered("air_hockey_7dof", &MakeModel);

}  // namespace datacom::air_hockey_7dof
// SPDX-License-Identifier: Apache-2.0
