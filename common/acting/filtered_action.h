// The last step of every rule that filters: what it computed in float64 becomes the float32 action. Pure function.
#ifndef DATACOM_COMMON_ACTING_FILTERED_ACTION_H_
#define DATACOM_COMMON_ACTING_FILTERED_ACTION_H_

#include <cmath>
#include <vector>

namespace datacom {

// Rounds `action` to `rounded` [n] and returns how far that is from `wanted` (ActingDiagnostics::intervention).
inline double RoundFilteredAction(const std::vector<double>& action, const std::vector<double>& wanted,
                                  float* rounded) {
  double square = 0;
  for (size_t i = 0; i < action.size(); ++i) {
    rounded[i] = static_cast<float>(action[i]);
    square += (rounded[i] - wanted[i]) * (rounded[i] - wanted[i]);
  }
  return std::sqrt(square);
}

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_FILTERED_ACTION_H_
