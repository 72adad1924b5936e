#include "common/records/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr size_t kBufferBytes = 1 << 16;
constexpr size_t kPieceBytes = 1 << 20;

// The hash of the bytes before `end`, to which more can be added.
absl::StatusOr<Sha256> HashTo(const std::string& path, const FileEnd& end) {
  Sha256 hash;
  if (end.bytes == 0) return hash;
  const absl::StatusOr<OpenedFile> file = OpenedFile::Open(path, Links::kRefuse);
  if (absl::IsNotFound(file.status()))
    return absl::DataLossError(absl::StrCat(path, " is missing, but ", end.bytes, " bytes were recorded"));
  RETURN_IF_ERROR(file.status());
  for (uint64_t read = 0; read < end.bytes;) {
    ASSIGN_OR_RETURN(const std::string piece, file->Read(read, std::min<uint64_t>(read + kPieceBytes, end.bytes)));
    if (piece.empty()) {
      return absl::DataLossError(absl::StrCat(path, " has ", read, " bytes, but ", end.bytes, " were recorded"));
    }
    hash.Add(piece);
    read += piece.size();
  }
  if (hash.Hex() == end.sha256) return hash;
  return absl::DataLossError(
      absl::StrCat(path, ": its first ", end.bytes, " bytes are not those that were recorded (their SHA-256 differs)"));
}

}  // namespace

absl::StatusOr<FileEnd> EndOf(const FileEnds& ends, const std::string& path) {
  if (ends.empty()) return FileEnd();
  const auto found = ends.find(path);
  if (found != ends.end() && found->second.bytes > 0) return found->second;
  return absl::DataLossError(absl::StrCat("the checkpoint does not name the end of ", path));
}

absl::Status CheckFileEnd(const std::string& path, const FileEnd& end) { return HashTo(path, end).status(); }

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Open(const std::string& path, const FileEnd& end) {
  ASSIGN_OR_RETURN(const Sha256 hash, HashTo(path, end));
  // A pipe in the place of a new file is not waited for.
  const int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (end.bytes == 0 ? O_CREAT | O_NONBLOCK : 0);
  const int fd = ::open(path.c_str(), flags, 0644);
  if (fd < 0) {
    return ErrnoStatus(errno, absl::StrCat("open ", path, errno == ELOOP ? ", which may not be a link" : ""));
  }
  std::unique_ptr<AppendFile> file(new AppendFile(path, fd, end.bytes, hash));
  if (::lseek(fd, static_cast<off_t>(end.bytes), SEEK_SET) < 0) return ErrnoStatus(errno, "seek " + path);
  if (end.bytes == 0) RETURN_IF_ERROR(SyncName(path));
  return file;
}

FileEnd AppendFile::end() const {
  Sha256 hash = hash_;
  hash.Add(buffer_);
  return {bytes_, hash.Hex()};
}

AppendFile::~AppendFile() {
  if (!buffer_.empty()) (void)Flush(false);
  ::close(fd_);
}

absl::Status AppendFile::Cut() {
  const uint64_t written = bytes_ - buffer_.size();
  if (!cut_ && ::ftruncate(fd_, static_cast<off_t>(written)) != 0) return ErrnoStatus(errno, "truncate " + path_);
  cut_ = true;
  return absl::OkStatus();
}

bool AppendFile::Writes(size_t bytes) const { return buffer_.size() + bytes >= kBufferBytes; }

absl::Status AppendFile::Append(absl::string_view data) {
  const bool full = Writes(data.size());
  buffer_.append(data.data(), data.size());
  bytes_ += data.size();
  return full ? Flush(false) : absl::OkStatus();
}

absl::Status AppendFile::Flush(bool sync) {
  RETURN_IF_ERROR(Cut());
  absl::string_view rest = buffer_;
  const int error = WriteAll(fd_, &rest);
  const size_t written = buffer_.size() - rest.size();
  hash_.Add(absl::string_view(buffer_).substr(0, written));
  buffer_.erase(0, written);  // the next flush retries the rest
  if (error == ENOSPC) return absl::ResourceExhaustedError(NoSpaceMessage(path_, buffer_.size()));
  if (error != 0) return ErrnoStatus(error, "write " + path_);
  if (sync && ::fsync(fd_) != 0) return ErrnoStatus(errno, "fsync " + path_);
  return absl::OkStatus();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
