// A ring's file (replay/ring.h) with any content: it is refused and stays as it is, or every readable record is the one
// in the file, and rows can be appended to it.
//
// Input: a byte of flags, then the file (RingFile in ring_inputs.h).
#include <algorithm>

#include "replay/ring.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/ring_inputs.h"

namespace datacom::fuzz {
namespace {

// Every readable record, compared with the bytes of `file`, a ring that keeps `kept`.
std::string Records(const replay::Ring& ring, const std::string& file, uint64_t kept) {
  std::string records;
  MUST(ring.cursor() - ring.first() <= file.size() / kRingRecordBytes);
  for (uint64_t number = ring.first(); number < ring.cursor(); ++number) {
    const size_t at = RingPlace(number, kept, ring.guard(), kRingRecordBytes);
    MUST(at + kRingRecordBytes <= file.size());
    MUST(std::memcmp(ring.record(number), file.data() + at, kRingRecordBytes) == 0);
    records.append(ring.record(number), kRingRecordBytes);
  }
  return records;
}

// Appends to an accepted ring, shortens it, and opens it again each time.
void Use(std::unique_ptr<replay::Ring> ring, uint64_t kept) {
  const uint64_t before = ring->cursor();
  if (before + 2 * kRingGuardRecords > replay::kLargestCheckedNumber) return;  // the run would have 2^48 rows
  AppendRecords(ring.get(), kRingGuardRecords);
  AppendRecords(ring.get(), 3);
  ring->set_counter(1, before);
  std::string held = Records(*ring, ReadBytes(RingPath()), ring->kept());
  for (const uint64_t cursor : {before + kRingGuardRecords + 3, before + kRingGuardRecords}) {
    MustAccept(ring->Truncate(cursor));
    held.resize((cursor - ring->first()) * kRingRecordBytes);
    const uint64_t first = ring->first();
    ring = nullptr;
    auto again = replay::Ring::Open(RingOptions(kept));
    MustAccept(again.status());
    ring = *std::move(again);
    MUST(ring->cursor() == cursor && ring->counter(1) == before);
    const std::string now = Records(*ring, ReadBytes(RingPath()), ring->kept());
    MUST(ring->first() <= first && now.size() >= held.size());
    if (cursor == before + kRingGuardRecords + 3) MUST(now == held);
  }
}

}  // namespace

static void Run(absl::string_view bytes) {
  Input input(bytes);
  const uint8_t flags = input.Byte();
  const std::string file = RingFile(flags, input.Rest());
  if (file.size() > kLargestRingFile) return;
  WriteBytes(RingPath(), file);
  std::string records;
  {
    const auto ring = replay::Ring::OpenReadOnly(RingOptions(0));
    MUST(ReadBytes(RingPath()) == file);
    if (ring.ok()) {
      records = Records(**ring, file, (*ring)->kept());
    } else {
      MustRefuse(ring.status());
    }
  }
  const uint64_t kept = flags & kGrow ? 2 * kRingKeptRecords : kRingKeptRecords;
  auto ring = replay::Ring::Open(RingOptions(kept));
  if (!ring.ok()) {
    MustRefuse(ring.status());
    std::string left = ReadBytes(RingPath());
    if (file.size() >= kRingHeaderBytes) left.replace(kRingKept, 8, file, kRingKept, 8);  // an interrupted growth ended
    MUST_BECAUSE(left == file, ring.status().ToString());
    return;
  }
  MUST((*ring)->run_id() == "run" && (*ring)->kept() >= kept);
  if (!records.empty()) MUST(Records(**ring, ReadBytes(RingPath()), (*ring)->kept()) == records);
  Use(*std::move(ring), kept);
}

static std::vector<Seed> Seeds() {
  std::vector<Seed> seeds;
  for (const uint64_t rows : {0, 5, 64, 300}) {
    const std::string file = SoundRing(rows), count = std::to_string(rows);
    const std::string packed = PackedRing(file);
    seeds.push_back({"rows" + count, std::string(1, '\0') + packed});
    seeds.push_back({"sealed" + count, std::string(1, kSealHeader | kSealWords | kSealBlocks) + packed});
    seeds.push_back({"grown" + count, std::string(1, kSealHeader | kSealBlocks | kGrow) + packed});
  }
  seeds.push_back({"header", std::string(1, kSealHeader | kPad) + SoundRing(0).substr(0, kRingHeaderUsed)});
  seeds.push_back({"short", std::string(1, kRaw) + SoundRing(5).substr(0, 40)});
  seeds.push_back({"zeros", std::string(1, kPad)});
  return seeds;
}

static const Target kTarget("ring", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0
