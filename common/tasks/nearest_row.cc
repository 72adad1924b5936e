#include "common/tasks/nearest_row.h"

#include <cmath>

namespace datacom {

NearestRows::NearestRows(const TaskModel& model, bool in_slice)
    : known_(model.known_constraints), dynamics_(model.dynamics) {
  if (known_ == nullptr) return;
  for (int row = 0; row < known_->count(); ++row) {
    if (!in_slice || !known_->simulated(row)) rows_.push_back(row);
  }
  const ControlAffineDims dims = dynamics_->dims();
  q_.resize(dims.q), x_.resize(dims.x), k_.resize(known_->count());
}

std::optional<NearestRow> NearestRows::At(const double* observation) {
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

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
