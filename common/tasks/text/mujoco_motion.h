// Moving obstacles and targets of a task that is a text file (proto Motion): mocap bodies that follow waypoints or
// random targets. Not thread-safe: holds the targets of one environment. Begin and Advance neither block nor allocate.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_MOTION_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_MOTION_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

class Motions {
 public:
  // INVALID_ARGUMENT "motion[i].field: why".
  static absl::StatusOr<Motions> Make(const mjModel& model, const v1::TaskDefinition& definition);

  // Starts an episode from the bodies' present places. Null stream: targets are the box's middle.
  void Begin(const RandomStream* episode, const mjData& data);
  // Moves the bodies by `dt` seconds.
  void Advance(double dt, mjData* data);

 private:
  using Point = std::array<double, 3>;
  struct Motion {
    int mocap = 0;
    double speed = 0;
    std::vector<Point> waypoints;
    std::optional<v1::Interval> box[3];
    std::string stream_name;
    std::optional<RandomStream> stream;
    size_t next = 0;
    Point target = {};
  };
  static void Choose(Motion* motion);

  std::vector<Motion> motions_;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_MOTION_H_
// SPDX-License-Identifier: Apache-2.0
