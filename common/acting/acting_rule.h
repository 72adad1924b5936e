// An acting rule turns observations into actions with the parameters of one snapshot. Each rule has a file that
// registers it (register_rule.h) and declares the form of its snapshots (snapshot_form.h).
//
// Batched over the environments of one member. Not thread-safe; owns its workspace, allocated when the rule is made;
// Act allocates nothing. The actor, the evaluator, `eval`, `render` and feasibility maps use the same rules.
#ifndef DATACOM_COMMON_ACTING_ACTING_RULE_H_
#define DATACOM_COMMON_ACTING_ACTING_RULE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/acting/snapshot_form.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"
#include "common/transitions/row_schema.h"

namespace datacom {

// Inputs of a rule; arrays of [batch, ...], float32.
struct ActingInputs {
  const float* observations = nullptr;  // [batch, obs_dim]
  const float* noise = nullptr;         // [batch, noise_dim()] standard normal
  // [batch] raw cost of the current state, as the previous step returned it; 0 after a reset, even if the start state
  // has a cost.
  const float* previous_costs = nullptr;
  // [batch, memory_dim()] what the rule keeps of each environment's episode: 0 at its start, afterwards as the last Act
  // left it. Null: every row is at the start of an episode, and nothing is kept.
  float* memory = nullptr;
  // [batch, action_dim] take the place of the policy's actions, before any filter: of demonstrations, or of somebody
  // else's policy. A row whose first number is NaN has none. Null: no row has one. Rules without a Gaussian policy or a
  // filter ignore it.
  const float* proposals = nullptr;
};

// Per environment, for metrics, the safety ledger and overlays. Arrays may be null; else [batch].
struct ActingDiagnostics {
  double* constraint = nullptr;  // k(s) = CVaR - delta; untouched by rules without a learned constraint
  double* cvar = nullptr;
  double* intervention = nullptr;  // |a - u|: how far the filter moved the action
  // How far the shield moves the action, whether it is used or not; untouched by rules without one. Costs a second
  // filtering.
  double* shield_change = nullptr;
};

class ActingRule {
 public:
  virtual ~ActingRule() = default;
  // Replaces the parameters. INVALID_ARGUMENT, naming the array or the scalar, when the snapshot does not have the form
  // and the shapes of the one that the rule was made with; the old parameters stay.
  virtual absl::Status Load(const Snapshot& snapshot) = 0;
  // Writes actions, [batch, action_dim] float32: they are stored, and executed unless executed() returns others.
  // batch <= max_batch passed to MakeActingRule.
  virtual void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics& diagnostics) = 0;
  virtual int noise_dim() const = 0;
  virtual int memory_dim() const { return 0; }  // of one environment
  // Actions to execute instead of the ones from the last Act, [batch, action_dim] float32, for rules that filter after
  // the policy: the agent learns from the policy's actions, and the rule declares the column executed_action. Null:
  // execute the actions as they are.
  virtual const float* executed() const { return nullptr; }
  // The columns of rows that the rule declares (ActingRuleColumns), in that order, as the last Act left them: [batch,
  // width] float32 each. The pointers do not change.
  virtual std::vector<const float*> columns() const { return {}; }
  // Whether Act reads the numbers that policies do not see (TaskSpec::model_dim).
  virtual bool reads_model() const { return true; }
  // True if Act writes diagnostics.constraint and cvar.
  virtual bool has_constraint() const { return false; }
  // Whether Act filters what the policy, or a proposal, wants to do.
  virtual bool has_filter() const { return has_shield(); }
  // The shield is the part of the filter that was learned. Without it the policy's action is only limited by what is
  // known of the task. Load keeps the choice; a new rule uses its shield.
  virtual bool has_shield() const { return false; }
  void UseShield(bool use) { uses_shield_ = use; }

 protected:
  bool uses_shield() const { return uses_shield_; }

 private:
  bool uses_shield_ = true;
};

std::vector<std::string> ActingRuleNames();
// Whether the rule can act in the task. NOT_FOUND, naming the rule; INVALID_ARGUMENT, naming rule, task and what is
// wrong.
absl::Status CheckActingRuleTask(absl::string_view rule, const TaskModel& model);
// The errors of CheckActingRuleTask; INVALID_ARGUMENT, naming a missing array, a wrong shape or a missing scalar.
absl::StatusOr<std::unique_ptr<ActingRule>> MakeActingRule(const Snapshot& snapshot, const TaskModel& model,
                                                           int max_batch);
// The form of a rule's snapshots. `like`: a snapshot, for rules with alternatives. NOT_FOUND, naming the rule.
absl::StatusOr<SnapshotForm> ActingRuleForm(absl::string_view rule, const SnapshotDims& dims,
                                            const Snapshot& like = {});
// Extra row columns that the rule stores, all float32. NOT_FOUND, naming the rule.
absl::StatusOr<std::vector<Column>> ActingRuleColumns(absl::string_view rule, uint32_t action_dim);
// The row schema of a task with this rule.
absl::StatusOr<RowSchema> ActingRuleSchema(absl::string_view rule, const TaskSpec& task);

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_ACTING_RULE_H_
// SPDX-License-Identifier: Apache-2.0
