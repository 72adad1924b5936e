// Parts of the rules that filter the policy's action.
#ifndef DATACOM_COMMON_ACTING_FILTERED_ACTION_H_
#define DATACOM_COMMON_ACTING_FILTERED_ACTION_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/acting/register_rule.h"
#include "common/tasks/task.h"
#include "common/transitions/row_schema.h"

namespace datacom {

// A rule that executes other actions than it stores (column executed_action).
class ExecutingRule : public SnapshotRule {
 public:
  const float* executed() const final { return executed_.data(); }

 protected:
  ExecutingRule(const TaskSpec& spec, int max_batch) : executed_(max_batch * spec.action_dim) {}

  std::vector<float> executed_;  // [max_batch, action], filled by Act
};

// The columns of such a rule, if it stores nothing else.
inline std::vector<Column> ExecutedActionOnly(uint32_t action_dim) { return {ExecutedActionColumn(action_dim)}; }

// Filters one action in float64 and rounds the result. Not thread-safe; owns its workspace; Apply allocates nothing.
class RowFilter {
 public:
  explicit RowFilter(int actions) : u_(actions), action_(actions) {}

  // filter(u, a) computes the action a from the policy's action u, both [actions]. policy_action, out: [actions], may
  // be the same array. Writes diagnostics.intervention[row] if wanted.
  template <class Filter>
  void Apply(int row, const float* policy_action, const ActingDiagnostics& diagnostics, float* out,
             const Filter& filter) {
    std::copy_n(policy_action, u_.size(), u_.data());
    filter(u_.data(), action_.data());
    double square = 0;
    for (size_t i = 0; i < action_.size(); ++i) {
      out[i] = static_cast<float>(action_[i]);
      square += (out[i] - u_[i]) * (out[i] - u_[i]);
    }
    if (diagnostics.intervention != nullptr) diagnostics.intervention[row] = std::sqrt(square);
  }

 private:
  std::vector<double> u_, action_;  // [actions]
};

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_FILTERED_ACTION_H_
// SPDX-License-Identifier: Apache-2.0
