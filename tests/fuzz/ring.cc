// A ring's file (replay/ring.h) with any content: it is refused and stays as it is, or every readable record is the one
// in the file, and rows can be appended to it.
//
// Input: a byte of flags, then the file: the 344 bytes of its header that are in use and, for byte 4096 and on, the
// blocks; with kRaw the file as it is.
#include <algorithm>

#include "replay/ring.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/ring_bytes.h"

namespace datacom::fuzz {
namespace {

enum Flags { kSealHeader = 1, kSealWords = 2, kSealBlocks = 4, kGrow = 8, kRaw = 16, kPad = 32 };
constexpr uint64_t kRecordBytes = 16, kKept = 64, kGuard = 8;
constexpr uint64_t kLargestSize = 1 << 16;  // of a file

std::string Path() { return Folder() + "/ring"; }

Ring::Options Options(uint64_t kept) {
  Ring::Options options;
  options.path = Path();
  options.run_id = "run";
  options.schema_fingerprint = 7;
  options.record_bytes = kRecordBytes;
  options.kept = kept;
  options.guard = kGuard;
  return options;
}

void Append(Ring* ring, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t number = ring->cursor() + i;
    std::memcpy(ring->writable(number), &number, sizeof number);
    std::memset(ring->writable(number) + sizeof number, static_cast<int>(number % 251), kRecordBytes - sizeof number);
  }
  MustAccept(ring->Commit(ring->cursor() + count));
}

// A ring of `rows` records that Open wrote.
std::string Sound(uint64_t rows) {
  WriteBytes(Path(), "");
  auto ring = Ring::Open(Options(kKept));
  MustAccept(ring.status());
  for (uint64_t left = rows; left > 0; left -= std::min(left, kGuard)) Append(ring->get(), std::min(left, kGuard));
  (*ring)->set_counter(0, 3);
  (*ring)->set_counter(1, rows);
  return ReadBytes(Path());
}

std::string FileOf(uint8_t flags, absl::string_view bytes) {
  static const std::string sound = Sound(0);
  if (flags & kRaw) return std::string(bytes);
  std::string file(bytes.substr(0, kRingHeaderUsed));
  file.resize(kRingHeaderBytes);
  if (bytes.size() > kRingHeaderUsed) file.append(std::string(bytes.substr(kRingHeaderUsed)));
  if (flags & kPad) file.resize(std::max(file.size(), sound.size()));
  if (flags & kSealWords) SealRingWords(&file);
  if (flags & kSealHeader) SealRingHeader(sound, &file);
  if (flags & kSealBlocks) SealRingBlocks(kRecordBytes, &file);
  return file;
}

// Every readable record, compared with the bytes of `file`, a ring that keeps `kept`.
std::string Records(const Ring& ring, const std::string& file, uint64_t kept) {
  std::string records;
  MUST(ring.cursor() - ring.first() <= file.size() / kRecordBytes);
  for (uint64_t number = ring.first(); number < ring.cursor(); ++number) {
    const size_t at = RingPlace(number, kept, ring.guard(), kRecordBytes);
    MUST(at + kRecordBytes <= file.size());
    MUST(std::memcmp(ring.record(number), file.data() + at, kRecordBytes) == 0);
    records.append(ring.record(number), kRecordBytes);
  }
  return records;
}

// Appends to an accepted ring, shortens it, and opens it again each time.
void Use(std::unique_ptr<Ring> ring, uint64_t kept) {
  const uint64_t before = ring->cursor();
  if (before + 2 * kGuard > kLargestCheckedNumber) return;  // the run would have 2^48 rows
  Append(ring.get(), kGuard);
  Append(ring.get(), 3);
  ring->set_counter(1, before);
  std::string held = Records(*ring, ReadBytes(Path()), ring->kept());
  for (const uint64_t cursor : {before + kGuard + 3, before + kGuard}) {
    MustAccept(ring->Truncate(cursor));
    held.resize((cursor - ring->first()) * kRecordBytes);
    const uint64_t first = ring->first();
    ring = nullptr;
    auto again = Ring::Open(Options(kept));
    MustAccept(again.status());
    ring = *std::move(again);
    MUST(ring->cursor() == cursor && ring->counter(1) == before && !ring->fresh());
    const std::string now = Records(*ring, ReadBytes(Path()), ring->kept());
    MUST(ring->first() <= first && now.size() >= held.size());
    if (cursor == before + kGuard + 3) MUST(now == held);
  }
}

}  // namespace

void Run(absl::string_view bytes) {
  Input input(bytes);
  const uint8_t flags = input.Byte();
  const std::string file = FileOf(flags, input.Rest());
  if (file.size() > kLargestSize) return;
  WriteBytes(Path(), file);
  std::string records;
  {
    const auto ring = Ring::OpenReadOnly(Options(0));
    MUST(ReadBytes(Path()) == file);
    if (ring.ok()) {
      MUST(!(*ring)->fresh());
      records = Records(**ring, file, (*ring)->kept());
    } else {
      MustRefuse(ring.status());
    }
  }
  const uint64_t kept = flags & kGrow ? 2 * kKept : kKept;
  auto ring = Ring::Open(Options(kept));
  if (!ring.ok()) {
    MustRefuse(ring.status());
    std::string left = ReadBytes(Path());
    if (file.size() >= kRingHeaderBytes) left.replace(kRingKept, 8, file, kRingKept, 8);  // an interrupted growth ended
    MUST_BECAUSE(left == file, ring.status().ToString());
    return;
  }
  MUST((*ring)->run_id() == "run" && (*ring)->kept() >= kept);
  if (!records.empty()) MUST(Records(**ring, ReadBytes(Path()), (*ring)->kept()) == records);
  Use(*std::move(ring), kept);
}

std::vector<Seed> Seeds() {
  std::vector<Seed> seeds;
  for (const uint64_t rows : {0, 5, 64, 300}) {
    const std::string file = Sound(rows), count = std::to_string(rows);
    const std::string packed = file.substr(0, kRingHeaderUsed) + file.substr(kRingHeaderBytes);
    seeds.push_back({"rows" + count, std::string(1, '\0') + packed});
    seeds.push_back({"sealed" + count, std::string(1, kSealHeader | kSealWords | kSealBlocks) + packed});
    seeds.push_back({"grown" + count, std::string(1, kSealHeader | kSealBlocks | kGrow) + packed});
  }
  seeds.push_back({"header", std::string(1, kSealHeader | kPad) + Sound(0).substr(0, kRingHeaderUsed)});
  seeds.push_back({"short", std::string(1, kRaw) + Sound(5).substr(0, 40)});
  seeds.push_back({"zeros", std::string(1, kPad)});
  return seeds;
}

}  // namespace datacom::fuzz
