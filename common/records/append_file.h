// A file that only grows. A checkpoint records its length and the SHA-256 of its content, so that a resumed run
// continues what was written, or refuses. (A CRC-32C would be the same for all step files of one length: each of their
// records ends with its own.)
//
// Not thread-safe. Owns the descriptor. Open blocks while it reads the file; Append only when its buffer is full; Flush
// blocks on the disk.
#ifndef DATACOM_COMMON_RECORDS_APPEND_FILE_H_
#define DATACOM_COMMON_RECORDS_APPEND_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/config/sha256.h"

namespace datacom {

// The part of a file that a checkpoint continues.
struct FileEnd {
  uint64_t bytes = 0;
  std::string sha256;  // of these bytes, hexadecimal
};
using FileEnds = std::map<std::string, FileEnd>;  // by path below the run folder

// That of `path`; an empty one in a new run, which has no ends. DATA_LOSS when only other files have ends.
absl::StatusOr<FileEnd> EndOf(const FileEnds& ends, const std::string& path);

// Reads the bytes before `end`. DATA_LOSS, naming the file, when it is missing, shorter, or has other bytes;
// INVALID_ARGUMENT for a link.
absl::Status CheckFileEnd(const std::string& path, const FileEnd& end);

class AppendFile {
 public:
  // Appends after `end`, whose bytes are checked; creates the file, with its name on the disk, when there are none.
  // Refuses a link in its place: the run folder may be a stranger's, who may know how a file of the user's begins.
  // What follows `end` in the file stays until the first Flush, so that a refused resume changes nothing. The errors of
  // CheckFileEnd.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Open(const std::string& path, const FileEnd& end = {});
  ~AppendFile();  // flushes what was appended, without waiting for the disk
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  absl::Status Append(absl::string_view data);
  bool Writes(size_t bytes) const;  // whether appending `bytes` would write the buffer to the file
  // Writes the buffer to the file; with `sync` waits until the file is on the disk.
  absl::Status Flush(bool sync);
  uint64_t bytes() const { return bytes_; }  // with the buffer
  FileEnd end() const;                       // with the buffer; after a Flush, for Open
  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, int fd, uint64_t bytes, const Sha256& hash)
      : path_(std::move(path)), fd_(fd), bytes_(bytes), hash_(hash) {}
  absl::Status Cut();

  const std::string path_;
  const int fd_;
  uint64_t bytes_;
  Sha256 hash_;       // of those that are written: one call for many small records
  bool cut_ = false;  // nothing follows what was written
  std::string buffer_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_APPEND_FILE_H_
// SPDX-License-Identifier: Apache-2.0
