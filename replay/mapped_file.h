// A memory-mapped file whose blocks are reserved on disk, so that a write to the memory never meets a full disk. Writes
// survive the death of this process immediately, and a loss of power after Sync. Not thread-safe, except for Sync; owns
// the mapping. Opening, Grow, StoreHeader, Sync and Rewrite block on the disk.
#ifndef DATACOM_REPLAY_MAPPED_FILE_H_
#define DATACOM_REPLAY_MAPPED_FILE_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace datacom::replay {

class MappedFile {
 public:
  // Opens `path`, or creates it with `bytes` zeros and sets `created`. An existing file keeps its size.
  // RESOURCE_EXHAUSTED, naming the bytes needed and free, when the disk cannot hold the file (a new one is removed
  // again). INVALID_ARGUMENT for what is not a regular file, and for a link to nothing or to an empty file.
  static absl::StatusOr<std::unique_ptr<MappedFile>> OpenOrCreate(const std::string& path, size_t bytes, bool* created);
  // Opens an existing file, which must not be written through data(). INVALID_ARGUMENT likewise.
  static absl::StatusOr<std::unique_ptr<MappedFile>> OpenReadOnly(const std::string& path);
  // Extends an existing file to `bytes`; the new blocks are reserved and zero.
  static absl::Status Grow(const std::string& path, size_t bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Stores the header of a new file and syncs it. The checksum of its frame comes last, so that an interrupted creation
  // is recognised.
  template <typename Header>
  absl::Status StoreHeader(Header header) {
    const auto crc = std::exchange(header.frame.crc, 0);
    auto* const stored = reinterpret_cast<Header*>(data_);
    *stored = header;
    std::atomic_ref(stored->frame.crc).store(crc, std::memory_order_release);
    return Sync(0, sizeof header);
  }
  // A copy of the whole words in the first `bytes`, each of them atomically: another process may write to the file.
  std::string CopyWords(size_t bytes) const;
  // Writes the pages of [offset, offset + bytes) to the disk. Other threads may write to the memory during the call.
  absl::Status Sync(size_t offset, size_t bytes) const;
  // The same for all these pages, also those that the kernel takes for written although an earlier Sync failed.
  absl::Status Rewrite(size_t offset, size_t bytes);
  // Turns off read-ahead, which wastes memory when reads are random (draws).
  void AdviseRandom();

 private:
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path, int flags, size_t bytes,
                                                          bool* created);
  static absl::StatusOr<std::unique_ptr<MappedFile>> Map(int fd, const std::string& path, size_t bytes, bool* created);
  MappedFile(std::string path, char* data, size_t size) : path_(std::move(path)), data_(data), size_(size) {}

  const std::string path_;
  char* const data_;
  const size_t size_;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_MAPPED_FILE_H_
// SPDX-License-Identifier: Apache-2.0
