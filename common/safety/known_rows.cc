#include "common/safety/known_rows.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "common/safety/safe_map.h"

namespace datacom {
namespace {

constexpr double kDifferenceStep = 1e-4;  // s

}  // namespace

KnownRows::KnownRows(std::shared_ptr<const KnownConstraints> constraints, std::vector<int> rows,
                     const ControlAffineDims& dims, KnownRowsForm form)
    : constraints_(std::move(constraints)), rows_(std::move(rows)), dims_(dims), form_(std::move(form)) {
  if (rows_.empty()) return;
  const size_t K = constraints_->count();
  if (form_.gains.empty()) form_.gains = constraints_->viability_gains();
  assert(form_.gains.size() == K);
  for (const int row : rows_) has_gains_ |= form_.gains[row] > 0;
  const auto inequality = [this](int row) { return !constraints_->equality(row); };
  const auto first = std::stable_partition(rows_.begin(), rows_.end(), inequality);
  equalities_ = static_cast<int>(rows_.end() - first);
  assert(!has_gains_ || constraints_->observed() || dims.q % 2 == 0);
  for (std::vector<double>* values : {&k_, &rate_, &own_acceleration_, &acceleration_}) values->resize(K);
  for (std::vector<double>* values : {&J_q_, &J_v_, &J_later_, &J_earlier_}) values->resize(K * dims.q);
  for (std::vector<double>* values : {&moved_, &c_q_}) values->resize(dims.q);
  J_x_.resize(K * dims.x);
}

void KnownRows::EvaluateMoved(const KnownRowsInput& at, double time, std::vector<double>* J) {
  const int positions = dims_.q / 2;
  std::copy_n(at.q, dims_.q, moved_.data());
  for (int j = 0; j < positions; ++j) moved_[j] += time * at.f[j];
  constraints_->Evaluate({moved_.data(), at.x}, {nullptr, J->data(), nullptr});
}

// For closed forms: J_v and own_acceleration. f holds the velocities of the positions.
void KnownRows::EvaluateOwnMotion(const KnownRowsInput& at) {
  const int q = dims_.q, positions = q / 2;
  EvaluateMoved(at, kDifferenceStep, &J_later_);
  if (!form_.published || equalities_ > 0) EvaluateMoved(at, -kDifferenceStep, &J_earlier_);
  for (const int row : rows_) {
    const bool forward = form_.published && !constraints_->equality(row);
    const double* const from = forward ? &J_q_[row * q] : &J_earlier_[row * q];
    const double weight = (forward ? 1 : 0.5) / kDifferenceStep;
    own_acceleration_[row] = 0;
    for (int j = 0; j < positions; ++j) {
      own_acceleration_[row] += weight * (J_later_[row * q + j] - from[j]) * at.f[j];
    }
    std::copy_n(&J_q_[row * q], positions, &J_v_[row * q + positions]);
  }
}

void KnownRows::Evaluate(const KnownRowsInput& at, double* records) {
  if (rows_.empty()) return;
  const int q = dims_.q, n = dims_.action, x = dims_.x;
  constraints_->Evaluate({at.q, at.x, at.observation},
                         {k_.data(), J_q_.data(), x > 0 ? J_x_.data() : nullptr, rate_.data(), J_v_.data(),
                          own_acceleration_.data(), acceleration_.data()});
  if (has_gains_ && !constraints_->observed()) EvaluateOwnMotion(at);
  for (const int row : rows_) {
    const bool equality = constraints_->equality(row);
    const double gain = form_.gains[row], inner = form_.published && gain > 0 && !equality ? 1 : gain;
    const double *const J = &J_q_[row * q], *const J_v = &J_v_[row * q];
    double k_dot = rate_[row], own = inner * own_acceleration_[row];
    for (int j = 0; j < q; ++j) {
      k_dot += J[j] * at.f[j];
      c_q_[j] = J[j] + inner * J_v[j];
      own += c_q_[j] * at.f[j];
    }
    double others = rate_[row] + inner * acceleration_[row];
    for (int j = 0; j < x; ++j) others += J_x_[row * x + j] * at.x_dot[j];
    records[0] = gain > 0 ? k_[row] + gain * k_dot : k_[row];
    records[1] = (own < 0 && !equality ? 0 : own) + others;
    for (int i = 0; i < n; ++i) {
      records[2 + i] = 0;
      for (int j = 0; j < q; ++j) records[2 + i] += c_q_[j] * at.G[j * n + i];
    }
    records += JoinedRowSize(n);
  }
}

namespace {

std::vector<int> AllRows(int count) {
  std::vector<int> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace

AnalyticMap::AnalyticMap(const std::shared_ptr<const KnownConstraints>& constraints, std::vector<double> gains,
                         const ControlAffineDims& dims)
    : rows_(constraints, AllRows(constraints->count()), dims, KnownRowsForm{std::move(gains), /*published=*/true}),
      map_(SafeMapDims{rows_.count(), dims.action, dims.q, dims.x, rows_.equalities()}),
      records_(rows_.count() * JoinedRowSize(dims.action)) {}

void AnalyticMap::Set(const KnownRowsInput& at, const SafeMapGains& gains) {
  rows_.Evaluate(at, records_.data());
  map_.Set(records_.data(), gains);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
