#include "common/tasks/text/python_package.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::text {
namespace {

// Prints the package's folder, or nothing. The working directory is not searched.
constexpr char kFind[] =
    "import sys, importlib.util as util; sys.path[:] = filter(None, sys.path); "
    "spec = util.find_spec(sys.argv[1]); print(*list(spec and spec.submodule_search_locations or [])[:1])";

}  // namespace

absl::StatusOr<std::string> FindInPythonPackage(absl::string_view reference) {
  const size_t slash = reference.find('/');
  const std::string package(reference.substr(0, slash));
  const bool plain = !package.empty() && std::all_of(package.begin(), package.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_';
  });
  if (!plain || slash == absl::string_view::npos || slash + 1 == reference.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", kPythonPrefix, reference, "\" is not ", kPythonPrefix, "PACKAGE/FILE"));
  }
  // The shell sees only letters, digits and '_' of the package's name.
  FILE* const pipe = ::popen(absl::StrCat("exec python3 -c '", kFind, "' ", package, " 2>/dev/null").c_str(), "re");
  if (pipe == nullptr) return ErrnoStatus(errno, "run python3");
  std::string folder;
  std::array<char, 4096> block{};
  while (const size_t count = std::fread(block.data(), 1, block.size(), pipe)) folder.append(block.data(), count);
  const int code = ::pclose(pipe);
  absl::StripTrailingAsciiWhitespace(&folder);
  if (code != 0 || folder.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the python3 of PATH has no package ", package,
                                                   "; install it, or activate the virtual environment that has it"));
  }
  return absl::StrCat(folder, reference.substr(slash));
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
