#include "common/base/plugins.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/mutex.h"
#include "common/base/plugin_stamp.h"
#include "common/base/status.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;

Mutex mutex;
std::map<std::string, fs::path>& Loaded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {  // by name
  static auto* const loaded = new std::map<std::string, fs::path>;
  return *loaded;
}

absl::Status Refuse(const fs::path& file, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("plug-in ", file.string(), ": ", why));
}

// Reads the stamp without loading the file.
absl::Status CheckStamp(const fs::path& file) {
  const absl::StatusOr<std::string> content = ReadFile(file.string());
  if (!content.ok()) return Refuse(file, std::string(content.status().message()));
  const std::string mark = DATACOM_PLUGIN_MARK;
  const size_t at = content->find(mark);
  if (at == std::string::npos) {
    return Refuse(file, "this is no plug-in of datacom; CMake's datacom_add_plugin makes one");
  }
  const std::string stamp = content->c_str() + at + mark.size();  // ends with a zero
  if (stamp == DATACOM_PLUGIN_STAMP) return absl::OkStatus();
  return Refuse(file, absl::StrCat("built for \"", stamp, "\", but this program is \"", DATACOM_PLUGIN_STAMP,
                                   "\"; build the plug-in with this version's package"));
}

absl::Status LoadFile(const fs::path& file) {
  RETURN_IF_ERROR(CheckStamp(file));
  if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return absl::OkStatus();
  return Refuse(file, ::dlerror());
}

// A program's symbols are visible to what it loads. If this code is in a library, such as Python's, they become so
// here.
void ShowSymbols() {
  Dl_info self;
  if (::dladdr(reinterpret_cast<const void*>(&ShowSymbols), &self) == 0) return;
  ::dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);  // refused for a program
}

absl::Status LoadPlugin(const fs::path& file, const std::vector<PluginPart>& parts)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  const auto [entry, fresh] = Loaded().emplace(file.stem().string(), file);
  if (!fresh && entry->second == file) return absl::OkStatus();
  if (!fresh) return Refuse(file, absl::StrCat("another one has this name: ", entry->second.string()));
  absl::Status status = LoadFile(file);
  for (const PluginPart part : parts) {
    const char* const suffix = part == PluginPart::kSimulator ? ".simulator.so" : ".learner.so";
    const fs::path beside = fs::path(file).replace_extension(suffix);
    if (status.ok() && FileExists(beside.string())) status = LoadFile(beside);
  }
  if (!status.ok()) Loaded().erase(entry);
  return status;
}

}  // namespace

absl::Status LoadPlugins(const std::vector<PluginPart>& parts) {
  const char* const files = std::getenv(kPluginsVariable);
  if (files == nullptr || *files == '\0') return absl::OkStatus();
  const MutexLock lock(&mutex);
  ShowSymbols();
  for (const absl::string_view file : absl::StrSplit(files, ':', absl::SkipEmpty())) {
    RETURN_IF_ERROR(LoadPlugin(AbsolutePath(std::string(file)), parts));
  }
  return absl::OkStatus();
}

std::vector<std::string> LoadedPlugins() {
  const MutexLock lock(&mutex);
  std::vector<std::string> names;
  for (const auto& [name, file] : Loaded()) names.push_back(name);
  return names;
}

absl::Status CheckPlugins(const std::vector<std::string>& needed) {
  const MutexLock lock(&mutex);
  for (const std::string& name : needed) {
    if (Loaded().count(name) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("this needs the plug-in ", name,
                                                   ", which is not loaded: --plugin PATH/", name,
                                                   ".so, or the path in ", kPluginsVariable));
  }
  return absl::OkStatus();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
