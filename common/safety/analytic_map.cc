#include "common/safety/analytic_map.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace datacom {
namespace {

constexpr double kDifferenceStep = 1e-4;

}  // namespace

AnalyticMap::AnalyticMap(std::shared_ptr<const KnownConstraints> constraints, std::vector<double> gains, int action)
    : constraints_(std::move(constraints)),
      gains_(std::move(gains)),
      action_(action),
      map_(SafeMapDims{constraints_->count(), action, 2 * action, 0}),
      state_(2 * action),
      c_(constraints_->count()),
      drift_(constraints_->count()),
      J_G_(constraints_->count() * action),
      jacobian_(constraints_->count() * 2 * action),
      along_(constraints_->count() * 2 * action) {
  assert(static_cast<int>(gains_.size()) == constraints_->count());
}

void AnalyticMap::Set(const double* q, const SafeMapGains& gains) {
  const int n = action_, K = constraints_->count();
  const double* const velocity = q + n;
  constraints_->Evaluate(q, nullptr, {c_.data(), jacobian_.data(), nullptr});
  std::copy_n(q, 2 * n, state_.data());
  for (int j = 0; j < n; ++j) state_[j] += kDifferenceStep * velocity[j];
  constraints_->Evaluate(state_.data(), nullptr, {nullptr, along_.data(), nullptr});
  for (int i = 0; i < K; ++i) {
    const double* const row = jacobian_.data() + i * 2 * n;
    const double* const moved = along_.data() + i * 2 * n;
    const bool invariant = gains_[i] > 0;
    double k_dot = 0, rate = 0;  // J p_dot, J_dot p_dot
    for (int j = 0; j < n; ++j) {
      k_dot += row[j] * velocity[j];
      rate += (moved[j] - row[j]) / kDifferenceStep * velocity[j];
    }
    c_[i] += gains_[i] * k_dot;
    drift_[i] = std::max(invariant ? k_dot + rate : k_dot, 0.0);
    std::copy_n(invariant ? row : row + n, n, J_G_.data() + i * n);
  }
  map_.Set(SafeMapReduced{c_.data(), J_G_.data(), drift_.data()}, gains);
}

}  // namespace datacom
