// Parts of acting rules. They own their memory, which they allocate when they are made.
#ifndef DATACOM_COMMON_ACTING_RULE_PARTS_H_
#define DATACOM_COMMON_ACTING_RULE_PARTS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/acting/register_rule.h"
#include "common/tasks/task.h"
#include "common/transitions/row_schema.h"

namespace datacom {

// The part of observations that policies see (TaskSpec::seen_dim). Not thread-safe.
class SeenPart {
 public:
  SeenPart(const TaskSpec& spec, int max_batch)
      : whole_(spec.obs_dim), seen_(spec.seen_dim()), rows_(whole_ == seen_ ? 0 : max_batch * seen_) {}

  // observations: [batch, obs_dim]. Returns [batch, seen_dim], valid until the next call; `observations` itself if
  // policies see all of it.
  const float* Of(int batch, const float* observations) {
    if (whole_ == seen_) return observations;
    for (int r = 0; r < batch; ++r) std::copy_n(observations + r * whole_, seen_, &rows_[r * seen_]);
    return rows_.data();
  }

 private:
  int whole_ = 0, seen_ = 0;
  std::vector<float> rows_;
};

// The linear map from [-1, 1] to a task's action box, float32. Thread-safe once made.
class ActionScale {
 public:
  explicit ActionScale(const TaskSpec& spec) {
    for (int i = 0; i < spec.action_dim; ++i) {
      half_range_.push_back(static_cast<float>((spec.action_high[i] - spec.action_low[i]) / 2));
      centre_.push_back(static_cast<float>((spec.action_high[i] + spec.action_low[i]) / 2));
    }
  }
  // The number i of an action, not clamped.
  float Scale(int i, float value) const { return value * half_range_[i] + centre_[i]; }

 private:
  std::vector<float> half_range_, centre_;  // [action]
};

// A rule that executes other actions than it stores. Its first column is executed_action.
class ExecutingRule : public SnapshotRule {
 public:
  const float* executed() const final { return column(kExecuted); }

 protected:
  enum { kExecuted, kNextColumn };  // numbers of columns
};

// The columns of such a rule, if it stores nothing else.
inline std::vector<Column> ExecutedActionOnly(uint32_t action_dim) { return {ExecutedActionColumn(action_dim)}; }

// Puts the proposals of the inputs into the place of the policy's actions [batch, n].
inline void TakeProposals(const ActingInputs& inputs, int batch, int n, float* actions) {
  if (inputs.proposals == nullptr) return;
  for (int at = 0; at < batch * n; ++at) {
    if (!std::isnan(inputs.proposals[at - at % n])) actions[at] = inputs.proposals[at];
  }
}

// The distance of two actions [n].
inline double ActionDistance(int n, const float* a, const float* b) {
  double square = 0;
  for (int i = 0; i < n; ++i) square += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  return std::sqrt(square);
}

// Filters one action in float64 and rounds the result. Not thread-safe.
class RowFilter {
 public:
  explicit RowFilter(int actions) : u_(actions), action_(actions) {}

  // filter(u, a) computes the action a from the policy's action u, both [actions]. policy_action, out: [actions], may
  // be the same array. Returns |out - u|, and writes it to diagnostics.intervention[row] if wanted.
  template <class Filter>
  double Apply(int row, const float* policy_action, const ActingDiagnostics& diagnostics, float* out,
               const Filter& filter) {
    std::copy_n(policy_action, u_.size(), u_.data());
    filter(u_.data(), action_.data());
    double square = 0;
    for (size_t i = 0; i < action_.size(); ++i) {
      out[i] = static_cast<float>(action_[i]);
      square += (out[i] - u_[i]) * (out[i] - u_[i]);
    }
    const double distance = std::sqrt(square);
    if (diagnostics.intervention != nullptr) diagnostics.intervention[row] = distance;
    return distance;
  }

  // The same for a filter that is the rule's shield: `use` says whether `out` has its action or the policy's.
  template <class Filter>
  void ApplyShield(bool use, int row, const float* policy_action, const ActingDiagnostics& diagnostics, float* out,
                   const Filter& filter) {
    const double change = Apply(row, policy_action, diagnostics, out, filter);
    if (diagnostics.shield_change != nullptr) diagnostics.shield_change[row] = change;
    if (use) return;
    std::copy_n(policy_action, u_.size(), out);
    if (diagnostics.intervention != nullptr) diagnostics.intervention[row] = 0;
  }

 private:
  std::vector<double> u_, action_;  // [actions]
};

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_RULE_PARTS_H_
// SPDX-License-Identifier: Apache-2.0
