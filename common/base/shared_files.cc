#include "common/base/shared_files.h"

#include <filesystem>
#include <system_error>

namespace datacom {

std::string FindSharedFile(const std::string& name, const std::string& otherwise) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path at = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (; !error && at.has_relative_path(); at = at.parent_path()) {
    for (const char* const inside : {"deploy", "share/datacom"}) {
      std::error_code absent;
      const fs::path candidate = at / inside / name;
      if (fs::exists(candidate, absent)) return candidate.string();
    }
  }
  return otherwise;
}

std::string SharedPath(const std::string& name) {
  const std::string found = FindSharedFile(name, "deploy/" + name);
  std::error_code absent;
  const std::string here = std::filesystem::current_path(absent).string() + "/";
  return found.rfind(here, 0) == 0 ? found.substr(here.size()) : found;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
