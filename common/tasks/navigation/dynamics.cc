#include "common/tasks/navigation/dynamics.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/tasks/navigation/objective.h"
#include "common/tasks/navigation/observation.h"
#include "common/tasks/register_task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::navigation {
namespace {

// Positions in which TIAGo++ can stand while Fetch stands in the middle of the room with its arm stretched along x.
ObservationSlice StretchedArm(Frame frame) {
  ObservationSlice slice;
  slice.name = "room";
  slice.title = "Fetch at rest in the middle, arm stretched along x; TIAGo++ at rest, heading along x";
  slice.x_label = "TIAGo++ x / m";
  slice.y_label = "TIAGo++ y / m";
  slice.x_low = -kRoomX, slice.x_high = kRoomX, slice.y_low = -kRoomY, slice.y_high = kRoomY;
  slice.at = [frame](double x, double y, double* observation) {
    Situation situation;
    situation.tiago.x = x;
    situation.tiago.y = y;
    situation.hand = FetchLinkPoints(situation.fetch, Arm{})[kHand];
    Observe(situation, frame, observation);
    return true;
  };
  return slice;
}

// Headings that are safe at a distance while Fetch drives at TIAGo++ along x with its arm stretched.
ObservationSlice HeadOn(Frame frame) {
  ObservationSlice slice;
  slice.name = "head_on";
  slice.title = "Fetch drives at TIAGo++ with 0.7 m/s, arm stretched along x; TIAGo++ at rest";
  slice.x_label = "TIAGo++ heading (0: away from Fetch) / rad";
  slice.y_label = "distance between the robots / m";
  slice.x_low = -M_PI, slice.x_high = M_PI, slice.y_low = 0.5, slice.y_high = 4.0;
  slice.at = [frame](double heading, double distance, double* observation) {
    Situation situation;
    situation.tiago.x = distance / 2;
    situation.tiago.yaw = heading;
    situation.fetch.x = -distance / 2;
    situation.fetch.vx = 0.7;
    situation.hand = FetchLinkPoints(situation.fetch, Arm{})[kHand];
    situation.hand_velocity.x = 0.7;
    Observe(situation, frame, observation);
    return true;
  };
  return slice;
}

}  // namespace

void Dynamics::Evaluate(const double* obs, const ControlAffineOut& out) const {
  const double heading = std::atan2(obs[5], obs[4]);
  if (out.q != nullptr) {
    out.q[0] = obs[2];
    out.q[1] = obs[3];
    out.q[2] = heading;
  }
  if (out.x != nullptr) {
    out.x[0] = obs[9];
    out.x[1] = obs[10];
    out.x[2] = std::atan2(obs[12], obs[11]);
    out.x[3] = obs[18];
    out.x[4] = obs[19];
  }
  if (out.x_dot != nullptr) {
    out.x_dot[0] = obs[13];
    out.x_dot[1] = obs[14];
    out.x_dot[2] = obs[15];
    out.x_dot[3] = obs[20];
    out.x_dot[4] = obs[21];
  }
  if (out.f != nullptr) std::fill(out.f, out.f + 3, 0.0);
  if (out.G != nullptr) {
    const double rows[6] = {std::cos(heading), 0, std::sin(heading), 0, 0, 1};
    std::copy(rows, rows + 6, out.G);
  }
}

namespace {

std::vector<std::string> ObservationNames(Frame frame) {
  const bool room = frame == Frame::kWorld;
  std::vector<std::string> names = {room ? "target x / m" : "target ahead / m",
                                    room ? "target y / m" : "target left / m"};
  for (const std::string robot : {"TIAGo++", "Fetch"}) {
    for (const char* part :
         {" x / m", " y / m", " cos yaw", " sin yaw", " velocity x / m/s", " velocity y / m/s", " yaw rate / rad/s"}) {
      names.push_back(robot + part);
    }
  }
  for (const char* name : {"last speed / m/s", "last turn rate / rad/s", "hand x / m", "hand y / m",
                           "hand velocity x / m/s", "hand velocity y / m/s"}) {
    names.emplace_back(name);
  }
  if (frame != Frame::kRobotAll) return names;
  names.emplace_back("TIAGo++ speed ahead / m/s");
  for (const std::string object : {"Fetch", "hand"}) {
    for (const char* part : {" ahead / m", " left / m", " velocity ahead / m/s", " velocity left / m/s"}) {
      names.push_back(object + part);
    }
  }
  return names;
}

}  // namespace

Frame FrameOf(const v1::TaskOptions& options) {
  if (options.observation() == "robot_frame_all") return Frame::kRobotAll;
  return options.observation() == "robot_frame" ? Frame::kRobot : Frame::kWorld;
}

absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options) {
  RETURN_IF_ERROR(RejectOtherOptions("navigation", options, {"reward", "observation"}));
  const Frame frame = FrameOf(options);
  TaskModel model;
  model.spec.name = "navigation";
  model.spec.summary = "Drive TIAGo++ to a target in a room where a Fetch robot drives around and waves its arm.";
  model.spec.obs_dim = ObservationSize(frame);
  model.spec.observation_names = ObservationNames(frame);
  model.spec.action_names = {"speed / m/s", "turn rate / rad/s"};
  model.spec.action_dim = 2;
  model.spec.action_low = {-1.0, -M_PI / 3};
  model.spec.action_high = {1.0, M_PI / 3};
  model.spec.horizon = options.has_horizon() ? static_cast<int>(options.horizon()) : 500;
  model.spec.control_dt = kControlDt;
  model.spec.init_keys = {"tiago_x",  "tiago_y",  "tiago_yaw",      "fetch_x",        "fetch_y",   "fetch_yaw",
                          "target_x", "target_y", "fetch_target_x", "fetch_target_y", "fetch_idle"};
  model.spec.absorbing = "a collision";
  const bool paper = options.reward() == "paper";
  model.spec.rewards =
      paper ? RewardRange{-8.2, 0, -8.2, 0} : RewardRange{-8.3, 10, -1000, -1000};  // docs/navigation.md 5
  model.dynamics = std::make_shared<Dynamics>(frame);
  model.known_constraints = std::make_shared<Constraints>();
  model.slices = {StretchedArm(frame), HeadOn(frame)};
  model.scripted = ScriptedPolicies(frame);
  return model;
}

const RegisterTaskModel kRegistered("navigation", &MakeModel);

}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
