#include "common/base/output_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/shell_word.h"
#include "common/base/status.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;

constexpr char kDash[] = "-";
constexpr int kMostLinks = 40;  // as the kernel

// A link like /proc/self/fd/1 names an open file, and not by a path that can be replaced.
bool NamesOpenFile(const fs::path& link) {
  struct statfs system = {};
  return ::statfs(ParentFolder(link.string()).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

absl::Status Refusal(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, " is a ", what, "; name a file"));
}

// The folder of the run that goes on from this existing file; empty if there is none.
std::string RunThatNeeds(const std::string& path) {
  static constexpr const char* kParts[] = {
      "run_id",   "experiment.textproto", "progress.csv", "episodes.csv", "replay",
      "policies", "checkpoints",          "ledger",       "tensorboard",  "task_files"};
  constexpr int kDeepest = 3;  // checkpoints/N/FILE
  fs::path run = AbsolutePath(path), part;
  for (int level = 0; level < kDeepest && FileExists(path); ++level) {
    part = run.filename();
    run = run.parent_path();
    const bool needed = std::any_of(std::begin(kParts), std::end(kParts), [&](const char* one) { return part == one; });
    if (part == "policies" && !absl::EndsWith(path, ".snapshot")) return "";  // an exported one
    if (needed && FileExists((run / "run_id").string())) return run.string();
  }
  return "";
}

absl::Status WriteStandardOutput(absl::string_view content) {
  if (::isatty(STDOUT_FILENO) == 1 && content.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        "standard output is a terminal, and these bytes are no text; redirect it to a file or a program");
  }
  std::fflush(stdout);
  const int error = WriteAll(STDOUT_FILENO, &content);
  if (error == 0 || error == EPIPE) return absl::OkStatus();  // EPIPE: its reader has seen enough
  return ErrnoStatus(error, "standard output");
}

// Opens a FIFO, a device or an open file of this process. A FIFO waits for its reader.
int OpenInPlace(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC;
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode)) {
    const int ready = ::open(path.c_str(), kFlags | O_NONBLOCK);
    if (ready >= 0) {
      ::fcntl(ready, F_SETFL, 0);  // a full FIFO blocks
      return ready;
    }
    if (errno == ENXIO) std::fprintf(stderr, "datacom: %s is a FIFO; waiting for its reader\n", path.c_str());
  }
  return ::open(path.c_str(), kFlags);
}

absl::Status WriteInPlace(const std::string& path, absl::string_view content) {
  const int fd = OpenInPlace(path);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  const int error = WriteAll(fd, &content);
  const int closed = ::close(fd) == 0 ? 0 : errno;
  if (error != 0) return ErrnoStatus(error, "write " + path);
  return closed == 0 ? absl::OkStatus() : ErrnoStatus(closed, "close " + path);
}

}  // namespace

bool IsStandardOutput(const std::string& path) {
  if (path == kDash) return true;
  struct stat named = {}, output = {};
  if (::stat(path.c_str(), &named) != 0 || ::fstat(STDOUT_FILENO, &output) != 0) return false;
  if (named.st_dev != output.st_dev || named.st_ino != output.st_ino) return false;
  if (S_ISCHR(named.st_mode)) return ::isatty(STDOUT_FILENO) == 1;  // what /dev/null gets is not mixed
  const absl::StatusOr<std::string> replaced = ReplacedFile(path);
  return replaced.ok() && replaced->empty();
}

absl::StatusOr<std::string> ReplacedFile(const std::string& path) {
  if (path == kDash) return std::string();
  fs::path at = path;
  for (int link = 0; link < kMostLinks; ++link) {
    if (!at.has_filename()) return Refusal(path, "folder");
    struct stat info = {};
    if (::lstat(at.c_str(), &info) != 0) {
      if (errno == ENOENT) return at.string();
      return ErrnoStatus(errno, path);
    }
    if (S_ISREG(info.st_mode) && ::access(at.c_str(), W_OK) != 0) return ErrnoStatus(errno, path);
    if (S_ISREG(info.st_mode)) return at.string();
    if (S_ISDIR(info.st_mode)) return Refusal(path, "folder");
    if (S_ISSOCK(info.st_mode)) return Refusal(path, "socket");
    if (!S_ISLNK(info.st_mode) || NamesOpenFile(at)) return std::string();
    std::error_code error;
    const fs::path target = fs::read_symlink(at, error);
    if (error) return ErrnoStatus(error.value(), path);
    at = at.parent_path() / target;  // an absolute target stands alone
  }
  return ErrnoStatus(ELOOP, path);
}

absl::Status CheckOutputFile(const std::string& option, const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError(absl::StrCat(option, ": name a file"));
  ASSIGN_OR_RETURN(const std::string replaced, Annotate(ReplacedFile(path), option));
  if (replaced.empty()) return absl::OkStatus();
  if (const std::string run = RunThatNeeds(replaced); !run.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", path, " is a part of the run ", run, ", which needs it; name another file"));
  }
  const fs::path folder = ParentFolder(replaced);
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    const std::string name = fs::absolute(folder, error).string();
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", path, ": there is no folder ", name, "; make it with: mkdir -p ", ShellWord(name)));
  }
  if (::access(folder.c_str(), W_OK) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat(option, ": folder ", folder.string()));
}

absl::Status WriteOutputFile(const std::string& path, absl::string_view content) {
  if (IsStandardOutput(path)) return WriteStandardOutput(content);
  ASSIGN_OR_RETURN(const std::string replaced, ReplacedFile(path));
  return replaced.empty() ? WriteInPlace(path, content) : WriteFileAtomically(replaced, content);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
