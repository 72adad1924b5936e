// Starts of a task that is a text file (proto Start). Immutable once made; thread-safe for distinct data; Apply
// neither blocks nor allocates.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_START_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_START_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/tasks/text/mujoco_names.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

class StartRules {
 public:
  // INVALID_ARGUMENT "start.field: why", also for a position beyond a joint's limits, and for a joint or body given
  // twice.
  static absl::StatusOr<StartRules> Make(const mjModel& model, const v1::Start& start);

  // Sets the start state of data that mj_resetData has reset. Null stream: the middle of every interval.
  void Apply(const mjModel& model, const RandomStream* episode, mjData* data) const;

  // INVALID_ARGUMENT "start.body[0].keep: why" if in no one of 100 episodes the body found a place that is far enough.
  absl::Status CheckKeeps(const mjModel& model, mjData* data) const;

  // Positions of slide and hinge joints that may be set by name.
  const std::map<std::string, int>& keys() const { return keys_; }  // address in qpos by joint

 private:
  struct Value {  // of qpos, qvel or mocap_pos
    double low = 0, high = 0;
    bool given = false;
    double Draw(RandomStream* stream) const;
  };
  struct JointRule {
    int position = 0, velocity = 0;  // addresses
    Value at, speed;
    std::string stream;
  };
  struct Keep {
    Place from;
    double at_least = 0;
  };
  struct BodyRule {
    int position = -1;  // address in qpos, or -1
    int mocap = -1;     // index, or -1
    Value at[3];
    std::vector<Keep> keep;
    std::string stream, field;
  };
  static absl::StatusOr<Value> ValueOf(const v1::Interval& interval, const std::string& field);
  absl::Status AddJoints(const mjModel& model, const v1::JointStart& start, const std::string& field);
  absl::Status AddBody(const mjModel& model, const v1::BodyStart& start, const std::string& field);
  // Apply, which calls `held` with the number of each body whose distances hold.
  template <typename Held>
  void Begin(const mjModel& model, const RandomStream* episode, mjData* data, Held held) const;
  // False if no try was far enough.
  static bool PlaceBody(const mjModel& model, const BodyRule& rule, const RandomStream* episode, mjData* data);

  int keyframe_ = -1;
  std::vector<JointRule> joints_;
  std::vector<BodyRule> bodies_;
  std::map<std::string, int> keys_;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_START_H_
// SPDX-License-Identifier: Apache-2.0
