// Credit limit and next sequence per (session slot, member), in a memory-mapped file. After a crash the replay still
// honours the credit it granted and knows the next sequence of sessions whose rows were overwritten.
//
// docs/formats.md 4 describes the file. With `sync` an entry that is set stays in memory until a commit takes it: a
// stored next sequence says that its rows are on the disk. Not thread-safe (the store's mutex guards it), except that
// SyncTaken runs without the mutex. Open (with `sync`), Sync and SyncTaken block on the disk.
#ifndef DATACOM_REPLAY_CREDIT_FILE_H_
#define DATACOM_REPLAY_CREDIT_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/mapped_file.h"

namespace datacom::replay {

class CreditFile {
 public:
  struct Entry {
    uint64_t limit = 0;          // rows with a smaller sequence may be produced
    uint64_t next_sequence = 0;  // rows with a smaller sequence are committed
  };
  struct Options {
    std::string path;
    std::string run_id;  // at most 255 bytes
    uint32_t slots = 0, members = 0;
    bool must_have_content = false;  // the run has sessions: a file without a header is damaged, not new
    bool sync = false;               // entries reach the disk by commits, and Open waits until the file is there
  };
  // FAILED_PRECONDITION: a file of another version, run or size; DATA_LOSS: a damaged one.
  static absl::StatusOr<std::unique_ptr<CreditFile>> Open(const Options& options);

  // The content of a file that a running replay may write: limit and next sequence of every slot and member. A word
  // that is invalid, as in slots that were never used, has no value. Errors as for Open; NOT_FOUND when there is no
  // file.
  struct Content {
    std::string run_id;
    uint32_t slots = 0, members = 0;
    uint64_t start = 0;
    std::vector<std::optional<uint64_t>> words;  // limit at 2 (slot members + member), then next sequence
    std::vector<bool> unused;                    // by word: whether it was never written
  };
  static absl::StatusOr<Content> Read(const std::string& path);

  // The newest start of the replay (replay/starts.h); DATA_LOSS if it is damaged.
  absl::StatusOr<uint64_t> start() const;
  void SetStart(uint64_t start);
  // Reads the entries of a session that continues; DATA_LOSS, naming slot and member, when one is damaged.
  absl::Status Load(uint32_t slot);
  void Clear(uint32_t slot);  // at once: entries of the former session are no longer stored or committed
  const Entry& at(uint32_t slot, uint32_t member) const { return entries_[Index(slot, member)]; }
  // The entry that a loss of power leaves; without sync the same as at().
  const Entry& durable(uint32_t slot, uint32_t member) const {
    return (sync_ ? durable_ : entries_)[Index(slot, member)];
  }
  // REQUIRES entry.next_sequence <= entry.limit.
  void Set(uint32_t slot, uint32_t member, const Entry& entry);
  absl::Status Sync(uint32_t slot);
  // The steps of a commit with sync. Entries that are set after Take belong to the next commit.
  bool changed() const { return !changed_.empty(); }  // whether an entry was set since Take
  void Take();
  void StoreTaken();
  absl::Status SyncTaken() const;
  void Finish();  // the entries taken are durable
  uint32_t slots() const { return slots_; }

 private:
  struct Taken {
    size_t index;
    Entry entry;
  };

  CreditFile(std::unique_ptr<MappedFile> file, const Options& options);
  static absl::StatusOr<uint64_t> StartOf(const MappedFile& file);
  size_t Index(uint32_t slot, uint32_t member) const { return size_t{slot} * members_ + member; }
  void Store(size_t index, const Entry& entry);

  const std::unique_ptr<MappedFile> file_;
  uint64_t* const words_;  // limit and next sequence of every entry
  const uint32_t slots_, members_;
  const bool sync_;
  std::vector<Entry> entries_, durable_;
  std::vector<size_t> changed_;      // indices of the entries that the next commit takes, each once
  std::vector<uint8_t> is_changed_;  // by entry: whether it is one of them
  std::vector<Taken> taken_;         // the entries that the running commit has taken
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_CREDIT_FILE_H_
// SPDX-License-Identifier: Apache-2.0
