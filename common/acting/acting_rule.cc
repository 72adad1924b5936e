#include "common/acting/acting_rule.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace datacom {

#define DATACOM_ACTING_RULE(name)                                                                                    \
  namespace name {                                                                                                   \
  absl::StatusOr<std::unique_ptr<ActingRule>> Make(const Snapshot& snapshot, const TaskModel& model, int max_batch); \
  std::vector<Column> Columns(uint32_t action_dim);                                                                  \
  }
#include "common/acting/register.inc"
#undef DATACOM_ACTING_RULE

namespace {

struct Entry {
  const char* name;
  absl::StatusOr<std::unique_ptr<ActingRule>> (*make)(const Snapshot&, const TaskModel&, int);
  std::vector<Column> (*columns)(uint32_t action_dim);
};

constexpr Entry kRegister[] = {
#define DATACOM_ACTING_RULE(name) {#name, &name::Make, &name::Columns},
#include "common/acting/register.inc"
#undef DATACOM_ACTING_RULE
};

absl::StatusOr<const Entry*> Find(absl::string_view name) {
  for (const Entry& entry : kRegister) {
    if (name == entry.name) return &entry;
  }
  return absl::NotFoundError(
      absl::StrCat("acting rule \"", name, "\" does not exist; there are: ", absl::StrJoin(ActingRuleNames(), ", ")));
}

}  // namespace

std::vector<std::string> ActingRuleNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kRegister) names.emplace_back(entry.name);
  return names;
}

absl::StatusOr<std::unique_ptr<ActingRule>> MakeActingRule(const Snapshot& snapshot, const TaskModel& model,
                                                           int max_batch) {
  const absl::StatusOr<const Entry*> entry = Find(snapshot.acting_rule);
  if (!entry.ok()) return entry.status();
  return (*entry)->make(snapshot, model, max_batch);
}

absl::StatusOr<std::vector<Column>> ActingRuleColumns(absl::string_view rule, uint32_t action_dim) {
  const absl::StatusOr<const Entry*> entry = Find(rule);
  if (!entry.ok()) return entry.status();
  return (*entry)->columns(action_dim);
}

absl::StatusOr<RowSchema> ActingRuleSchema(absl::string_view rule, const TaskSpec& task) {
  ASSIGN_OR_RETURN(const std::vector<Column> extra, ActingRuleColumns(rule, task.action_dim));
  return RowSchema::For(task.obs_dim, task.action_dim, extra, {task.cost_names, static_cast<uint32_t>(task.costs_at)});
}

}  // namespace datacom
