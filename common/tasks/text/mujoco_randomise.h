// Factors on single elements of a text task's model (proto Randomise). Not thread-safe: holds the factors of one
// environment. Draw neither blocks nor allocates.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_RANDOMISE_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_RANDOMISE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/tasks/mujoco.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

class ElementFactors {
 public:
  // INVALID_ARGUMENT "randomise[i].field: why".
  static absl::StatusOr<ElementFactors> Make(const mjModel& model, const v1::TaskDefinition& definition);

  bool empty() const { return factors_.empty(); }
  // Draws the factors of an episode, each from its own child of its stream. Null: the middle of every interval.
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

// Random pushes of a task that is a text file (proto Push): velocities that are added before a control step. Not
// thread-safe: holds the times of one environment. Begin and Apply neither block nor allocate.
class Pushes {
 public:
  // INVALID_ARGUMENT "push[i].field: why".
  static absl::StatusOr<Pushes> Make(const mjModel& model, const v1::TaskDefinition& definition, double control_dt);

  // Starts an episode. Null stream: the middle of every interval.
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
  static double Draw(const v1::Interval& interval, Push* push);
  // Control steps until the next push, at least 1.
  uint64_t Pause(Push* push) const;

  double control_dt_ = 0;
  uint64_t step_ = 0;
  std::vector<Push> pushes_;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_RANDOMISE_H_
// SPDX-License-Identifier: Apache-2.0
