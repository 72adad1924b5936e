// Factors on single elements of a text task's model (proto Randomise). Not thread-safe: holds the factors of one
// environment. Draw neither blocks nor allocates.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_RANDOMISE_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_RANDOMISE_H_

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

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_RANDOMISE_H_
// SPDX-License-Identifier: Apache-2.0
