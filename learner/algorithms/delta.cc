#include "learner/algorithms/delta.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "common/safety/risk.h"
#include "learner/algorithms/episode_cost.h"

namespace datacom::learner {
namespace {

// docs/algorithms.md 5.6 has the reasons. Rates are of an episode of H rows.
constexpr double kSlowRate = 0.05;
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
  const double error = RelativeError(state_.cost, settings_.budget, scale_);
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
  const double share = ShareOfHorizon(length, settings_.horizon);
  AddToMean(total, share, &state_.weight, &state_.cost);
  state_.calibration += kSlowRate * share * (excess - state_.calibration);
  state_.floor = first ? *quartile : state_.floor + kSlowRate * share * (*quartile - state_.floor);
  const Bounds now = bounds();
  state_.integral = std::clamp(state_.integral + settings_.integral * share * push(), std::log(now.base / now.high),
                               std::log(now.base / now.low));
  return true;
}

bool DeltaPeak::ApplyEpisode(int length, const float* costs, const double* cvar) {
  const double total = CostOfEpisode(length, costs);
  double peak = 0;
  for (int i = 0; i <= length; ++i) {
    if (!std::isfinite(cvar[i])) return false;
    peak = std::max(peak, cvar[i]);
  }
  if (!std::isfinite(total)) return false;
  const bool first = state_.weight == 0;
  const double share = ShareOfHorizon(length, settings_.horizon);
  AddToMean(total, share, &state_.weight, &state_.cost);
  if (first) {
    state_.peak = peak;
  } else if (total <= std::max(settings_.budget, state_.cost)) {
    state_.peak += kSlowRate * share * (peak - state_.peak);
  }
  return true;
}

namespace {

DeltaControl::Settings ControlOf(const v1::Hyper& hyper, const AlgorithmConfig& config) {
  DeltaControl::Settings settings;
  settings.budget = EpisodeBudget(hyper, config);
  settings.cost_unit = hyper.cost_unit();
  settings.proportional = hyper.delta_proportional();
  settings.integral = hyper.delta_integral();
  settings.start = Softplus(RawStartOfDelta(hyper.init_delta()));
  settings.discount = config.discount;
  settings.horizon = config.horizon;
  return settings;
}

bool AnyInMode(DeltaMode mode, const std::vector<MemberConfig>& members) {
  return std::any_of(members.begin(), members.end(),
                     [mode](const MemberConfig& member) { return DeltaModeOf(member.hyper) == mode; });
}

}  // namespace

Delta::Delta(const AlgorithmConfig& config)
    : discount_(config.discount),
      saves_controls_(AnyInMode(DeltaMode::kControlled, PopulationOf(config))),
      saves_peaks_(AnyInMode(DeltaMode::kPeak, PopulationOf(config))) {
  const bool discounted = FindAlgorithm(config.algorithm)->discounted_budget;
  for (const MemberConfig& own : config.members) {
    const v1::Hyper& hyper = own.hyper;
    const DeltaMode mode = DeltaModeOf(hyper);
    Member& member = members_.emplace_back();
    member.raw.value = RawStartOfDelta(hyper.init_delta());
    member.budget =
        discounted ? hyper.cost_budget() : DiscountedBudget(hyper.cost_budget(), config.horizon, config.discount);
    member.rate = hyper.delta_lr();
    if (mode == DeltaMode::kFixed) member.fixed = hyper.init_delta();
    if (mode == DeltaMode::kControlled) member.control.emplace(ControlOf(hyper, config));
    if (mode == DeltaMode::kPeak) {
      member.peak.emplace(DeltaPeak::Settings{EpisodeBudget(hyper, config), hyper.delta_margin(),
                                              Softplus(member.raw.value), config.horizon});
    }
  }
}

double Delta::value(int member) const {
  const Member& own = members_[member];
  if (own.fixed) return *own.fixed;
  if (own.peak) return own.peak->value();
  return own.control ? own.control->value() : Softplus(own.raw.value);
}

double Delta::raw(int member) const {
  const Member& own = members_[member];
  if (own.peak) return own.peak->state().peak;
  return own.control ? own.control->state().integral : own.raw.value;
}

void Delta::set_raw(int member, double raw) {
  Member& own = members_[member];
  if (own.control) {
    DeltaControl::State state = own.control->state();
    state.integral = raw;
    own.control->set_state(state);
  } else if (own.peak) {
    DeltaPeak::State state = own.peak->state();
    state.peak = raw;
    own.peak->set_state(state);
  } else {
    own.raw.value = raw;
  }
}

std::optional<double> Delta::cost(int member) const {
  const Member& own = members_[member];
  if (own.control && own.control->state().weight > 0) return own.control->state().cost;
  if (own.peak && own.peak->state().weight > 0) return own.peak->state().cost;
  return std::nullopt;
}

// docs/algorithms.md 5.4: e_i = D_i - budget - (CVaR_i - delta), dL/dw = mean clip(e, -1, 1) * sigmoid(w).
bool Delta::ApplyEpisode(int member, int length, const float* costs, const double* cvar) {
  Member& own = members_[member];
  if (own.fixed) return true;
  if (own.control || own.peak) {
    if (!(own.control ? own.control->ApplyEpisode(length, costs, cvar) : own.peak->ApplyEpisode(length, costs, cvar))) {
      return false;
    }
    if (own.control) own.gradient = own.control->push();
    own.raw.steps += 1;
    return true;
  }
  const double delta = value(member);
  double to_go = 0, sum = 0;
  for (int i = length; i >= 0; --i) {
    to_go = CostOf(costs, i) + discount_ * to_go;
    sum += std::clamp(to_go - own.budget - cvar[i] + delta, -1.0, 1.0);
  }
  const double gradient = sum / (length + 1) / (1 + std::exp(-own.raw.value));
  if (!std::isfinite(gradient)) return false;
  own.gradient = gradient;
  own.raw.Step(gradient, own.rate);
  return true;
}

std::string Delta::Save() const {
  std::string bytes;
  const auto add = [&bytes](const auto& part) { bytes.append(reinterpret_cast<const char*>(&part), sizeof part); };
  for (const Member& member : members_) {
    add(member.raw);
    if (saves_controls_) add(member.control ? member.control->state() : DeltaControl::State{});
    if (saves_peaks_) add(member.peak ? member.peak->state() : DeltaPeak::State{});
  }
  return bytes;
}

void Delta::Load(const std::string& bytes) {
  const char* from = bytes.data();
  const auto take = [&from](auto* part) {
    std::memcpy(part, from, sizeof *part);
    from += sizeof *part;
  };
  for (Member& member : members_) {
    take(&member.raw);
    DeltaControl::State control;
    if (saves_controls_) take(&control);
    if (member.control) member.control->set_state(control);
    DeltaPeak::State peak;
    if (saves_peaks_) take(&peak);
    if (member.peak) member.peak->set_state(peak);
  }
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
