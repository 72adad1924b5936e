// The known row that a state is nearest to violating, for films and maps.
#ifndef DATACOM_COMMON_TASKS_NEAREST_ROW_H_
#define DATACOM_COMMON_TASKS_NEAREST_ROW_H_

#include <cmath>
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
  explicit NearestRows(const TaskModel& model, bool in_slice = false)
      : known_(model.known_constraints), dynamics_(model.dynamics) {
    if (known_ == nullptr) return;
    for (int row = 0; row < known_->count(); ++row) {
      if (!in_slice || !known_->simulated(row)) rows_.push_back(row);
    }
    const ControlAffineDims dims = dynamics_->dims();
    q_.resize(dims.q), x_.resize(dims.x), k_.resize(known_->count());
  }

  bool empty() const { return rows_.empty(); }
  const std::string& name(int row) const { return known_->names()[row]; }
  // Of the state of an observation [obs_dim]; nothing if there is no row, or none has a finite value.
  std::optional<NearestRow> At(const double* observation) {
    if (rows_.empty()) return std::nullopt;
    ControlAffineOut out;
    out.q = q_.data();
    out.x = x_.empty() ? nullptr : x_.data();
    dynamics_->Evaluate(observation, out);
    KnownConstraintsOut rows;
    rows.k = k_.data();
    known_->Evaluate({out.q, out.x, observation}, rows);
    std::optional<NearestRow> nearest;
    for (const int row : rows_) {
      if (!std::isfinite(k_[row]) || (nearest && -k_[row] >= nearest->distance)) continue;
      nearest = NearestRow{row, -k_[row]};
    }
    return nearest;
  }

 private:
  const std::shared_ptr<const KnownConstraints> known_;
  const std::shared_ptr<const ControlAffine> dynamics_;
  std::vector<int> rows_;
  std::vector<double> q_, x_, k_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_NEAREST_ROW_H_
// SPDX-License-Identifier: Apache-2.0
