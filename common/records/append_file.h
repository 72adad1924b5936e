// A file that only grows. A checkpoint records its length and a checksum of its content, so that a resumed run
// continues what was written, or refuses.
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

namespace datacom {

// The part of a file that a checkpoint continues.
struct FileEnd {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // of these bytes
};
using FileEnds = std::map<std::string, FileEnd>;  // by path below the run folder

// That of `path`; an empty one in a new run, which has no ends. DATA_LOSS when only other files have ends.
absl::StatusOr<FileEnd> EndOf(const FileEnds& ends, const std::string& path);

// Reads the bytes before `end`. DATA_LOSS, naming the file, when it is missing, shorter, or has other bytes.
absl::Status CheckFileEnd(const std::string& path, const FileEnd& end);

class AppendFile {
 public:
  // Appends after `end`, whose bytes are checked; creates the file, with its name on the disk, when there are none.
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
  // Includes the buffer; after a Flush, for Open.
  const FileEnd& end() const { return end_; }
  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, int fd, const FileEnd& end) : path_(std::move(path)), fd_(fd), end_(end) {}
  absl::Status Cut();

  const std::string path_;
  const int fd_;
  FileEnd end_;
  bool cut_ = false;  // nothing follows what was written
  std::string buffer_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_APPEND_FILE_H_
// SPDX-License-Identifier: Apache-2.0
