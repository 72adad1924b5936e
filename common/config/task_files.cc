#include "common/config/task_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/gzip.h"
#include "common/config/sha256.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 64;
constexpr char kTaskFilesVariable[] = "DATACOM_TASK_FILES";
constexpr uint64_t kMostBytes = uint64_t{256} << 20;

std::string NameOf(const v1::TaskFile& file) { return absl::StrCat(file.sha256(), ".gz"); }

// Folders with the files of a text in `folder`. The first one is written.
std::vector<fs::path> Places(const std::string& folder) {
  std::vector<fs::path> places = {fs::path(folder) / kTaskFilesFolder, fs::path(folder)};
  if (const char* const other = std::getenv(kTaskFilesVariable)) places.emplace_back(other);
  return places;
}

// The digits become a file's name.
absl::Status CheckSha256(const v1::TaskFile& file) {
  const std::string& digits = file.sha256();
  const auto is_digit = [](char c) { return absl::ascii_isxdigit(c) && !absl::ascii_isupper(c); };
  if (digits.size() == kDigits && std::all_of(digits.begin(), digits.end(), is_digit)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("task_options: the file ", file.name(), " has the sha256 \"", digits,
                                                 "\"; write 64 hexadecimal digits in lower case"));
}

}  // namespace

absl::StatusOr<std::vector<const v1::TaskFile*>> MissingTaskFiles(const v1::TaskOptions& options) {
  std::vector<const v1::TaskFile*> missing;
  for (const v1::TaskFile& file : options.GetExtension(v1::text_task).file()) {
    if (!file.has_sha256()) continue;
    RETURN_IF_ERROR(CheckSha256(file));
    if (!file.has_gzip()) missing.push_back(&file);
  }
  return missing;
}

absl::Status AddTaskFiles(const std::function<absl::StatusOr<std::string>(const v1::TaskFile&)>& read,
                          v1::TaskOptions* options) {
  ASSIGN_OR_RETURN(const std::vector<const v1::TaskFile*> missing, MissingTaskFiles(*options));
  if (missing.empty()) return absl::OkStatus();  // do not make an extension
  for (v1::TaskFile& file : *options->MutableExtension(v1::text_task)->mutable_file()) {
    if (!file.has_sha256() || file.has_gzip()) continue;
    ASSIGN_OR_RETURN(*file.mutable_gzip(), read(file));
  }
  return absl::OkStatus();
}

absl::Status AddTaskFiles(const std::string& folder, v1::TaskOptions* options) {
  ASSIGN_OR_RETURN(const std::vector<const v1::TaskFile*> missing, MissingTaskFiles(*options));
  if (missing.empty()) return absl::OkStatus();
  for (v1::TaskFile& file : *options->MutableExtension(v1::text_task)->mutable_file()) {
    if (!file.has_sha256()) continue;
    for (const fs::path& place : Places(folder)) {
      const std::string path = (place / NameOf(file)).string();
      if (file.has_gzip() || !FileExists(path)) continue;
      ASSIGN_OR_RETURN(*file.mutable_gzip(), ReadFile(path, kMostBytes));
    }
  }
  return absl::OkStatus();
}

namespace {

// most: bytes, if it is compressed.
absl::StatusOr<std::string> ContentOf(const v1::TaskFile& file, size_t most) {
  if (!file.has_gzip() && file.has_sha256()) {
    return absl::FailedPreconditionError(absl::StrCat("model: the content of ", file.name(),
                                                      " is missing: there is no ", kTaskFilesFolder, "/", NameOf(file),
                                                      " beside the experiment"));
  }
  const std::string name = absl::StrCat("model: the file ", file.name());
  std::string content = file.content();
  if (file.has_gzip()) {
    ASSIGN_OR_RETURN(content, Annotate(Gunzip(file.gzip(), most), name));
  }
  if (file.has_sha256() && Sha256Hex(content) != file.sha256()) {
    return absl::DataLossError(absl::StrCat(name, " is damaged: its SHA-256 is not ", file.sha256()));
  }
  return content;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ContentsOf(const v1::TextTask& task) {
  std::vector<std::string> contents;
  size_t left = kMaxTaskBytes;  // a file of some kilobytes may become gigabytes
  for (const v1::TaskFile& file : task.file()) {
    ASSIGN_OR_RETURN(std::string content, ContentOf(file, left));
    if (file.has_gzip()) left -= content.size();
    contents.push_back(std::move(content));
  }
  return contents;
}

absl::Status CheckTaskFiles(const std::string& folder, const v1::TaskOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<const v1::TaskFile*> missing, MissingTaskFiles(options));
  if (!missing.empty()) {
    const fs::path beside = fs::path(folder.empty() ? "." : folder) / kTaskFilesFolder / NameOf(*missing.front());
    return absl::FailedPreconditionError(absl::StrCat(
        "task_options: the content of ", missing.size(), " of the model's files is missing, first of ",
        missing.front()->name(), ": there is no ", beside.lexically_normal().string(), "; copy the folder ",
        kTaskFilesFolder, " with the experiment, or name it in ", kTaskFilesVariable));
  }
  return Annotate(ContentsOf(options.GetExtension(v1::text_task)).status(), "task_options");
}

absl::Status WriteTaskFiles(const std::string& folder, const v1::TaskOptions& options) {
  for (const v1::TaskFile& file : options.GetExtension(v1::text_task).file()) {
    if (!file.has_sha256() || !file.has_gzip()) continue;
    RETURN_IF_ERROR(CheckSha256(file));
    const fs::path place = Places(folder).front();
    const std::string path = (place / NameOf(file)).string();
    if (FileExists(path)) continue;
    RETURN_IF_ERROR(MakeFolders(place.string()));
    RETURN_IF_ERROR(WriteFileAtomically(path, file.gzip()));
  }
  return absl::OkStatus();
}

void DropTaskFiles(v1::TaskOptions* options) {
  if (!options->HasExtension(v1::text_task)) return;
  for (v1::TaskFile& file : *options->MutableExtension(v1::text_task)->mutable_file()) {
    if (file.has_sha256()) file.clear_gzip();
  }
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
