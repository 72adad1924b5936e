// A file that only grows and whose length is known: what a checkpoint needs to cut it back to where it was.
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
  // Cuts the file to `offset` bytes and goes on there; creates it where offset is 0. DATA_LOSS naming both lengths when
  // the file is shorter than that.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Open(const std::string& path, uint64_t offset);
  ~AppendFile();  // flushes, without waiting for the disk
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  absl::Status Append(absl::string_view data);
  bool Writes(size_t bytes) const;  // whether appending so many makes the buffer go to the operating system
  // Hands everything to the operating system; with `sync` also to the disk.
  absl::Status Flush(bool sync);
  // Length including what is buffered; what Open takes after a Flush.
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
