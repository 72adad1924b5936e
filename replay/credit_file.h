// Credit limit and next sequence per (session slot, member), in a memory-mapped file. After a crash the replay still
// honours the credit it granted and knows the next sequence of sessions whose rows were overwritten. Not thread-safe
// (the store's mutex guards it). Open and Sync block on the disk.
#ifndef DATACOM_REPLAY_CREDIT_FILE_H_
#define DATACOM_REPLAY_CREDIT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/transitions/replay_layout.h"
#include "replay/mapped_file.h"

namespace datacom {

class CreditFile {
 public:
  struct Entry {
    uint64_t limit = 0;          // rows with a smaller sequence may be produced
    uint64_t next_sequence = 0;  // rows with a smaller sequence are committed
  };
  static_assert(sizeof(Entry) == kCreditEntryBytes);
  // Holds at most `slots` sessions, 16 bytes per session and member.
  static absl::StatusOr<std::unique_ptr<CreditFile>> Open(const std::string& path, uint32_t slots, uint32_t members);

  Entry& at(uint32_t slot, uint32_t member) { return entries_[uint64_t{slot} * members_ + member]; }
  void Clear(uint32_t slot);
  absl::Status Sync(uint32_t slot) { return file_->Sync(slot * SlotBytes(), SlotBytes()); }
  uint32_t slots() const { return slots_; }

 private:
  CreditFile(std::unique_ptr<MappedFile> file, uint32_t slots, uint32_t members)
      : file_(std::move(file)), entries_(reinterpret_cast<Entry*>(file_->data())), slots_(slots), members_(members) {}

  size_t SlotBytes() const { return members_ * sizeof(Entry); }

  const std::unique_ptr<MappedFile> file_;
  Entry* const entries_;
  const uint32_t slots_, members_;
};

}  // namespace datacom

#endif  // DATACOM_REPLAY_CREDIT_FILE_H_
