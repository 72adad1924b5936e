#include "common/safety/known_rows.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "common/safety/safe_map.h"

namespace datacom {
namespace {

constexpr double kDifferenceStep = 1e-4;  // s

}  // namespace

KnownRows::KnownRows(std::shared_ptr<const KnownConstraints> constraints, std::vector<int> rows,
                     const ControlAffineDims& dims)
    : constraints_(std::move(constraints)), rows_(std::move(rows)), dims_(dims) {
  if (rows_.empty()) return;
  const size_t K = constraints_->count();
  for (const int row : rows_) has_gains_ |= constraints_->viability_gains()[row] > 0;
  assert(!has_gains_ || dims.q % 2 == 0);
  k_.resize(K);
  J_q_.resize(K * dims.q);
  J_x_.resize(K * dims.x);
  moved_.resize(dims.q);
  before_.resize(K * dims.q);
  J_dot_.resize(K * dims.q);
  c_q_.resize(dims.q);
}

void KnownRows::EvaluateJacobianRates(const KnownRowsInput& at) {
  const int positions = dims_.q / 2;
  const auto evaluate = [&](double step, std::vector<double>* J) {
    std::copy_n(at.q, dims_.q, moved_.data());
    for (int j = 0; j < positions; ++j) moved_[j] += step * at.f[j];
    constraints_->Evaluate(moved_.data(), at.x, {nullptr, J->data(), nullptr});
  };
  evaluate(-kDifferenceStep, &before_);
  evaluate(kDifferenceStep, &J_dot_);
  for (size_t i = 0; i < J_dot_.size(); ++i) J_dot_[i] = (J_dot_[i] - before_[i]) / (2 * kDifferenceStep);
}

void KnownRows::Evaluate(const KnownRowsInput& at, double* records) {
  if (rows_.empty()) return;
  const int q = dims_.q, n = dims_.action, positions = q / 2;
  constraints_->Evaluate(at.q, at.x, {k_.data(), J_q_.data(), dims_.x > 0 ? J_x_.data() : nullptr});
  if (has_gains_) EvaluateJacobianRates(at);
  for (const int row : rows_) {
    const double gain = constraints_->viability_gains()[row];
    const double* const J = J_q_.data() + row * q;
    double c = k_[row];
    std::copy_n(J, q, c_q_.data());
    if (gain > 0) {
      for (int j = 0; j < positions; ++j) {
        c += gain * J[j] * at.f[j];
        c_q_[j] += gain * J_dot_[row * q + j];
        c_q_[positions + j] = gain * J[j];
      }
    }
    const SafeMapTerms terms{&c, c_q_.data(), J_x_.data() + row * dims_.x, at.f, at.G, at.x_dot};
    records[0] = c;
    ReduceTerms({1, n, q, dims_.x}, terms, records + 2, records + 1);
    records += JoinedRowSize(n);
  }
}

}  // namespace datacom
