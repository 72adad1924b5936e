// Fixed-size records in a pre-allocated memory-mapped file, addressed by their number since the start of the run. The
// newest kept() records are readable. A 64-bit cursor, stored with release order after the records, commits them.
//
// docs/formats.md 3 describes the file. A commit overwrites the older one of the two sums of a block, so that the other
// one always fits the committed records. Records being written never share a block with readable ones of an earlier
// round: a crash in the middle destroys no readable record.
//
// With `sync` a commit waits for the disk twice: the records and their sums must be on the disk before the cursor is
// stored, or a loss of power could leave a cursor without its records.
//
// Not thread-safe (the store's mutex guards it), except that SyncRecords and SyncCursor run without the mutex, by one
// thread at a time. Open, SyncRecords and SyncCursor, and Commit with `sync`, block on the disk.
#ifndef DATACOM_REPLAY_RING_H_
#define DATACOM_REPLAY_RING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/transitions/replay_layout.h"
#include "replay/mapped_file.h"

namespace datacom::replay {

class Ring {
 public:
  static constexpr int kCounters = 4;

  struct Options {
    std::string path;
    std::string run_id = {};  // at most kMaxRunId bytes
    uint32_t member = 0;      // of the run
    uint64_t schema_fingerprint = 0;
    uint64_t record_bytes = 0;  // multiple of 8
    uint64_t kept = 0;          // readable records; a file that keeps more stays as it is, one that keeps fewer grows
    uint64_t guard = 0;         // largest number of records between two commits
    bool sync = false;          // Commit returns only after msync, and Open only once all records are on the disk
  };
  // FAILED_PRECONDITION, naming the file, what differs (version, schema, run, member, size) and what to do; DATA_LOSS,
  // naming file and records, when a checksum is wrong. These errors leave the file as it was, except that they may
  // complete a growth that was interrupted. When a process dies in Open, the next Open accepts the file.
  static absl::StatusOr<std::unique_ptr<Ring>> Open(const Options& options);
  // Opens a ring that no process writes, without changing the file. Uses only path, schema_fingerprint and record_bytes
  // of the options. Errors as for Open; NOT_FOUND when there is no file.
  static absl::StatusOr<std::unique_ptr<const Ring>> OpenReadOnly(const Options& options) {
    return OpenFile(options, &Ring::Load);
  }
  // The same for a ring that a running replay may write. Checks the header, the cursor and the counters, and no block.
  // Such a ring is read with StoredCursor and CopyBlock.
  static absl::StatusOr<std::unique_ptr<const Ring>> OpenShared(const Options& options) {
    return OpenFile(options, &Ring::LoadNumbers);
  }

  // Whether the file exists and holds more than zeros at its start: Open does not make a new ring there.
  static bool HasContent(const std::string& path);

  uint64_t cursor() const { return cursor_; }  // records committed since the start of the run
  uint64_t first() const { return cursor_ > kept_ ? cursor_ - kept_ : 0; }  // oldest readable
  uint64_t kept() const { return kept_; }
  uint64_t guard() const { return guard_; }
  uint64_t record_bytes() const { return record_bytes_; }
  std::string run_id() const;  // id of the run that the file belongs to
  // For a ring that OpenReadOnly or OpenShared has opened, which compare no owner. The errors of CheckOwner.
  absl::Status CheckBelongsTo(const std::string& run_id, uint32_t member) const;
  const char* record(uint64_t number) const { return Place(number); }
  // The memory of records [cursor(), cursor() + guard()), to fill before Commit.
  char* writable(uint64_t number) { return Place(number); }
  // Number of records from `number` on that are contiguous in memory, up to the end of their block.
  static uint64_t contiguous(uint64_t number) { return kRingBlockRecords - number % kRingBlockRecords; }
  // Commits all records below `cursor`: the four steps below. After a disk error cursor() has not moved, the file may
  // hold the new cursor or the old one, and the ring must be opened again before the next commit.
  absl::Status Commit(uint64_t cursor);
  // The steps of a commit. Between Prepare and Finish the next records may be written, up to cursor() + guard().
  void Prepare(uint64_t cursor);     // stores the sums
  absl::Status SyncRecords() const;  // with sync: waits until records and sums are on the disk
  absl::Status SyncCursor();         // stores the cursor; with sync: waits until it is on the disk
  void Finish() { cursor_ = next_.cursor; }
  // Drops the records from `cursor` on (to recover a table that is derived from another). REQUIRES cursor >= first().
  absl::Status Truncate(uint64_t cursor);

  // The cursor that the file holds now; DATA_LOSS when it is damaged.
  absl::StatusOr<uint64_t> StoredCursor() const;
  // Copies the committed records of `block` (records [64 block, 64 block + 64)) below `end`, and checks their sum,
  // while another process may commit records. REQUIRES 64 block < end <= an earlier StoredCursor(). OUT_OF_RANGE: all
  // records of the block were overwritten during the call; DATA_LOSS naming the records: they are damaged.
  absl::Status CopyBlock(uint64_t block, uint64_t end, std::string* records) const;

  // The header page as it was at one moment, while another process may commit records; `cursor` receives its cursor.
  // DATA_LOSS when that is damaged; ABORTED when the ring has grown since it was opened.
  absl::StatusOr<std::string> CopyHeader(uint64_t* cursor) const;
  // A block as a file holds it that has these records of it and no others, and where: for copies of the file.
  std::string FrameBlock(uint64_t block, absl::string_view records) const;
  uint64_t BlockOffset(uint64_t block) const {
    return kRingHeaderBytes + block % count_ * RingBlockBytes(record_bytes_);
  }
  uint64_t blocks() const { return count_; }  // of the file

  // A counter stored next to the cursor, but not updated atomically with it.
  uint64_t counter(int index) const { return counters_[index]; }
  void set_counter(int index, uint64_t value);

 private:
  struct Sum {  // checksum of the first records of a block
    uint32_t records = 0, crc = 0;
  };

  static absl::StatusOr<std::unique_ptr<const Ring>> OpenFile(Options options, absl::Status (Ring::*load)());
  Ring(std::unique_ptr<MappedFile> file, const Options& options);
  absl::Status LoadNumbers();  // cursor and counters
  absl::Status Load();
  char* Block(uint64_t block) const { return blocks_ + block % count_ * RingBlockBytes(record_bytes_); }
  char* Place(uint64_t number) const {
    return Block(number / kRingBlockRecords) + kRingBlockHeaderBytes + number % kRingBlockRecords * record_bytes_;
  }
  std::atomic_ref<uint64_t> StoredSum(uint64_t block, int index) const;
  uint32_t SumOf(uint64_t from, uint64_t to, uint32_t before) const;  // records of one block; `before`: sum so far
  absl::StatusOr<int> FindSum(uint64_t block) const;
  // Calls write(offset, bytes) for the one or two places in the file that hold records [from, to).
  template <typename Write>
  absl::Status ForPlaces(uint64_t from, uint64_t to, const Write& write) const;
  absl::Status SyncRange(uint64_t from, uint64_t to) const;
  absl::Status RewriteNewest();
  void StoreCursor(uint64_t cursor);

  const std::unique_ptr<MappedFile> file_;
  const uint64_t kept_, guard_, count_, record_bytes_;  // count_: number of blocks
  const bool sync_;
  char* const blocks_;
  uint64_t cursor_ = 0;
  struct {
    uint64_t cursor = 0;    // the cursor after the prepared commit, or cursor_ if none is prepared
    uint32_t open_crc = 0;  // checksum of the records before it in its block
    int sum = 0;            // index of the sum of its block that the next commit overwrites
  } next_;
  uint64_t counters_[kCounters] = {};  // copies of the numbers in the file
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_RING_H_
// SPDX-License-Identifier: Apache-2.0
