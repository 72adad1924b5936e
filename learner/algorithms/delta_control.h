// The controlled threshold delta of one member (docs/algorithms.md 5.6): a proportional and integral
// controller that brings the undiscounted cost of an episode to its budget. Host memory, float64; a value type, not
// thread-safe.
#ifndef DATACOM_LEARNER_ALGORITHMS_DELTA_CONTROL_H_
#define DATACOM_LEARNER_ALGORITHMS_DELTA_CONTROL_H_

#include <vector>

namespace datacom::learner {

// The cost of state i of an episode; costs[0] counts as 0.
inline double CostOf(const float* costs, int i) { return i == 0 || costs[i] < 0 ? 0 : static_cast<double>(costs[i]); }

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

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DELTA_CONTROL_H_
// SPDX-License-Identifier: Apache-2.0
