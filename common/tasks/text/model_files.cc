#include "common/tasks/text/model_files.h"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/files.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/mujoco_files.h"
#include "common/tasks/mujoco_same.h"
#include "common/tasks/text/model_copies.h"
#include "common/tasks/text/mujoco_names.h"
#include "common/tasks/text/task_file.h"
#include "common/tasks/text/xml_tags.h"

namespace datacom::text {
namespace {

namespace fs = std::filesystem;

constexpr char kRoot[] = "root_of_absolute_paths";

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Calls visit(name, value) for every attribute. The value is a view into the text.
template <typename Visit>
void ForEachAttribute(absl::string_view xml, const Visit& visit) {
  for (size_t at = 0; const std::optional<XmlTag> tag = NextTag(xml, at); at = tag->end) {
    for (const auto& [name, value] : tag->attributes) visit(name, value);
  }
}

bool NamesFolder(absl::string_view attribute) {
  return attribute == "meshdir" || attribute == "texturedir" || attribute == "assetdir";
}

// "file", and of textures "fileright" and so on; URDF has "filename".
bool NamesFile(absl::string_view attribute) { return absl::StartsWith(attribute, "file"); }

#if mjVERSION_HEADER >= 4000000
// "/usr/a.obj" becomes "root_of_absolute_paths/usr/a.obj".
std::string WithoutAbsolutePaths(const std::string& xml) {
  std::string out;
  size_t copied = 0;
  ForEachAttribute(xml, [&](absl::string_view name, absl::string_view value) {
    if ((!NamesFolder(name) && !NamesFile(name)) || !absl::StartsWith(Decoded(value), "/")) return;
    const size_t begin = value.data() - xml.data();
    out.append(xml, copied, begin - copied).append(kRoot);
    copied = begin;
  });
  return out.append(xml, copied, std::string::npos);
}

// The place on the disk of a file in the folder that stands for the root; every other path itself.
std::string OnDisk(const std::string& path) {
  const size_t at = path.rfind(absl::StrCat("/", kRoot, "/"));
  return at == std::string::npos || IsFile(path) ? path : path.substr(at + sizeof(kRoot));
}

// Keeps what MuJoCo asks for while it compiles the model.
class FoundFiles {
 public:
  // Returns the model as it is on the disk.
  absl::StatusOr<MujocoModel> Read(const std::string& model) {
    model_ = model;
    const MujocoFiles files([this](const std::string& path) { return Find(path); });
    absl::StatusOr<MujocoModel> compiled = LoadMujocoModel(model, files.get());
    if (!status_.ok()) return status_;
    if (compiled.ok() && rewritten_) compiled = LoadMujocoModel(model);
    if (compiled.ok()) return compiled;
    const std::string why(compiled.status().message()), missing = OnDisk(files.MissingIn(why));
    if (!missing.empty()) return Wrong("model", absl::StrCat("it needs the file ", missing, ", which does not exist"));
    return Wrong("model", absl::StrCat(fs::path(model).filename().string(), ": ", why, Included(why)));
  }
  std::map<std::string, std::string>& contents() { return contents_; }  // by absolute path

 private:
  // Where "line 0" may be.
  std::string Included(absl::string_view why) const {
    std::string files;
    for (const auto& [path, content] : contents_) {
      const bool named = path != model_ && IsXml(content) && absl::StrContains(why, ", line 0");
      if (named) absl::StrAppend(&files, files.empty() ? "" : ", ", OnDisk(path));
    }
    return files.empty() ? "" : absl::StrCat("\n(MuJoCo says line 0 for every line of an included file: ", files, ")");
  }

  const std::string* Find(const std::string& path) {
    if (const auto known = contents_.find(path); known != contents_.end()) return &known->second;
    const std::string place = OnDisk(path);
    if (!status_.ok() || !IsFile(place)) return nullptr;
    absl::StatusOr<std::string> content = ReadFile(place, kMaxFileBytes);
    status_ = content.status();
    if (!status_.ok()) return nullptr;
    std::string& kept = contents_[path] = *content;
    if (!IsXml(kept)) return &kept;
    kept = WithoutAbsolutePaths(*content);
    rewritten_ |= kept != *content;
    // MuJoCo makes no copy before it has read all that a model includes.
    status_ = CheckCopies(model_, [this](const std::string& file) { return Known(file); });
    return status_.ok() ? &kept : nullptr;
  }

  const std::string* Known(const std::string& path) const {
    const auto known = contents_.find(path);
    return known == contents_.end() ? nullptr : &known->second;
  }

  std::string model_;
  std::map<std::string, std::string> contents_;
  bool rewritten_ = false;
  absl::Status status_;
};
#else
// MuJoCo 2 does not say what it reads. These are the files of every place where it could look.
class FoundFiles {
 public:
  absl::StatusOr<MujocoModel> Read(const std::string& model) {
    const fs::path folder = fs::path(model).parent_path();
    model_ = model;
    RETURN_IF_ERROR(Add(model));
    for (size_t before = 0; before != contents_.size();) {
      before = contents_.size();
      for (const auto& [from, given] : std::set(references_)) {
        for (const std::string& within : std::set(folders_)) {
          for (const fs::path& base : {folder, fs::path(from)}) {
            RETURN_IF_ERROR(Add(base / within / given));
            RETURN_IF_ERROR(Add(base / within / fs::path(given).filename()));
          }
        }
      }
    }
    const absl::StatusOr<MujocoModel> compiled = LoadMujocoModel(model);
    if (compiled.ok()) return compiled;
    return Wrong("model", absl::StrCat(fs::path(model).filename().string(), ": ", compiled.status().message()));
  }
  std::map<std::string, std::string>& contents() { return contents_; }

 private:
  absl::Status Add(const fs::path& given) {
    const fs::path path = given.lexically_normal();
    if (!IsFile(path) || contents_.count(path.string()) > 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string content, ReadFile(path.string(), kMaxFileBytes));
    contents_[path.string()] = content;
    if (!IsXml(content)) return absl::OkStatus();
    RETURN_IF_ERROR(CheckCopies(model_, [this](const std::string& file) {
      const auto known = contents_.find(file);
      return known == contents_.end() ? nullptr : &known->second;
    }));
    ForEachAttribute(content, [&](absl::string_view name, absl::string_view value) {
      if (NamesFolder(name)) folders_.emplace(value);
      if (NamesFile(name)) references_.emplace(path.parent_path().string(), value);
    });
    return absl::OkStatus();
  }

  std::string model_;
  std::map<std::string, std::string> contents_;
  std::set<std::string> folders_ = {""};
  std::set<std::pair<std::string, std::string>> references_;  // folder of the file, what it names
};
#endif

// The lowest folder that has both.
fs::path CommonFolder(const fs::path& one, const fs::path& other) {
  fs::path common;
  auto a = one.begin(), b = other.begin();
  for (; a != one.end() && b != other.end() && *a == *b; ++a, ++b) common /= *a;
  return common;
}

}  // namespace

bool IsXml(absl::string_view content) {
  if (absl::StartsWith(content, "\xEF\xBB\xBF")) content.remove_prefix(3);
  const size_t first = content.find_first_not_of(kXmlSpace);
  return first != absl::string_view::npos && content[first] == '<';
}

absl::Status AddModelFiles(const std::string& path, v1::TextTask* task) {
  if (!IsFile(path)) return Wrong("model", "there is no file " + fs::path(path).lexically_normal().string());
  std::error_code error;
  fs::path model = AbsolutePath(path);
  if (!fs::equivalent(model, path, error)) model = fs::canonical(path, error);  // ".." behind a link
  FoundFiles found;
  ASSIGN_OR_RETURN(const MujocoModel original, found.Read(model.string()));
  fs::path folder = model.parent_path();
  for (const auto& [file, content] : found.contents()) folder = CommonFolder(folder, fs::path(file).parent_path());
  std::vector<std::pair<std::string, std::string>> files;
  for (auto& [file, content] : found.contents()) {
    const std::string name = fs::path(file).lexically_relative(folder).string();
    if (!IsUtf8(name)) return Wrong("model", absl::StrCat("the name of its file ", name, " is not UTF-8; rename it"));
    files.insert(file == model ? files.begin() : files.end(), {name, std::move(content)});
  }
  const auto copy = CompileMujocoFiles(files);
  if (!copy.ok()) return Wrong("model", absl::StrCat(model.filename().string(), ": ", copy.status().message()));
  RETURN_IF_ERROR(Annotate(CheckSameModel(*original, **copy), "model"));
  for (auto& [name, content] : files) {
    v1::TaskFile* const file = task->add_file();
    file->set_name(name);
    file->set_content(std::move(content));
  }
  return absl::OkStatus();
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
