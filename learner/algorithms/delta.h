// The threshold delta of every member (docs/algorithms.md 5): delta = softplus(w) with one Adam step for each
// finished episode, a controller (DeltaControl), the risk of acceptable episodes (DeltaPeak), or a fixed value. Host
// memory, float64; not thread-safe.
#ifndef DATACOM_LEARNER_ALGORITHMS_DELTA_H_
#define DATACOM_LEARNER_ALGORITHMS_DELTA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/algorithms.h"
#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/scalar_adam.h"

namespace datacom::learner {

// The controlled threshold delta of one member (docs/algorithms.md 5.6): a proportional and integral
// controller that brings the undiscounted cost of an episode to its budget. Host memory, float64; a value type, not
// thread-safe.
class DeltaControl {
 public:
  struct Settings {
    double budget = 0, cost_unit = 1;  // undiscounted, of an episode; cost_unit is positive
    double proportional = 0.5, integral = 0.02;
    double start = 0;  // delta starts here, or at the converted budget if that is larger
    double discount = 0.99;
    int horizon = 1;
  };
  // All that changes; plain data, without padding.
  struct State {
    double weight = 0;       // n, a tenth of the number of episodes that count in the mean cost; 0: no episode yet
    double cost = 0;         // J, mean cost of an episode
    double calibration = 0;  // b, mean of CVaR - D
    double integral = 0;     // kappa
    double floor = 0;        // f, lower quartile of CVaR where a state costs nothing
  };

  explicit DeltaControl(const Settings& settings);
  double value() const;
  double push() const;  // e', the relative error that drives the controller: positive lowers delta
  // costs: [length + 1] raw, costs[0] counts as 0; cvar: [length + 1]. Returns false, and changes nothing, if a sum
  // over the episode is not finite.
  bool ApplyEpisode(int length, const float* costs, const double* cvar);
  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  struct Bounds {
    double base, low, high;
  };
  Bounds bounds() const;

  Settings settings_;
  double scale_, discounted_;  // m, C
  State state_;
  std::vector<double> safe_;  // CVaR where a state costs nothing; reused
};

// The threshold delta of one member in mode "peak" (docs/algorithms.md 5.7): a little above the largest risk that the
// episodes with an acceptable cost reach. Host memory, float64; a value type, not thread-safe.
class DeltaPeak {
 public:
  struct Settings {
    double budget = 0;    // undiscounted, of an episode
    double margin = 1.1;  // delta as a multiple of the peak; at least 1
    double start = 0;     // delta before the first episode
    int horizon = 1;
  };
  // All that changes; plain data, without padding.
  struct State {
    double weight = 0, cost = 0;  // n, J as in DeltaControl
    double peak = 0;              // P, mean of the largest CVaR of an acceptable episode
  };

  explicit DeltaPeak(const Settings& settings) : settings_(settings) {}
  double value() const { return state_.weight == 0 ? settings_.start : settings_.margin * state_.peak; }
  // As in DeltaControl.
  bool ApplyEpisode(int length, const float* costs, const double* cvar);
  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  Settings settings_;
  State state_;
};

class Delta {
 public:
  explicit Delta(const AlgorithmConfig& config);
  double value(int member) const;
  double raw(int member) const;  // w, the controller's kappa, or P of mode peak
  void set_raw(int member, double raw);
  // Of the last step: dloss/dw, or the controller's e'; 0 in the other modes.
  double gradient(int member) const { return members_[member].gradient; }
  uint64_t steps(int member) const { return static_cast<uint64_t>(members_[member].raw.steps); }
  // Null unless the member's delta is controlled.
  const DeltaControl* control(int member) const {
    return members_[member].control ? &*members_[member].control : nullptr;
  }
  // The mean undiscounted cost of an episode, J; none in modes that do not follow it or before the first episode.
  std::optional<double> cost(int member) const;
  // costs: [length + 1] raw, costs[0] counts as 0; cvar: [length + 1]. Returns false, and changes nothing, if the
  // gradient, or what DeltaControl or DeltaPeak sees, is not finite.
  bool ApplyEpisode(int member, int length, const float* costs, const double* cvar);
  // Exact bytes, equally many for each member: its ScalarAdam, and, if a member of the population is controlled or in
  // mode peak, the state of its DeltaControl or DeltaPeak.
  std::string Save() const;
  void Load(const std::string& bytes);  // must have the size that Save gives

 private:
  struct Member {
    ScalarAdam raw;     // its value is w; the modes controlled and peak use only its steps
    double budget = 0;  // discounted
    double rate = 0, gradient = 0;
    std::optional<double> fixed;
    std::optional<DeltaControl> control;
    std::optional<DeltaPeak> peak;
  };

  double discount_ = 0;
  bool saves_controls_ = false, saves_peaks_ = false;
  std::vector<Member> members_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DELTA_H_
// SPDX-License-Identifier: Apache-2.0
