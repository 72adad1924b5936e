// Slow, literal restatements of what PPOLag and RCPO compute from the rows of an epoch, in float64.
#ifndef DATACOM_TESTS_LEARNER_ALGORITHMS_ON_POLICY_TESTING_H_
#define DATACOM_TESTS_LEARNER_ALGORITHMS_ON_POLICY_TESTING_H_

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/learner/nn/kernels_testing.h"

namespace datacom::learner {

// One member's rows. ends[r] is '.' inside of a path, 't' where it is terminated, 'h' at the time limit, 'c' where the
// epoch cuts it; the last row ends a path.
struct Paths {
  Numbers signal, value, final_value;
  std::string ends;
};

// Generalised advantage estimation as the double sum of its definition.
inline Numbers LiteralAdvantages(const Paths& p, bool cost, double discount, double lambda) {
  const int rows = static_cast<int>(p.signal.size());
  Numbers advantages(rows);
  for (int t = 0; t < rows; ++t) {
    double weight = 1;
    for (int k = t; k < rows; ++k, weight *= discount * lambda) {
      const double gain = cost ? std::max(p.signal[k], 0.0) : p.signal[k];
      const bool ends = p.ends[k] != '.';
      const double next = p.ends[k] == 't' ? 0 : ends ? p.final_value[k] : p.value[k + 1];
      advantages[t] += weight * (gain + discount * next - p.value[k]);
      if (ends) break;
    }
  }
  return advantages;
}

// The rows that a policy learns from, [rows, action] and [rows].
struct LiteralRows {
  Numbers action, log_prob, advantage;
};

// -share * sum of min(ratio A, clamp(ratio, 1 - clip, 1 + clip) A).
inline double LiteralSurrogate(const LiteralRows& rows, const Numbers& mean, const Numbers& log_std, double clip,
                               double share) {
  const size_t n = log_std.size();
  double sum = 0;
  for (size_t r = 0; r < rows.advantage.size(); ++r) {
    double log = 0;
    for (size_t i = 0; i < n; ++i) {
      const double apart = (rows.action[r * n + i] - mean[r * n + i]) / std::exp(log_std[i]);
      log += -0.5 * apart * apart - log_std[i] - 0.5 * std::log(2 * std::acos(-1.0));
    }
    const double ratio = std::exp(log - rows.log_prob[r]), A = rows.advantage[r];
    sum -= share * std::min(ratio * A, std::min(std::max(ratio, 1 - clip), 1 + clip) * A);
  }
  return sum;
}

// Mean over rows and actions of KL(N(mean, std) || N(to_mean, to_std)).
inline double LiteralDivergence(const Numbers& mean, const Numbers& log_std, const Numbers& to_mean,
                                const Numbers& to_log_std) {
  double sum = 0;
  for (size_t k = 0; k < mean.size(); ++k) {
    const double old_log = log_std[k % log_std.size()], new_log = to_log_std[k % log_std.size()];
    const double apart = mean[k] - to_mean[k];
    sum += new_log - old_log + (std::exp(2 * old_log) + apart * apart) / (2 * std::exp(2 * new_log)) - 0.5;
  }
  return sum / static_cast<double>(mean.size());
}

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_LEARNER_ALGORITHMS_ON_POLICY_TESTING_H_
// SPDX-License-Identifier: Apache-2.0
