#include "tests/chaos/synced_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string>

namespace datacom::testing {
namespace {

struct Mapping {
  char* data;
  size_t bytes;
  off_t offset;
  ino_t inode;
};

std::mutex mutex;
Mapping mappings[64];
int mapping_count = 0;

std::string Shadow(ino_t inode, const char* suffix) {
  return std::string(std::getenv("DATACOM_TEST_DISK_SHADOW")) + "/" + std::to_string(inode) + suffix;
}

bool IsBelowRoot(const std::string& path) {
  const char* root = std::getenv("DATACOM_TEST_DISK_ROOT");
  if (root == nullptr || std::getenv("DATACOM_TEST_DISK_SHADOW") == nullptr) return false;
  return path == root || path.rfind(std::string(root) + "/", 0) == 0;
}

std::string LinkTo(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

bool IsBelowRoot(int fd) {
  char path[4096];
  const ssize_t length = ::readlink(LinkTo(fd).c_str(), path, sizeof path - 1);
  return length > 0 && IsBelowRoot(std::string(path, static_cast<size_t>(length)));
}

void Hold(int fd, ino_t inode) {
  const int held = ::linkat(AT_FDCWD, LinkTo(fd).c_str(), AT_FDCWD, Shadow(inode, ".held").c_str(), AT_SYMLINK_FOLLOW);
  if (held != 0 && errno != EEXIST && errno != ENOENT) std::abort();  // ENOENT: the file is removed
}

void WriteAt(int fd, const std::string& content, off_t offset) {
  if (::pwrite(fd, content.data(), content.size(), offset) != static_cast<ssize_t>(content.size())) std::abort();
}

// Whole or not at all, also when this process is killed.
void Replace(const std::string& path, const std::string& content) {
  const std::string temporary = path + "." + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) std::abort();
  WriteAt(fd, content, 0);
  ::close(fd);
  if (::syscall(SYS_rename, temporary.c_str(), path.c_str()) != 0) std::abort();
}

// The descriptor of the caller may be write-only.
std::string ContentOf(int fd) {
  const int copy = ::open(LinkTo(fd).c_str(), O_RDONLY | O_CLOEXEC);
  if (copy < 0) std::abort();
  std::string content;
  char buffer[1 << 14];
  for (ssize_t count = 0; (count = ::read(copy, buffer, sizeof buffer)) > 0;)
    content.append(buffer, static_cast<size_t>(count));
  ::close(copy);
  return content;
}

std::string EntriesOf(int fd) {
  DIR* folder = ::fdopendir(::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder == nullptr) std::abort();
  std::string lines;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    lines += std::string(entry->d_type == DT_DIR ? "d " : "f ") + std::to_string(entry->d_ino) + " " + name + "\n";
  }
  ::closedir(folder);
  return lines;
}

}  // namespace

int SyncFileOrFolder(int fd) {
  struct stat info;
  if (!IsBelowRoot(fd) || ::fstat(fd, &info) != 0) return static_cast<int>(::syscall(SYS_fsync, fd));
  const std::lock_guard<std::mutex> lock(mutex);
  const bool folder = S_ISDIR(info.st_mode);
  const std::string certain = folder ? EntriesOf(fd) : ContentOf(fd);
  const int result = static_cast<int>(::syscall(SYS_fsync, fd));
  if (result != 0) return result;
  if (!folder) Hold(fd, info.st_ino);
  Replace(Shadow(info.st_ino, folder ? ".entries" : ".content"), certain);
  return 0;
}

int SyncMapping(void* address, size_t bytes, int flags) {
  const std::lock_guard<std::mutex> lock(mutex);
  const char* begin = static_cast<char*>(address);
  const Mapping* mapping = std::find_if(mappings, mappings + mapping_count, [begin](const Mapping& one) {
    return begin >= one.data && begin < one.data + one.bytes;
  });
  if (mapping == mappings + mapping_count) return static_cast<int>(::syscall(SYS_msync, address, bytes, flags));
  const off_t at = begin - mapping->data;
  const std::string certain(begin, std::min(bytes, mapping->bytes - static_cast<size_t>(at)));
  const int result = static_cast<int>(::syscall(SYS_msync, address, bytes, flags));
  if (result != 0) return result;
  const int shadow = ::open(Shadow(mapping->inode, ".content").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const off_t end = mapping->offset + static_cast<off_t>(mapping->bytes);
  struct stat info;
  if (shadow < 0 || ::fstat(shadow, &info) != 0) std::abort();
  if (info.st_size < end && ::ftruncate(shadow, end) != 0) std::abort();
  WriteAt(shadow, certain, mapping->offset + at);
  ::close(shadow);
  return 0;
}

void OnMapped(void* data, size_t bytes, int fd, off_t offset) {
  struct stat info;
  if (!IsBelowRoot(fd) || ::fstat(fd, &info) != 0) return;
  const std::lock_guard<std::mutex> lock(mutex);
  if (mapping_count == static_cast<int>(std::size(mappings))) std::abort();
  Hold(fd, info.st_ino);
  mappings[mapping_count++] = {static_cast<char*>(data), bytes, offset, info.st_ino};
}

void OnUnmapped(void* data) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (int i = 0; i < mapping_count; ++i) {
    if (mappings[i].data != data) continue;
    mappings[i] = mappings[--mapping_count];
    break;
  }
}

void OnFolderMade(const char* path) {
  struct stat info;
  if (!IsBelowRoot(std::string(path)) || ::stat(path, &info) != 0) return;
  ::unlink(Shadow(info.st_ino, ".entries").c_str());  // of a removed folder that had this inode
}

}  // namespace datacom::testing
// SPDX-License-Identifier: Apache-2.0
