#include "common/tasks/air_hockey/dynamics.h"

#include <algorithm>
#include <memory>

#include "common/base/status.h"
#include "common/tasks/air_hockey/arm.h"
#include "common/tasks/register_task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::air_hockey {
namespace {

// The mallet over the near half of the table, the arm at rest. The arm is redundant: of all postures for a position it
// takes the one nearest to the start's.
ObservationSlice MalletSlice() {
  ObservationSlice slice;
  slice.name = "mallet";
  slice.title = "mallet over the near half, at rest, posture nearest to the start's, puck at (-0.5, 0)";
  slice.x_label = "mallet x / m";
  slice.y_label = "mallet y / m";
  slice.x_low = -kHalfLength, slice.x_high = 0, slice.y_low = -kHalfWidth, slice.y_high = kHalfWidth;
  slice.at = [](double x, double y, double* observation) {
    constexpr double kPuckX = -0.5;
    std::fill_n(observation, kObservation, 0.0);
    observation[kPuckPosition] = kPuckX + kBaseX;
    observation[kMalletPosition] = x - kPuckX;
    observation[kMalletPosition + 1] = y;
    return InverseKinematics(x + kBaseX, y, observation + kJointPosition);
  };
  return slice;
}

}  // namespace

absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options) {
  RETURN_IF_ERROR(RejectOtherOptions("air_hockey", options, {"puck_region", "mismatch_sigma"}));
  TaskModel model = HockeyModel({1, 1, 1},
                                {"mallet x from puck / m", "mallet y from puck / m",
                                 "mallet velocity x from puck / m/s", "mallet velocity y from puck / m/s"},
                                options);
  model.spec.name = "air_hockey";
  model.spec.summary =
      "Score with a planar three-joint arm; keep its joints within limits and its mallet over its own half.";
  model.known_constraints = std::make_shared<Constraints>();
  model.cost = [](const double* observation) {
    const double mallet[] = {observation[kMalletPosition] + observation[kPuckPosition],
                             observation[kMalletPosition + 1] + observation[kPuckPosition + 1]};
    return Cost(observation + kJointPosition, observation + kJointVelocity, mallet);
  };
  model.slices.push_back(MalletSlice());
  model.scripted = {{"strike", "Places the mallet behind the puck and drives it towards the goal.", &Strike}};
  return model;
}

const RegisterTaskModel kRegistered("air_hockey", &MakeModel);

}  // namespace datacom::air_hockey
// SPDX-License-Identifier: Apache-2.0
