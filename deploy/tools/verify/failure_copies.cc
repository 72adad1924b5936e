#include "deploy/tools/verify/failure_copies.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/transitions/replay_layout.h"
#include "common/transitions/row_schema.h"
#include "replay/member_table.h"

namespace datacom::verify {

FailureCopies::FailureCopies(VerifiedRun* run, std::string file, const replay::Ring* ring, const replay::Ring& rows,
                             Report::Repair repair)
    : run_(run),
      file_(std::move(file)),
      complete_below_(rows.counter(replay::kCountedUpTo)),
      made_(rows.counter(replay::kFailures)),
      repair_(std::move(repair)) {
  if (ring != nullptr) Read(*ring);
}

void FailureCopies::Damage(absl::string_view what) {
  run_->report->Damage(file_, what, std::exchange(repair_, nullptr));
}

void FailureCopies::Read(const replay::Ring& ring) {
  const absl::StatusOr<uint64_t> end = ring.StoredCursor();
  if (!end.ok()) return Damage(end.status().message());
  sound_ = true;
  if (*end < made_) {
    Damage(absl::StrCat("record ", *end, ": the ring ends, but ", made_, " copies of rows with cost > 0 were made"));
  }
  const uint64_t first = *end - std::min(*end, ring.kept());
  bool cut = first > 0;
  std::string records;
  for (uint64_t block = first / kRingBlockRecords; block * kRingBlockRecords < *end; ++block) {
    const absl::Status copied = ring.CopyBlock(block, *end, &records);
    if (absl::IsOutOfRange(copied)) {
      cut = true;
      continue;
    }
    if (!copied.ok()) {
      sound_ = false;
      Damage(copied.message());
      continue;
    }
    const uint64_t from = std::max(first, block * kRingBlockRecords);
    records.erase(0, (from - block * kRingBlockRecords) * ring.record_bytes());
    AddBlock(from, ring.record_bytes(), records);
  }
  if (cut) complete_from_ = copies_.empty() ? std::numeric_limits<uint64_t>::max() : copies_.front().row;
}

void FailureCopies::AddBlock(uint64_t from, uint64_t record_bytes, const std::string& records) {
  for (uint64_t i = 0; (i + 1) * record_bytes <= records.size(); ++i) {
    const char* record = records.data() + i * record_bytes;
    const uint64_t row = At<uint64_t>(record, 0);
    if (!copies_.empty() && row <= copies_.back().row) {
      Damage(
          absl::StrCat("record ", from + i, ": copies row ", row, ", the record before it row ", copies_.back().row));
      sound_ = false;
      continue;
    }
    const absl::string_view bytes(record + kFailureHeaderBytes, record_bytes - kFailureHeaderBytes);
    copies_.push_back({row, Crc32c(bytes), from + i});
  }
}

void FailureCopies::SkipTo(uint64_t row) {
  while (next_ < copies_.size() && copies_[next_].row < row) ++next_;
}

void FailureCopies::Compare(uint64_t row, bool failed, absl::string_view bytes) {
  const bool copied = next_ < copies_.size() && copies_[next_].row == row;
  if (copied) {
    const Copy& copy = copies_[next_++];
    if (!failed || copy.crc != Crc32c(bytes))
      Damage(absl::StrCat("record ", copy.record, ": differs from row ", row, ", which it copies"));
  } else if (failed && sound_ && row >= complete_from_ && row < complete_below_) {
    Damage(absl::StrCat("row ", row, " has cost > 0 and no copy"));
  }
}

void FailureCopies::End(uint64_t end) {
  SkipTo(end);
  if (next_ == copies_.size()) return;
  Damage(absl::StrCat("record ", copies_[next_].record, ": copies row ", copies_[next_].row, ", the member has ", end,
                      " rows"));
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
