#include "common/acting/acting_rule.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/acting/register_rule.h"
#include "common/base/status.h"

namespace datacom {
namespace {

std::map<std::string, ActingRuleEntry, std::less<>>& Registered() {
  static std::map<std::string, ActingRuleEntry, std::less<>> registered;
  return registered;
}

absl::StatusOr<const ActingRuleEntry*> Find(absl::string_view name) {
  const auto found = Registered().find(name);
  if (found != Registered().end()) return &found->second;
  return absl::NotFoundError(
      absl::StrCat("acting rule \"", name, "\" does not exist; there are: ", absl::StrJoin(ActingRuleNames(), ", ")));
}

}  // namespace

RegisterActingRule::RegisterActingRule(const std::string& name, const ActingRuleEntry& entry) {
  if (Registered().emplace(name, entry).second) return;
  std::fprintf(stderr, "two acting rules are registered as %s\n", name.c_str());
  std::abort();
}

absl::Status SnapshotRule::Load(const Snapshot& snapshot) {
  RETURN_IF_ERROR(check_->Check(snapshot));
  Set(snapshot);
  return absl::OkStatus();
}

std::vector<std::string> ActingRuleNames() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : Registered()) names.push_back(name);
  return names;
}

absl::StatusOr<std::unique_ptr<ActingRule>> MakeActingRule(const Snapshot& snapshot, const TaskModel& model,
                                                           int max_batch) {
  ASSIGN_OR_RETURN(const ActingRuleEntry* entry, Find(snapshot.acting_rule));
  if (entry->check_task != nullptr) {
    RETURN_IF_ERROR(Annotate(entry->check_task(model), absl::StrCat("acting rule ", snapshot.acting_rule)));
  }
  const SnapshotForm form = entry->form(SnapshotDims::Of(model), snapshot);
  ASSIGN_OR_RETURN(SnapshotCheck check, SnapshotCheck::Make(form, snapshot));
  ASSIGN_OR_RETURN(std::unique_ptr<SnapshotRule> rule, entry->make(snapshot, form, model, max_batch));
  rule->CheckSnapshotsWith(std::move(check));
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
  return RowSchema::For(task.obs_dim, task.action_dim, extra, {task.cost_names, static_cast<uint32_t>(task.costs_at)});
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
