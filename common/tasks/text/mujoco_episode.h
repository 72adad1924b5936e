// What changes from episode to episode in a task that is a text file: its start, its moving obstacles and targets,
// pushes and factors on single elements of the model. Where a stream is null, a drawn number is the middle of its
// interval. Nothing of an episode or a step blocks or allocates.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_EPISODE_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_EPISODE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/text/mujoco_names.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

using Box = std::array<std::optional<v1::Interval>, 3>;  // of x, y and z; an axis without keeps its place

// Starts (proto Start). Immutable once made; thread-safe for distinct data.
class StartRules {
 public:
  // INVALID_ARGUMENT "start.field: why", also for a position beyond a joint's limits, and for a joint or body given
  // twice.
  static absl::StatusOr<StartRules> Make(const mjModel& model, const v1::Start& start);

  // Sets the start state of data that mj_resetData has reset.
  void Apply(const mjModel& model, const RandomStream* episode, mjData* data) const;

  // INVALID_ARGUMENT "start.body[0].keep: why" if in no one of 100 episodes the body found a place that is far enough.
  absl::Status CheckKeeps(const mjModel& model, mjData* data) const;

  // Positions of slide and hinge joints that may be set by name.
  const std::map<std::string, int>& keys() const { return keys_; }  // address in qpos by joint

 private:
  struct JointRule {
    int position = 0, velocity = 0;  // addresses
    std::optional<v1::Interval> at, speed;
    std::string stream;
  };
  struct Keep {
    Place from;
    double at_least = 0;
  };
  struct BodyRule {
    int position = -1;  // address in qpos, or -1
    int mocap = -1;     // index, or -1
    Box at;
    std::vector<Keep> keep;
    std::string stream, field;
  };
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

// Moving obstacles and targets (proto Motion): mocap bodies that follow waypoints or random targets. Not thread-safe:
// holds the targets of one environment.
class Motions {
 public:
  // INVALID_ARGUMENT "motion[i].field: why".
  static absl::StatusOr<Motions> Make(const mjModel& model, const v1::TaskDefinition& definition);

  // Starts an episode from the bodies' present places.
  void Begin(const RandomStream* episode, const mjData& data);
  // Moves the bodies by `dt` seconds.
  void Advance(double dt, mjData* data);

 private:
  using Point = std::array<double, 3>;
  struct Motion {
    int mocap = 0;
    double speed = 0;
    std::vector<Point> waypoints;
    Box box;
    std::string stream_name;
    std::optional<RandomStream> stream;
    size_t next = 0;
    Point target = {};
  };
  static void Choose(Motion* motion);

  std::vector<Motion> motions_;
};

// Factors on single elements of the model (proto Randomise). Not thread-safe: holds the factors of one environment.
class ElementFactors {
 public:
  // INVALID_ARGUMENT "randomise[i].field: why".
  static absl::StatusOr<ElementFactors> Make(const mjModel& model, const v1::TaskDefinition& definition);

  bool empty() const { return factors_.empty(); }
  // Draws the factors of an episode, each from its own child of its stream.
  const ElementScale& Draw(const RandomStream* episode);

 private:
  struct Factor {
    std::vector<double> ElementScale::*list = nullptr;
    int first = 0, count = 1;  // entries of the list
    v1::Interval range;
    std::string stream;
  };
  ElementScale scale_;
  std::vector<Factor> factors_;
};

// Random pushes (proto Push): velocities that are added before a control step. Not thread-safe: holds the times of one
// environment.
class Pushes {
 public:
  // INVALID_ARGUMENT "push[i].field: why".
  static absl::StatusOr<Pushes> Make(const mjModel& model, const v1::TaskDefinition& definition, double control_dt);

  // Starts an episode.
  void Begin(const RandomStream* episode);
  // Before each control step. Returns whether it has changed velocities.
  bool Apply(mjData* data);

 private:
  struct Kick {
    int dof = 0;
    v1::Interval velocity;
  };
  struct Push {
    v1::Interval every;
    std::vector<Kick> kicks;
    std::string stream_name;
    std::optional<RandomStream> stream;
    uint64_t due = 0;  // number of the control step before which it comes next
  };
  // Control steps until the next push, at least 1.
  uint64_t Pause(Push* push) const;

  double control_dt_ = 0;
  uint64_t step_ = 0;
  std::vector<Push> pushes_;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_EPISODE_H_
// SPDX-License-Identifier: Apache-2.0
