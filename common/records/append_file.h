// A file that only grows. A checkpoint records its length, so that a resumed run can cut it back.
//
// Not thread-safe. Owns the descriptor. Append blocks only when its buffer is full; Flush blocks on the disk.
#ifndef DATACOM_COMMON_RECORDS_APPEND_FILE_H_
#define DATACOM_COMMON_RECORDS_APPEND_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace datacom {

class AppendFile {
 public:
  // Cuts the file to `offset` bytes and appends from there; creates it, with its name on the disk, when offset is
  // 0. DATA_LOSS, naming both lengths, when the file is shorter.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Open(const std::string& path, uint64_t offset);
  ~AppendFile();  // flushes, without waiting for the disk
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  absl::Status Append(absl::string_view data);
  bool Writes(size_t bytes) const;  // whether appending `bytes` would write the buffer to the file
  // Writes the buffer to the file; with `sync` waits until the file is on the disk.
  absl::Status Flush(bool sync);
  // Length including the buffer; after a Flush an offset for Open.
  uint64_t Offset() const { return offset_; }
  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, int fd, uint64_t offset) : path_(std::move(path)), fd_(fd), offset_(offset) {}

  std::string path_;
  int fd_;
  uint64_t offset_;
  std::string buffer_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_APPEND_FILE_H_
// SPDX-License-Identifier: Apache-2.0
