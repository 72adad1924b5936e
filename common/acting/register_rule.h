// Registers an acting rule. The last lines of its .cc file are:
//
//   const RegisterActingRule kRegistered("cbf_qp", {&Form, &NewRule<CbfQpRule>, &Columns});
//
// It runs before main; a name that is registered twice ends the program. The linker must keep the file: it is linked as
// an object, not from an archive (CMakeLists.txt).
#ifndef DATACOM_COMMON_ACTING_REGISTER_RULE_H_
#define DATACOM_COMMON_ACTING_REGISTER_RULE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/acting/acting_rule.h"
#include "common/acting/snapshot_form.h"

namespace datacom {

// A rule whose snapshots have been checked against its form: Set may read what the form declares without a check.
class SnapshotRule : public ActingRule {
 public:
  absl::Status Load(const Snapshot& snapshot) final;
  // The first parameters, once, when the rule has been made. `check` was made with `first`; `columns` are the rule's.
  void Start(SnapshotCheck check, const Snapshot& first, const std::vector<Column>& columns, int max_batch);
  std::vector<const float*> columns() const final;

 protected:
  // Memory of the column number i of those that the rule declares, [max_batch, width]. Act writes it.
  float* column(int i) { return columns_[i].data(); }
  const float* column(int i) const { return columns_[i].data(); }
  // Sets all parameters, from the first snapshot (Start) and from every later one. The snapshot has the form and the
  // shapes of the one that the rule was made with, so this cannot fail.
  virtual void Set(const Snapshot& snapshot) = 0;

 private:
  std::optional<SnapshotCheck> check_;
  std::vector<std::vector<float>> columns_;
};

struct ActingRuleEntry {
  // `like`: a snapshot, for rules with alternatives; one without arrays stands for any.
  SnapshotForm (*form)(const SnapshotDims& dims, const Snapshot& like);
  // The snapshot has the form, and the task has been checked.
  absl::StatusOr<std::unique_ptr<SnapshotRule>> (*make)(const Snapshot& snapshot, const SnapshotForm& form,
                                                        const TaskModel& model, int max_batch);
  std::vector<Column> (*columns)(uint32_t action_dim);           // extra row columns, float32; Act writes them
  absl::Status (*check_task)(const TaskModel& model) = nullptr;  // refuses a task in which the rule cannot act
};

// ActingRuleEntry::make of a rule with this constructor.
template <class Rule>
absl::StatusOr<std::unique_ptr<SnapshotRule>> NewRule(const Snapshot& snapshot, const SnapshotForm& form,
                                                      const TaskModel& model, int max_batch) {
  return std::make_unique<Rule>(snapshot, form, model, max_batch);
}

class RegisterActingRule {
 public:
  RegisterActingRule(const std::string& name, const ActingRuleEntry& entry);
};

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_REGISTER_RULE_H_
// SPDX-License-Identifier: Apache-2.0
