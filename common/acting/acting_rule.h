// What acts: turns observations into environment actions with one snapshot. One file pair a rule, one line in
// register.inc.
//
// Batched over the environments of one member. Not thread-safe; owns its workspace, sized at making; Act allocates
// nothing. Used by the actor, the evaluator, `eval`, `render` and FVF maps, so that all act alike.
#ifndef DATACOM_COMMON_ACTING_ACTING_RULE_H_
#define DATACOM_COMMON_ACTING_ACTING_RULE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/nn/snapshot.h"
#include "common/rows/row_schema.h"
#include "common/tasks/task.h"

namespace datacom {

// What a rule sees of the environments it acts for; arrays of [batch, ...], float32.
struct ActingInputs {
  const float* observations = nullptr;  // [batch, obs_dim]
  const float* noise = nullptr;         // [batch, noise_dim()] standard normal
  // [batch] raw cost of the step before, that of the state acted in; 0 after a reset, whatever the start's cost is.
  const float* previous_costs = nullptr;
};

// Per environment, for metrics, the safety ledger and overlays. Arrays may be null; else [batch].
struct ActingDiagnostics {
  double* constraint = nullptr;  // k(s) = CVaR - delta; untouched by rules without a learned constraint
  double* cvar = nullptr;
  double* intervention = nullptr;  // |a - u|, the part of the action that is the filter's
  float* raw_action = nullptr;     // [batch, action_dim]: u, where the actions out are already filtered
};

class ActingRule {
 public:
  virtual ~ActingRule() = default;
  // Replaces the parameters; shapes must equal those at making (INVALID_ARGUMENT naming the array and both shapes,
  // and the old parameters stay).
  virtual absl::Status Load(const Snapshot& snapshot) = 0;
  // actions: [batch, action_dim] float32 out, as stored, and applied unless executed() says otherwise.
  // batch <= max_batch of the making.
  virtual void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) = 0;
  virtual int noise_dim() const = 0;
  // What the last Act would have the environments do instead of its actions, [batch, action_dim] float32: rules that
  // filter outside of the agent, which learns from what the policy chose. Such a rule declares the column
  // executed_action. Null: actions are applied as they are.
  virtual const float* executed() const { return nullptr; }
  // Whether diagnostics.constraint means anything.
  virtual bool has_constraint() const { return false; }
};

std::vector<std::string> ActingRuleNames();
// NOT_FOUND naming the rule, INVALID_ARGUMENT naming a missing array, a wrong shape or a missing scalar.
absl::StatusOr<std::unique_ptr<ActingRule>> MakeActingRule(const Snapshot& snapshot, const TaskModel& model,
                                                           int max_batch);
// Extra row columns the rule of this name stores. NOT_FOUND naming the rule.
absl::StatusOr<std::vector<Column>> ActingRuleColumns(absl::string_view rule, uint32_t action_dim);
// The rows of a task where this rule acts.
absl::StatusOr<RowSchema> ActingRuleSchema(absl::string_view rule, const TaskSpec& task);

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_ACTING_RULE_H_
