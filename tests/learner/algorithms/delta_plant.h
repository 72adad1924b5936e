// A toy of a robot that learns under a threshold delta, for closed-loop tests. The mean cost of an episode is a smooth
// increasing function of delta that follows it with a lag; single episodes scatter, and some end early. The predicted
// cost to go lags, too. A function of its seed; not thread-safe.
#ifndef DATACOM_TESTS_LEARNER_ALGORITHMS_DELTA_PLANT_H_
#define DATACOM_TESTS_LEARNER_ALGORITHMS_DELTA_PLANT_H_

#include <algorithm>
#include <cmath>
#include <vector>

#include "learner/nn/named_stream.h"

namespace datacom::learner {

class DeltaPlant {
 public:
  // An episode costs most_cost under a wide delta, half of it at half_open.
  DeltaPlant(int horizon, double most_cost, double half_open, uint64_t seed)
      : horizon_(horizon), most_cost_(most_cost), half_open_(half_open), stream_(NamedKey("test.delta", {seed})) {}

  // The cost of the next episode; costs() and cvar() describe it.
  double Play(double delta) {
    int length = horizon_;
    if (stream_.Uniform() < 0.1) length = 1 + static_cast<int>(stream_.Uniform() * (horizon_ - 1));
    const double share = static_cast<double>(length) / horizon_;
    log_open_ = played_ ? log_open_ + share / kLag * (std::log(delta) - log_open_) : std::log(delta);
    played_ = true;
    const double ratio = std::exp(2 * log_open_) / (half_open_ * half_open_);
    double scatter = -std::log(1 - stream_.Uniform()) / 2;
    scatter -= std::log(1 - stream_.Uniform()) / 2;
    const double total = most_cost_ * ratio / (1 + ratio) * share * scatter;
    Place(length, total);
    Predict(length, share);
    return total;
  }
  const std::vector<float>& costs() const { return costs_; }
  const std::vector<double>& cvar() const { return cvar_; }

 private:
  static constexpr double kLag = 20, kLearning = 0.02;  // episodes; share of the error that an episode corrects

  // The cost lies on a third of the episode.
  void Place(int length, double total) {
    const int rows = std::max(1, length / 3);
    const int first = 1 + static_cast<int>(stream_.Uniform() * (length - rows + 1));
    costs_.assign(length + 1, -0.1f);
    costs_[0] = 0;
    std::fill_n(costs_.begin() + first, rows, static_cast<float>(total / rows));
  }

  // Small predictions for most states and large ones for some, in the mean the value as learned so far.
  void Predict(int length, double share) {
    cvar_.resize(length + 1);
    for (int i = 0; i <= length; ++i) {
      const double place = static_cast<double>(i) / length;
      cvar_[i] = value_ * (0.1 + 2.7 * place * place);
    }
    double to_go = 0, sum = 0;
    for (int i = length; i >= 0; --i) {
      to_go = std::max(0.0, static_cast<double>(costs_[i])) + 0.99 * to_go;
      sum += to_go;
    }
    value_ += kLearning * share * (sum / (length + 1) - value_);
  }

  const int horizon_;
  const double most_cost_, half_open_;
  NamedStream stream_;
  bool played_ = false;
  double log_open_ = 0, value_ = 0.7;
  std::vector<float> costs_;
  std::vector<double> cvar_;
};

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_LEARNER_ALGORITHMS_DELTA_PLANT_H_
// SPDX-License-Identifier: Apache-2.0
