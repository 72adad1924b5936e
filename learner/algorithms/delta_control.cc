#include "learner/algorithms/delta_control.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/safety/risk.h"

namespace datacom::learner {
namespace {

// docs/algorithms.md 5.6 has the reasons. Rates are of an episode of H rows.
constexpr double kCostRate = 0.1, kSlowRate = 0.05;
constexpr double kLoosening = 0.2;    // delta rises so much slower than it falls
constexpr double kFloorFades = 4;     // the floor fades where an episode costs more than a quarter of m
constexpr double kLeastShare = 0.01;  // smallest floor, as a share of C

}  // namespace

DeltaControl::DeltaControl(const Settings& settings)
    : settings_(settings),
      scale_(std::max(settings.budget, settings.cost_unit)),
      discounted_(DiscountedBudget(scale_, settings.horizon, settings.discount)) {
  settings_.start = std::max(settings.start, discounted_);
}

double DeltaControl::push() const {
  if (state_.weight == 0) return 0;
  const double error = std::clamp((state_.cost - settings_.budget) / scale_, -1.0, 1.0);
  return error > 0 ? error : kLoosening * error;
}

DeltaControl::Bounds DeltaControl::bounds() const {
  Bounds bounds;
  const double calibration = state_.calibration * (scale_ / std::max(state_.cost, scale_));
  bounds.base = std::max(settings_.start + calibration, discounted_ / 2);
  const double fade = scale_ / std::max(kFloorFades * state_.cost, scale_);
  bounds.low = std::min(std::max(state_.floor * fade * fade, kLeastShare * discounted_), bounds.base);
  bounds.high = 2 * std::max(settings_.start, bounds.base);
  return bounds;
}

double DeltaControl::value() const {
  const Bounds now = bounds();
  const double exponent = settings_.proportional * push() + state_.integral;
  return std::clamp(now.base * std::exp(-exponent), now.low, now.high);
}

bool DeltaControl::ApplyEpisode(int length, const float* costs, const double* cvar) {
  double to_go = 0, total = 0, excess = 0;
  safe_.clear();
  for (int i = length; i >= 0; --i) {
    const double cost = CostOf(costs, i);
    to_go = cost + settings_.discount * to_go;
    total += cost;
    excess += cvar[i] - to_go;
    if (cost == 0) safe_.push_back(cvar[i]);  // never empty: state 0 costs nothing
  }
  excess /= length + 1;
  if (!std::isfinite(total) || !std::isfinite(excess)) return false;
  const auto quartile = safe_.begin() + static_cast<std::ptrdiff_t>((safe_.size() - 1) / 4);
  std::nth_element(safe_.begin(), quartile, safe_.end());
  const bool first = state_.weight == 0;
  const double share = std::min(static_cast<double>(length) / settings_.horizon, 1.0);
  state_.weight = (1 - kCostRate * share) * state_.weight + kCostRate;
  state_.cost += kCostRate / state_.weight * (total - state_.cost);
  state_.calibration += kSlowRate * share * (excess - state_.calibration);
  state_.floor = first ? *quartile : state_.floor + kSlowRate * share * (*quartile - state_.floor);
  const Bounds now = bounds();
  state_.integral = std::clamp(state_.integral + settings_.integral * share * push(), std::log(now.base / now.high),
                               std::log(now.base / now.low));
  return true;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
