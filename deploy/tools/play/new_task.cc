#include "deploy/tools/play/commands.h"

#include <filesystem>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/files.h"
#include "common/base/shell_word.h"
#include "common/base/status.h"
#include "common/config/textproto.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/mujoco_same.h"
#include "common/tasks/task.h"
#include "common/tasks/text/draft_terms.h"
#include "common/tasks/text/model_files.h"
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
  for (const v1::TaskFile& file : task.file()) {
    RETURN_IF_ERROR(MakeFolders((folder / file.name()).parent_path().string()));
    RETURN_IF_ERROR(WriteFileAtomically((folder / file.name()).string(), file.content()));
  }
  return WriteFileAtomically((folder / "task.textproto").string(), text);
}

// The draft must load, or it helps nobody. Nothing is written before.
absl::Status CheckDraft(v1::TextTask task, const std::string& draft) {
  RETURN_IF_ERROR(Annotate(ParseTextproto(draft, "task.textproto", task.mutable_definition()),
                           "the draft of a task for this model does not load"));
  return Annotate(text::Resolve(&task), "the draft of a task for this model does not load");
}

// What MuJoCo finds in the folder and around it must be the model at hand.
absl::Status CheckWritten(const std::string& file, const mjModel& model) {
  const absl::StatusOr<MujocoModel> written = LoadMujocoModel(AbsolutePath(file));
  return Annotate(written.ok() ? CheckSameModel(model, **written) : written.status(), file);
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
  const std::string name = TaskName(fs::path(WithoutSlash(AbsolutePath(command.folder))).filename().string());
  text::WithoutVisual visual;
  if (command.no_visual) {
    ASSIGN_OR_RETURN(visual, Annotate(text::RemoveVisual(&task), command.model));
  }
  const std::vector<std::string> named = text::NameElements(&task);
  ASSIGN_OR_RETURN(const MujocoModel model, Annotate(text::CompileFiles(task), command.model));
  v1::TextTask small = task;  // as it travels
  ASSIGN_OR_RETURN(const std::string draft,
                   Annotate(text::DraftTask(*model, name, task.file(0).name(), named), command.model));
  RETURN_IF_ERROR(text::CompressFiles(&small));
  RETURN_IF_ERROR(CheckDraft(std::move(small), draft));
  RETURN_IF_ERROR(Write(folder, task, draft));
  RETURN_IF_ERROR(CheckWritten((folder / task.file(0).name()).string(), *model));
  const std::string file = (folder / "task.textproto").string();
  for (const v1::TaskFile& each : task.file()) *out << "wrote " << (folder / each.name()).string() << '\n';
  *out << "wrote " << file << '\n';
  if (!named.empty()) {
    const auto shown = [](std::string* line, const std::string& name) { line->append(text::InComment(name)); };
    *out << "\nNamed in the copy of the model, because a task refers to names: " << absl::StrJoin(named, ", ", shown)
         << '\n';
  }
  if (command.no_visual) {
    *out << "\nWithout " << visual.geoms - visual.kept << " of " << visual.geoms
         << " geoms that only draw a mesh: " << visual.left << " bytes instead of " << visual.bytes << ".\n";
    if (visual.kept > 0) *out << visual.kept << " stay, because the mass of their body comes from them.\n";
  }
  *out << "\nEdit reward, cost and start in " << file << ", then:\n"
       << "  datacom task check " << ShellWord(file) << '\n'
       << "  datacom train " << ShellWord(file) << " --algorithm datacom --steps 20000 --run-dir runs/" << name << '\n';
  return absl::OkStatus();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
