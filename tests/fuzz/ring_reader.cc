// A ring that another process writes, as `datacom verify` reads it (Ring::OpenShared, StoredCursor and CopyBlock in
// replay/ring.h). A copied block holds the committed records. It is refused only when it was overwritten or damaged.
//
// Input: a byte of flags. With kWriter actions follow, each a byte of its kind and its arguments; otherwise a file
// (RingFile in ring_inputs.h).
#include <fcntl.h>
#include <unistd.h>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/ring_inputs.h"

namespace datacom::fuzz {
namespace {

constexpr uint8_t kWriter = 64;
constexpr int kMostActions = 64;
enum Kind { kAppend, kDamage, kLook, kCopy, kOpen, kKinds };

// Records [64 block, end) of a writer that used AppendRecords.
std::string Appended(uint64_t block, uint64_t end) {
  std::string records;
  for (uint64_t number = block * kRingBlockRecords; number < std::min(end, (block + 1) * kRingBlockRecords); ++number)
    records += RingRecord(number);
  return records;
}

// A replay and a reader that takes turns with it.
class Peers {
 public:
  Peers() {
    static const std::string empty = SoundRing(0);
    WriteBytes(RingPath(), empty);
    auto writer = replay::Ring::Open(RingOptions(kRingKeptRecords));
    MustAccept(writer.status());
    writer_ = *std::move(writer);
    OpenReader();
  }

  void Act(Input* input) {
    switch (input->Byte() % kKinds) {
      case kAppend:
        return AppendRecords(writer_.get(), input->Byte() % (kRingGuardRecords + 1));
      case kDamage: {
        const uint16_t place = input->Short();
        return Damage(place, input->Byte());
      }
      case kLook:
        return Look();
      case kCopy: {
        const uint8_t block = input->Byte();
        return Copy(block, input->Byte());
      }
      case kOpen:
        return OpenReader();
    }
  }

  void CopyAll() {
    Look();
    for (uint64_t block = 0; block * kRingBlockRecords < seen_; ++block) CheckCopy(block, seen_);
  }

 private:
  void OpenReader() {
    auto reader = replay::Ring::OpenShared(RingOptions(0));
    if (reader.ok()) {
      reader_ = *std::move(reader);
    } else {
      MUST(damaged_);
      MustRefuse(reader.status());
    }
  }

  void Look() {
    const auto cursor = reader_->StoredCursor();
    MUST(damaged_ || (cursor.ok() && *cursor == writer_->cursor()));
    if (!cursor.ok()) return MustRefuse(cursor.status());
    seen_ = std::min(*cursor, writer_->cursor());
  }

  void Copy(uint64_t block, uint64_t records) {
    if (seen_ == 0) return;
    block %= (seen_ - 1) / kRingBlockRecords + 1;
    const uint64_t from = block * kRingBlockRecords, held = std::min(seen_ - from, kRingBlockRecords);
    CheckCopy(block, from + 1 + records % held);
  }

  void CheckCopy(uint64_t block, uint64_t end) {
    std::string records;
    const absl::Status copied = reader_->CopyBlock(block, end, &records);
    const uint64_t cursor = writer_->cursor();
    const bool overwritten = cursor > kRingKeptRecords && (block + 1) * kRingBlockRecords <= cursor - kRingKeptRecords;
    if (copied.ok()) {
      MUST(records == Appended(block, end));
    } else {
      MustRefuse(copied);
    }
    if (damaged_) return;
    MUST_BECAUSE(overwritten ? absl::IsOutOfRange(copied) : copied.ok(), copied.ToString());
  }

  void Damage(uint16_t place, uint8_t change) {
    const int fd = ::open(RingPath().c_str(), O_RDWR | O_CLOEXEC);
    const auto size = static_cast<uint64_t>(::lseek(fd, 0, SEEK_END));
    const auto at = static_cast<off_t>(place % size);
    char byte = 0;
    MUST(::pread(fd, &byte, 1, at) == 1);
    byte = static_cast<char>(byte ^ change);
    MUST(::pwrite(fd, &byte, 1, at) == 1);
    ::close(fd);
    damaged_ = true;
  }

  std::unique_ptr<replay::Ring> writer_;
  std::unique_ptr<const replay::Ring> reader_;
  uint64_t seen_ = 0;     // the newest cursor that the reader has seen
  bool damaged_ = false;  // the file may differ from what the writer wrote
};

// A reader that checks each block accepts every file that a reader of the whole file accepts.
void CheckFile(const std::string& file) {
  if (file.size() > kLargestRingFile) return;
  WriteBytes(RingPath(), file);
  const auto whole = replay::Ring::OpenReadOnly(RingOptions(0));
  const auto ring = replay::Ring::OpenShared(RingOptions(0));
  MUST(ReadBytes(RingPath()) == file);
  if (!ring.ok()) {
    MUST(!whole.ok());
    return MustRefuse(ring.status());
  }
  const auto cursor = (*ring)->StoredCursor();
  MustAccept(cursor.status());
  MUST(*cursor == (*ring)->cursor() && *cursor - (*ring)->first() <= file.size() / kRingRecordBytes);
  for (uint64_t block = (*ring)->first() / kRingBlockRecords; block * kRingBlockRecords < *cursor; ++block) {
    const uint64_t from = block * kRingBlockRecords, held = std::min(*cursor - from, kRingBlockRecords);
    std::string records;
    const absl::Status copied = (*ring)->CopyBlock(block, *cursor, &records);
    if (!copied.ok()) {
      MUST(!whole.ok() && absl::IsDataLoss(copied));
      MustRefuse(copied);
      continue;
    }
    const size_t at = RingPlace(from, (*ring)->kept(), (*ring)->guard(), kRingRecordBytes);
    MUST(records.size() == held * kRingRecordBytes && file.compare(at, records.size(), records) == 0);
    std::string first;
    MustAccept((*ring)->CopyBlock(block, from + 1, &first));
    MUST(first == records.substr(0, kRingRecordBytes));
  }
}

}  // namespace

static void Run(absl::string_view bytes) {
  Input input(bytes);
  const uint8_t flags = input.Byte();
  if (!(flags & kWriter)) return CheckFile(RingFile(flags, input.Rest()));
  Peers peers;
  for (int i = 0; i < kMostActions && !input.empty(); ++i) peers.Act(&input);
  peers.CopyAll();
}

static std::vector<Seed> Seeds() {
  const auto act = [](Kind kind, const std::string& arguments) {
    return std::string(1, static_cast<char>(kind)) + arguments;
  };
  const std::string look = act(kLook, ""), append = act(kAppend, "\x08");
  const auto copy = [&](char block, char records) { return act(kCopy, std::string{block, records}); };
  std::string turns(1, static_cast<char>(kWriter)), overtaken = turns + append + look;
  for (char round = 0; round < 20; ++round) turns += append + look + copy(round, static_cast<char>(3 * round));
  for (int round = 0; round < 24; ++round) overtaken += append;
  std::vector<Seed> seeds = {
      {"turns", turns},
      {"overtaken", overtaken + copy(0, 7) + look + copy(0, 7) + copy(2, 63)},
      {"damaged", turns + act(kDamage, Short(4200) + "\x01") + act(kDamage, Short(320) + "\x01") + act(kOpen, "")}};
  for (const uint64_t rows : {5, 64, 300}) {
    const std::string packed = PackedRing(SoundRing(rows)), count = std::to_string(rows);
    seeds.push_back({"rows" + count, std::string(1, '\0') + packed});
    seeds.push_back({"sealed" + count, std::string(1, kSealHeader | kSealWords | kSealBlocks) + packed});
  }
  return seeds;
}

static const Target kTarget("ring_reader", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0
