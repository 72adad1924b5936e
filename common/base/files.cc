#include "common/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/machine.h"
#include "common/base/output_file.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr size_t kLongestBelow = 200;  // bytes of the longest path below a run folder, with room

absl::Status WriteAndSync(int fd, absl::string_view content, const std::string& path) {
  const size_t bytes = content.size();
  const int error = WriteAll(fd, &content);
  if (error == ENOSPC) {
    [[maybe_unused]] const int cut = ::ftruncate(fd, 0);  // what it has is free without it
    return absl::ResourceExhaustedError(NoSpaceMessage(path, bytes));
  }
  if (error != 0) return ErrnoStatus(error, "write " + path);
  if (::fsync(fd) != 0) return ErrnoStatus(errno, "fsync " + path);
  return absl::OkStatus();
}

int Create(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);  // O_EXCL: links are not followed
}

bool Names(const std::string& path, int fd) {
  struct stat named = {}, opened = {};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

bool WasRemoved(int fd) {
  struct stat info = {};
  return ::fstat(fd, &info) == 0 && info.st_nlink == 0;
}

bool IsHeldByAnother(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

// Removes what a killed process or somebody else left there. Returns 0, EBUSY where a writer holds the file, or errno.
int RemoveLeftover(const std::string& path) {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int fd = ::open(path.c_str(), O_WRONLY | kFlags);
  if (fd < 0 && errno == EACCES) fd = ::open(path.c_str(), O_RDONLY | kFlags);  // it may replace a read-only file
  int error = 0;
  if (fd >= 0 && IsHeldByAnother(fd)) {
    error = EBUSY;
  } else if ((fd < 0 || Names(path, fd)) && ::unlink(path.c_str()) != 0 && errno != ENOENT) {
    error = errno;
  }
  if (fd >= 0) ::close(fd);
  return error;
}

// Opens a new file beside `path`, PATH.tmp or, where another process writes `path` now, PATH.1.tmp and so on; a name
// that would be too long loses its end. It is locked while it is open, so that no other writer takes it for left over.
int OpenTemporary(const std::string& path, std::string* name) {
  constexpr int kMostWriters = 100;
  for (int i = 0; i < kMostWriters; ++i) {
    const std::string ending = i == 0 ? ".tmp" : absl::StrCat(".", i, ".tmp");
    const size_t bytes = path.size() - (path.rfind('/') + 1) + ending.size();  // of the name; npos + 1 is 0
    *name = path.substr(0, path.size() - (bytes > NAME_MAX ? bytes - NAME_MAX : 0)) + ending;
    int fd = Create(*name);
    if (fd < 0 && errno == EEXIST) {
      errno = RemoveLeftover(*name);
      if (errno == EBUSY) continue;
      if (errno != 0) return -1;
      fd = Create(*name);
      if (fd < 0 && errno == EEXIST) continue;  // of another writer
    }
    if (fd < 0 || (!IsHeldByAnother(fd) && !WasRemoved(fd))) return fd;
    ::close(fd);  // another writer took it for left over before it was locked
  }
  errno = EBUSY;
  return -1;
}

// Gives a new file the mode and, where this user may, the owner of the one that it replaces: a private file stays
// private, and root takes it from nobody.
void KeepAccess(const std::string& path, int fd) {
  struct stat former = {};
  if (::stat(path.c_str(), &former) != 0) return;
  ::fchmod(fd, former.st_mode & 0777);
  [[maybe_unused]] const int owned = ::fchown(fd, former.st_uid, former.st_gid);
}

}  // namespace

absl::StatusOr<OpenedFile> OpenedFile::Open(const std::string& path, Links links) {
  const bool refuse = links == Links::kRefuse;
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (refuse ? O_NOFOLLOW : 0);  // a pipe would block
  OpenedFile file(path, ::open(path.c_str(), flags));
  if (file.fd_ < 0 && errno == ELOOP && refuse) return absl::InvalidArgumentError(path + " may not be a link");
  if (file.fd_ < 0) return ErrnoStatus(errno, "open " + path);
  struct stat info = {};
  if (::fstat(file.fd_, &info) != 0) return ErrnoStatus(errno, "stat " + path);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

OpenedFile::~OpenedFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<std::string> OpenedFile::Read(uint64_t from, uint64_t to) const {
  constexpr uint64_t kMany = uint64_t{64} << 20;
  if (const uint64_t free = to - from > kMany ? AvailableMemory() : UINT64_MAX; to - from > free) {
    return absl::ResourceExhaustedError(
        absl::StrCat("read ", path_, ": ", to - from, " bytes; ", free, " bytes of memory are free"));
  }
  std::string bytes(to - from, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(from + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "read " + path_);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t most) {
  constexpr uint64_t kPiece = 1 << 16, kMostGrowth = 16 << 20;
  ASSIGN_OR_RETURN(const OpenedFile file, OpenedFile::Open(path));
  if (file.size() > most) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has ", file.size(), " bytes; at most ", most, " are read"));
  }
  ASSIGN_OR_RETURN(std::string content, file.Read(0, file.size()));
  while (content.size() <= file.size() + kMostGrowth) {  // a file may grow, and those of the kernel have no size
    ASSIGN_OR_RETURN(const std::string more, file.Read(content.size(), content.size() + kPiece));
    if (more.empty()) return content;
    content += more;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has ", file.size(), " bytes, and ", kMostGrowth, " more follow: it is no file of a disk"));
}

bool FileExists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory) return ErrnoStatus(error.value(), "list " + path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status CheckFolderName(const std::string& option, const std::string& path) {
  const auto wrong = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(option, ": ", what, ": \"", absl::Utf8SafeCHexEscape(path), "\""));
  };
  for (const std::filesystem::path& name : std::filesystem::path(path)) {
    if (name.native().size() > NAME_MAX) {
      return wrong(absl::StrCat("a name of ", name.native().size(), " bytes, file systems take ", NAME_MAX));
    }
  }
  if (path.size() >= PATH_MAX - kLongestBelow) {
    return wrong(
        absl::StrCat("a path of ", path.size(), " bytes, at most ", PATH_MAX - kLongestBelow - 1, " are taken"));
  }
  if (std::any_of(path.begin(), path.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    return wrong("a control character");
  }
  return IsUtf8(path) ? absl::OkStatus() : wrong("bytes that are not UTF-8");
}

int WriteAll(int fd, absl::string_view* content) {
  while (!content->empty()) {
    const ssize_t written = ::write(fd, content->data(), content->size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) content->remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  std::string temporary;
  const int fd = OpenTemporary(path, &temporary);
  if (fd < 0) return ErrnoStatus(errno, "open " + temporary);
  KeepAccess(path, fd);
  absl::Status status = WriteAndSync(fd, content, temporary);
  DATACOM_FAILPOINT("file.written");
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = ErrnoStatus(errno, "rename to " + path);
  if (!status.ok()) ::unlink(temporary.c_str());
  ::close(fd);  // now another writer may take the name
  RETURN_IF_ERROR(status);
  DATACOM_FAILPOINT("file.renamed");
  return SyncName(path);
}

absl::Status SyncFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if ((error == EINVAL || error == EOPNOTSUPP) && IsFolder(path)) return absl::OkStatus();  // see files.h
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, "fsync " + path);
}

std::string ParentFolder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

absl::Status SyncName(const std::string& path) { return SyncFile(ParentFolder(path)); }

absl::Status MakeFolders(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> missing;
  for (fs::path folder = path; !folder.empty() && !fs::exists(folder, error); folder = folder.parent_path()) {
    if (folder.has_filename()) missing.push_back(folder.string());
  }
  error.clear();
  fs::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), "create folder " + path);
  for (const std::string& folder : missing) RETURN_IF_ERROR(SyncName(folder));
  return absl::OkStatus();
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::create_directory(path, error)) return SyncName(path);
  return error ? ErrnoStatus(error.value(), "create folder " + path) : absl::OkStatus();  // else it was there
}

std::string NormalPath(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path up, rest;  // as far as the last "..", and what follows
  for (const fs::path& part : fs::path(path)) {
    rest /= part;
    if (part == "..") up /= std::exchange(rest, fs::path());
  }
  std::error_code error;
  const bool by_text = up.empty() || fs::equivalent(up, up.lexically_normal(), error);
  const fs::path real = by_text ? up : fs::canonical(up, error);
  return (by_text || error ? fs::path(path) : real / rest).lexically_normal().string();
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return NormalPath(error ? path : absolute.string());
}

absl::StatusOr<std::string> TemporaryFolder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (!error) return folder.string();
  const char* const set = std::getenv("TMPDIR");
  return absl::NotFoundError(
      absl::StrCat("no folder for temporary files: TMPDIR is \"", set == nullptr ? "" : set, "\": ", error.message()));
}

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

absl::StatusOr<uint64_t> FreeBytes(const std::string& path) {
  struct statvfs info;
  if (::statvfs(path.c_str(), &info) != 0) return ErrnoStatus(errno, "statvfs " + path);
  if (info.f_blocks == 0) return kUnknownSize;
  return uint64_t{info.f_bavail} * info.f_frsize;
}

std::string NoSpaceMessage(const std::string& path, uint64_t bytes) {
  const auto free = FreeBytes(ParentFolder(path));
  return absl::StrCat("no disk space for ", path, ": ", bytes, " bytes are needed, ", free.ok() ? *free : 0,
                      " are free");
}

absl::Status WriteAddressFile(const std::string& path, const std::string& address) {
  return path.empty() ? absl::OkStatus() : WriteOutputFile(path, address + "\n");
}

absl::StatusOr<std::unique_ptr<FolderLock>> FolderLock::Lock(int fd, const std::string& path, const std::string& held) {
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  std::unique_ptr<FolderLock> lock(new FolderLock(fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "lock " + path);
  return absl::FailedPreconditionError(held);
}

absl::StatusOr<std::unique_ptr<FolderLock>> FolderLock::Take(const std::string& folder) {
  const std::string path = folder + "/lock";
  const std::string held = "another process is using " + folder + ": stop it, or choose another run folder";
  ASSIGN_OR_RETURN(auto lock, Lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644), path, held));
  // A user may remove the file that a process has locked, but not the folder. Some file systems lock no folders.
  lock->folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock->folder_ >= 0 && IsHeldByAnother(lock->folder_)) return absl::FailedPreconditionError(held);
  return lock;
}

absl::StatusOr<std::unique_ptr<FolderLock>> FolderLock::TakeFile(const std::string& path) {
  const std::string held = "another process holds " + path;
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && (errno == EACCES || errno == EROFS || errno == EISDIR)) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  return Lock(fd, path, held);
}

FolderLock::~FolderLock() {
  ::close(file_);
  if (folder_ >= 0) ::close(folder_);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
