#include "common/acting/acting_rule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/acting/register_rule.h"
#include "common/base/named_register.h"
#include "common/base/status.h"

namespace datacom {
namespace {

NamedRegister<ActingRuleEntry>& Registered() {
  static NamedRegister<ActingRuleEntry> registered("acting rule");
  return registered;
}

absl::StatusOr<const ActingRuleEntry*> Find(absl::string_view name) {
  const ActingRuleEntry* const entry = Registered().Find(name);
  if (entry == nullptr) return Registered().Unknown(name);
  return entry;
}

}  // namespace

RegisterActingRule::RegisterActingRule(const std::string& name, const ActingRuleEntry& entry) {
  Registered().Add(name, entry);
}

void SnapshotRule::Start(SnapshotCheck check, const Snapshot& first, const std::vector<Column>& columns,
                         int max_batch) {
  check_ = std::move(check);
  for (const Column& column : columns) columns_.emplace_back(static_cast<size_t>(max_batch) * column.width);
  Set(first);
}

std::vector<const float*> SnapshotRule::columns() const {
  std::vector<const float*> columns;
  for (const std::vector<float>& column : columns_) columns.push_back(column.data());
  return columns;
}

absl::Status SnapshotRule::Load(const Snapshot& snapshot) {
  RETURN_IF_ERROR(check_->Check(snapshot));
  Set(snapshot);
  return absl::OkStatus();
}

std::vector<std::string> ActingRuleNames() { return Registered().Names(); }

absl::Status CheckActingRuleTask(absl::string_view rule, const TaskModel& model) {
  ASSIGN_OR_RETURN(const ActingRuleEntry* entry, Find(rule));
  if (entry->check_task == nullptr) return absl::OkStatus();
  return Annotate(entry->check_task(model), absl::StrCat("acting rule ", rule));
}

absl::StatusOr<std::unique_ptr<ActingRule>> MakeActingRule(const Snapshot& snapshot, const TaskModel& model,
                                                           int max_batch) {
  if (max_batch < 1) return absl::InvalidArgumentError(absl::StrCat("max_batch = ", max_batch, ", must be at least 1"));
  ASSIGN_OR_RETURN(const ActingRuleEntry* entry, Find(snapshot.acting_rule));
  RETURN_IF_ERROR(CheckActingRuleTask(snapshot.acting_rule, model));
  const SnapshotForm form = entry->form(SnapshotDims::Of(model), snapshot);
  ASSIGN_OR_RETURN(SnapshotCheck check, SnapshotCheck::Make(form, snapshot));
  ASSIGN_OR_RETURN(std::unique_ptr<SnapshotRule> rule, entry->make(snapshot, form, model, max_batch));
  rule->Start(std::move(check), snapshot, entry->columns(model.spec.action_dim), max_batch);
  return rule;
}

absl::StatusOr<SnapshotForm> ActingRuleForm(absl::string_view rule, const SnapshotDims& dims, const Snapshot& like) {
  ASSIGN_OR_RETURN(const ActingRuleEntry* entry, Find(rule));
  return entry->form(dims, like);
}

absl::StatusOr<std::vector<Column>> ActingRuleColumns(absl::string_view rule, uint32_t action_dim) {
  ASSIGN_OR_RETURN(const ActingRuleEntry* entry, Find(rule));
  return entry->columns(action_dim);
}

absl::StatusOr<RowSchema> ActingRuleSchema(absl::string_view rule, const TaskSpec& task) {
  ASSIGN_OR_RETURN(const std::vector<Column> extra, ActingRuleColumns(rule, task.action_dim));
  return RowSchema::For(task.obs_dim, task.action_dim, extra, {task.cost_names, static_cast<uint32_t>(task.costs_at)},
                        {task.log_names, static_cast<uint32_t>(task.logs_at)});
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
