#include "common/tasks/text/task_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/gzip.h"
#include "common/config/sha256.h"
#include "common/config/task_files.h"
#include "common/config/textproto.h"
#include "common/tasks/text/model_files.h"
#include "google/protobuf/text_format.h"

namespace datacom::text {
namespace {

constexpr char kPythonPrefix[] = "python:";

// Prints the package's folder, or nothing. The working directory is not searched, not even for what this imports.
constexpr char kFind[] =
    "import sys; sys.path[:] = filter(None, sys.path); import importlib.util as util; "
    "spec = util.find_spec(sys.argv[1]); print(*list(spec and spec.submodule_search_locations or [])[:1])";

// The path of FILE for "PACKAGE/FILE" (without the prefix), where the python3 of PATH finds the package; nothing is
// imported. The file need not exist. Blocks while python3 runs; thread-safe. INVALID_ARGUMENT for another form, and
// naming the package that is not installed.
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

namespace fs = std::filesystem;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

constexpr size_t kLarge = 64 << 10, kLargeBinary = 4 << 10;  // files of more bytes are compressed
constexpr size_t kNamed = 5;                                 // files in a message

// Text with bytes that are not ASCII is printed with escapes, as binary data are.
bool IsLarge(const std::string& content) {
  const auto is_text = [](char c) { return absl::ascii_isprint(c) || absl::ascii_isspace(c); };
  return content.size() > (std::all_of(content.begin(), content.end(), is_text) ? kLarge : kLargeBinary);
}

absl::Status TooLarge(const v1::TextTask& task, size_t bytes) {
  std::vector<std::pair<size_t, std::string>> largest;
  for (const v1::TaskFile& file : task.file()) largest.emplace_back(file.content().size(), file.name());
  std::sort(largest.rbegin(), largest.rend());
  if (largest.size() > kNamed) largest.resize(kNamed);
  const auto list = [](std::string* out, const auto& file) {
    absl::StrAppend(out, file.second, " (", file.first, " bytes)");
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "model: its files have ", bytes, " bytes together; at most ", kMaxTaskBytes,
      " are possible. The largest are: ", absl::StrJoin(largest, ", ", list),
      ". `datacom task new FOLDER --model FILE --no-visual` makes a copy without the meshes that only draw"));
}

// Position of the field that `path` ("cost[1].value") names; false if the file does not set it.
bool Locate(const std::string& path, const google::protobuf::Descriptor* type, TextFormat::ParseInfoTree* tree,
            TextFormat::ParseLocation* location) {
  bool found = false;
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    const size_t bracket = part.find('[');
    const FieldDescriptor* field = type->FindFieldByName(std::string(part.substr(0, bracket)));
    if (field == nullptr) return found;
    int index = field->is_repeated() ? 0 : -1;
    if (bracket != absl::string_view::npos &&
        !absl::SimpleAtoi(part.substr(bracket + 1, part.size() - bracket - 2), &index))
      return found;
    const TextFormat::ParseLocation here = tree->GetLocation(field, index);
    if (here.line < 0) return found;
    *location = here;
    found = true;
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return true;
    type = field->message_type();
    tree = tree->GetTreeForNested(field, index);
    if (tree == nullptr) return true;
  }
  return found;
}

}  // namespace

absl::Status CompressFiles(v1::TextTask* task) {
  size_t bytes = 0, carried = 0;
  for (const v1::TaskFile& file : task->file()) {
    bytes += file.content().size();
    if (!IsLarge(file.content())) carried += file.content().size();
  }
  if (bytes > kMaxTaskBytes) return TooLarge(*task, bytes);
  for (v1::TaskFile& file : *task->mutable_file()) {
    if (!IsLarge(file.content()) && carried <= kMaxCarriedBytes) continue;
    *file.mutable_gzip() = Gzip(file.content());
    file.set_sha256(Sha256Hex(file.content()));
    file.clear_content();
  }
  return absl::OkStatus();
}

bool IsTaskFile(absl::string_view task) { return absl::EndsWith(task, ".textproto"); }

absl::StatusOr<v1::TextTask> ReadTaskFile(const std::string& path) {
  const absl::StatusOr<std::string> content = ReadFile(path, kMaxCarriedBytes);
  if (!content.ok()) return absl::InvalidArgumentError(content.status().message());
  v1::TextTask task;
  RETURN_IF_ERROR(ParseTextproto(*content, path, task.mutable_definition()));
  if (task.definition().model().empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": model: must be set"));
  std::string model = (fs::path(path).parent_path() / task.definition().model()).string();
  if (absl::string_view packaged = task.definition().model(); absl::ConsumePrefix(&packaged, kPythonPrefix)) {
    absl::StatusOr<std::string> found = FindInPythonPackage(packaged);
    if (!found.ok()) return AtLine(path, Annotate(found.status(), "model"));
    model = *std::move(found);
  }
  if (const absl::Status status = AddModelFiles(model, &task); !status.ok()) return AtLine(path, status);
  if (const absl::Status status = CompressFiles(&task); !status.ok()) return AtLine(path, status);
  return task;
}

absl::Status AtLine(const std::string& path, const absl::Status& status) {
  const absl::StatusOr<std::string> content = ReadFile(path);
  const std::string message(status.message());
  TextFormat::Parser parser;
  TextFormat::ParseInfoTree tree;
  TextFormat::ParseLocation location;
  v1::TaskDefinition definition;
  parser.WriteLocationsTo(&tree);
  if (!content.ok() || !parser.ParseFromString(std::string(WithoutByteOrderMark(*content)), &definition) ||
      !Locate(message.substr(0, message.find(':')), definition.GetDescriptor(), &tree, &location)) {
    return Annotate(status, path);
  }
  return Annotate(status, absl::StrCat(path, ":", location.line + 1, ":", location.column + 1));
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
