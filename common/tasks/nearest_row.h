// The known row that a state is nearest to violating, for films and maps.
#ifndef DATACOM_COMMON_TASKS_NEAREST_ROW_H_
#define DATACOM_COMMON_TASKS_NEAREST_ROW_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/tasks/task.h"

namespace datacom {

struct NearestRow {
  int row = 0;
  double distance = 0;  // -k, in the row's unit; below 0 the row is violated
};

// Not thread-safe. At allocates nothing.
class NearestRows {
 public:
  // Keeps the model's known constraints and dynamics. in_slice: leaves out rows whose numbers only a simulator has.
  explicit NearestRows(const TaskModel& model, bool in_slice = false);

  bool empty() const { return rows_.empty(); }
  const std::string& name(int row) const { return known_->names()[row]; }
  // Of the state of an observation [obs_dim]; nothing if there is no row, or none has a finite value.
  std::optional<NearestRow> At(const double* observation);

 private:
  const std::shared_ptr<const KnownConstraints> known_;
  const std::shared_ptr<const ControlAffine> dynamics_;
  std::vector<int> rows_;
  std::vector<double> q_, x_, k_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_NEAREST_ROW_H_
// SPDX-License-Identifier: Apache-2.0
