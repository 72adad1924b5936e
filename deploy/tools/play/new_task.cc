#include "deploy/tools/play/new_task.h"

#include <filesystem>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/mujoco_draft.h"
#include "common/tasks/text/task_file.h"

namespace datacom::tools {
namespace {

namespace fs = std::filesystem;

// A task's name for a folder's: "My-Robot" -> "my_robot". A task of the register keeps its name to itself.
std::string TaskName(const std::string& folder) {
  std::string name;
  for (const char c : folder) {
    const auto byte = static_cast<unsigned char>(c);
    name.push_back(absl::ascii_isalnum(byte) ? absl::ascii_tolower(byte) : '_');
  }
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) name = "task_" + name;
  for (const std::string& taken : TaskNames()) {
    if (name == taken) return name + "_text";
  }
  return name;
}

absl::Status Write(const fs::path& folder, const v1::TextTask& task, const std::string& text) {
  RETURN_IF_ERROR(MakeFolders(folder.string()));
  for (const v1::TaskFile& file : task.file()) {
    RETURN_IF_ERROR(WriteFileAtomically((folder / file.name()).string(), file.content()));
  }
  return WriteFileAtomically((folder / "task.textproto").string(), text);
}

}  // namespace

absl::Status RunNewTaskCommand(const NewTaskCommand& command, std::ostream* out) {
  fs::path folder = fs::path(command.folder).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "arm/"
  ASSIGN_OR_RETURN(const std::vector<std::string> present, ListFolder(folder.string()));
  if (!present.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder.string(), " exists and is not empty; choose another name"));
  }
  v1::TextTask task;
  RETURN_IF_ERROR(text::AddModelFiles(command.model, &task));
  const std::string name = TaskName(folder.filename().string());
  ASSIGN_OR_RETURN(const MujocoModel model, text::CompileFiles(name, task));
  const absl::StatusOr<std::string> draft = text::DraftTask(*model, name, task.file(0).name());
  if (!draft.ok()) return Annotate(draft.status(), command.model);
  RETURN_IF_ERROR(Write(folder, task, *draft));
  const std::string file = (folder / "task.textproto").string();
  for (const v1::TaskFile& each : task.file()) *out << "wrote " << (folder / each.name()).string() << '\n';
  *out << "wrote " << file << '\n';
  RETURN_IF_ERROR(Annotate(text::LoadTask(file).status(), "the written task does not load; edit it"));
  *out << "\nEdit reward, cost and start in " << file << ", then:\n"
       << "  datacom task check " << file << '\n'
       << "  datacom train " << file << " --algorithm datacom --steps 20000 --run-dir runs/" << name << '\n';
  return absl::OkStatus();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
