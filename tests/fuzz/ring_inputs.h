// A small ring for the fuzz targets: its options, its files, and what a replay appends to it. Not thread-safe.
#ifndef DATACOM_TESTS_FUZZ_RING_INPUTS_H_
#define DATACOM_TESTS_FUZZ_RING_INPUTS_H_

#include <algorithm>
#include <cstring>
#include <string>

#include "replay/ring.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/ring_bytes.h"

namespace datacom::fuzz {

enum RingFlags { kSealHeader = 1, kSealWords = 2, kSealBlocks = 4, kGrow = 8, kRaw = 16, kPad = 32 };
inline constexpr uint64_t kRingRecordBytes = 16, kRingKeptRecords = 64, kRingGuardRecords = 8;
inline constexpr uint64_t kLargestRingFile = 1 << 16;  // bytes

inline std::string RingPath() { return Folder() + "/ring"; }

inline replay::Ring::Options RingOptions(uint64_t kept) {
  replay::Ring::Options options;
  options.path = RingPath();
  options.run_id = "run";
  options.schema_fingerprint = 7;
  options.record_bytes = kRingRecordBytes;
  options.kept = kept;
  options.guard = kRingGuardRecords;
  return options;
}

// The content that AppendRecords writes as record `number`.
inline std::string RingRecord(uint64_t number) {
  std::string record(kRingRecordBytes, static_cast<char>(number % 251));
  std::memcpy(record.data(), &number, sizeof number);
  return record;
}

// REQUIRES count <= kRingGuardRecords.
inline void AppendRecords(replay::Ring* ring, uint64_t count) {
  for (uint64_t number = ring->cursor(); number < ring->cursor() + count; ++number)
    std::memcpy(ring->writable(number), RingRecord(number).data(), kRingRecordBytes);
  MustAccept(ring->Commit(ring->cursor() + count));
}

// The file of a ring with `rows` records.
inline std::string SoundRing(uint64_t rows) {
  WriteBytes(RingPath(), "");
  auto ring = replay::Ring::Open(RingOptions(kRingKeptRecords));
  MustAccept(ring.status());
  for (uint64_t left = rows; left > 0; left -= std::min(left, kRingGuardRecords))
    AppendRecords(ring->get(), std::min(left, kRingGuardRecords));
  (*ring)->set_counter(0, 3);
  (*ring)->set_counter(1, rows);
  return ReadBytes(RingPath());
}

// A file made of `bytes`: the 344 bytes of its header that are in use and, for byte 4096 and on, the blocks; with kRaw
// the bytes as they are. The flags say which checksums are recomputed.
inline std::string RingFile(uint8_t flags, absl::string_view bytes) {
  static const std::string sound = SoundRing(0);
  if (flags & kRaw) return std::string(bytes);
  std::string file(bytes.substr(0, kRingHeaderUsed));
  file.resize(kRingHeaderBytes);
  if (bytes.size() > kRingHeaderUsed) file.append(std::string(bytes.substr(kRingHeaderUsed)));
  if (flags & kPad) file.resize(std::max(file.size(), sound.size()));
  if (flags & kSealWords) SealRingWords(&file);
  if (flags & kSealHeader) SealRingHeader(sound, &file);
  if (flags & kSealBlocks) SealRingBlocks(kRingRecordBytes, &file);
  return file;
}

// A ring's file without the unused part of its header: `bytes` of RingFile.
inline std::string PackedRing(const std::string& file) {
  return file.substr(0, kRingHeaderUsed) + file.substr(kRingHeaderBytes);
}

}  // namespace datacom::fuzz

#endif  // DATACOM_TESTS_FUZZ_RING_INPUTS_H_
// SPDX-License-Identifier: Apache-2.0
