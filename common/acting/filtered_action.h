// The last step of every rule that filters: rounds the float64 action to float32. Pure function.
#ifndef DATACOM_COMMON_ACTING_FILTERED_ACTION_H_
#define DATACOM_COMMON_ACTING_FILTERED_ACTION_H_

#include <cmath>
#include <vector>

namespace datacom {

// Rounds `action` to `rounded` [n] and returns its distance from the policy action u (ActingDiagnostics::intervention).
inline double RoundFilteredAction(const std::vector<double>& action, const std::vector<double>& u, float* rounded) {
  double square = 0;
  for (size_t i = 0; i < action.size(); ++i) {
    rounded[i] = static_cast<float>(action[i]);
    square += (rounded[i] - u[i]) * (rounded[i] - u[i]);
  }
  return std::sqrt(square);
}

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_FILTERED_ACTION_H_
// SPDX-License-Identifier: Apache-2.0
