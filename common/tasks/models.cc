// The static side of the task register: links no simulator.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/tasks/repeated_task.h"
#include "common/tasks/task.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom {

#define DATACOM_TASK(name)                                             \
  namespace name {                                                     \
  absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options); \
  }
#include "common/tasks/register.inc"
#undef DATACOM_TASK

namespace {

struct Entry {
  const char* name;
  absl::StatusOr<TaskModel> (*make)(const v1::TaskOptions&);
};

constexpr Entry kRegister[] = {
#define DATACOM_TASK(name) {#name, &name::MakeModel},
#include "common/tasks/register.inc"
#undef DATACOM_TASK
};

absl::StatusOr<TaskModel> MakeNominal(absl::string_view name, const v1::TaskOptions& options) {
  for (const Entry& entry : kRegister) {
    if (name == entry.name) return entry.make(options);
  }
  if (options.HasExtension(v1::text_task) && name == options.GetExtension(v1::text_task).definition().name())
    return text::MakeModel(options);
  return absl::NotFoundError(
      absl::StrCat("task \"", name, "\" does not exist; there are: ", absl::StrJoin(TaskNames(), ", ")));
}

}  // namespace

std::vector<std::string> TaskNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kRegister) names.emplace_back(entry.name);
  return names;
}

absl::StatusOr<TaskModel> MakeTaskModel(absl::string_view name, const v1::TaskOptions& options) {
  ASSIGN_OR_RETURN(TaskModel model, MakeNominal(name, options));
  if (options.action_repeat() > 1) {
    model.spec = RepeatedSpec(std::move(model.spec), static_cast<int>(options.action_repeat()));
  }
  return model;
}

}  // namespace datacom
