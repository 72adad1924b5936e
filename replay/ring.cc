#include "replay/ring.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/framed_file.h"
#include "common/base/status.h"
#include "replay/checked_word.h"

namespace datacom::replay {
namespace {

constexpr char kAdvice[] = "; resume with the build and the experiment that wrote it, or start a new run folder";
constexpr FileFormat kFormat = {"ring", "DCRINGS\n", 4, kAdvice};
constexpr uint64_t kCursorPlace = 0;  // the counters follow

struct Identity {
  uint64_t schema_fingerprint;
  uint64_t record_bytes;
  uint64_t kept;
  uint64_t guard;
  Owner owner;
};

struct Header {
  FrameHeader frame;
  Identity identity;
  alignas(64) uint64_t cursor;  // checked words
  uint64_t counters[Ring::kCounters];
};
static_assert(sizeof(Header) <= kRingHeaderBytes && std::is_trivially_copyable_v<Header>);

Header* HeaderOf(MappedFile* file) { return reinterpret_cast<Header*>(file->data()); }

FrameHeader FrameOf(const Identity& identity) { return MakeFrameHeader(kFormat, RawBytes(identity)); }

uint64_t LoadWord(uint64_t* word) { return std::atomic_ref<uint64_t>(*word).load(std::memory_order_acquire); }

// A new ring's header.
Header MakeHeader(const Ring::Options& options) {
  Header header;
  std::memset(&header, 0, sizeof header);
  header.identity.schema_fingerprint = options.schema_fingerprint;
  header.identity.record_bytes = options.record_bytes;
  header.identity.kept = options.kept;
  header.identity.guard = options.guard;
  header.identity.owner = MakeOwner(options.run_id, options.member);
  header.frame = FrameOf(header.identity);
  header.cursor = CheckedWord(0, kCursorPlace);
  for (int i = 0; i < Ring::kCounters; ++i) header.counters[i] = CheckedWord(0, kCursorPlace + 1 + i);
  return header;
}

// A process that died while creating the file left its blocks and at most part of the header, without the checksum;
// nothing was committed.
bool IsUnfinished(const Header& header, const Header& wanted) {
  const auto* found = reinterpret_cast<const char*>(&header);
  const auto* whole = reinterpret_cast<const char*>(&wanted);
  for (size_t i = 0; i < sizeof wanted; ++i) {
    if (found[i] != 0 && found[i] != whole[i]) return false;
  }
  return header.frame.crc == 0;
}

Identity Grown(Identity identity, uint64_t kept) {
  identity.kept = kept;
  return identity;
}

// A process that died while growing a ring may have left the new checksum with the old size.
void FinishGrowing(const Ring::Options& options, uint64_t bytes, Header* header) {
  if (bytes < RingBytes(options.kept, options.guard, options.record_bytes)) return;
  if (header->frame.crc == FrameOf(Grown(header->identity, options.kept)).crc) header->identity.kept = options.kept;
}

std::string Where(const std::string& path) { return absl::StrCat("ring ", path, ": "); }

// The number that a word of the header holds.
absl::StatusOr<uint64_t> NumberIn(const std::string& path, uint64_t word, uint64_t place) {
  const std::optional<uint64_t> number = NumberOf(word, place);
  if (number.has_value()) return *number;
  return absl::DataLossError(
      absl::StrCat(Where(path), "its cursor is damaged; restore the file from a copy, or start a new run folder"));
}

// Whether the file is a complete ring of this row schema that this build can read.
absl::Status CheckReadable(const MappedFile& file, const Ring::Options& options) {
  const std::string where = Where(options.path);
  ASSIGN_OR_RETURN(const absl::string_view payload,
                   Unframe(kFormat, options.path, absl::string_view(file.data(), file.size())));
  Identity found;
  if (payload.size() != sizeof found || file.size() < kRingHeaderBytes) {
    return absl::DataLossError(absl::StrCat(where, "truncated or damaged: ", file.size(), " bytes", kAdvice));
  }
  std::memcpy(&found, payload.data(), sizeof found);
  if (found.schema_fingerprint != options.schema_fingerprint || found.record_bytes != options.record_bytes) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%srow schema %016x of %d bytes, the experiment has %016x of %d%s", where, found.schema_fingerprint,
        found.record_bytes, options.schema_fingerprint, options.record_bytes, kAdvice));
  }
  if (std::max(found.kept, found.guard) >= file.size()) {  // RingBytes could overflow
    return absl::DataLossError(absl::StrCat(where, "truncated or damaged: ", file.size(), " bytes for ", found.kept,
                                            " records and ", found.guard, " more", kAdvice));
  }
  const uint64_t bytes = RingBytes(found.kept, found.guard, found.record_bytes);
  if (file.size() < bytes) {
    return absl::DataLossError(absl::StrCat(where, "truncated: ", file.size(), " bytes instead of ", bytes, kAdvice));
  }
  return absl::OkStatus();
}

// Whether the run may continue with the ring.
absl::Status CheckWritable(const Header& header, const Ring::Options& options) {
  const std::string where = Where(options.path);
  const Identity& found = header.identity;
  RETURN_IF_ERROR(CheckOwner(kFormat, options.path, header.identity.owner, MakeOwner(options.run_id, options.member)));
  // A run that is resumed with more steps needs a larger ring; records stay in place as long as none was overwritten.
  const uint64_t cursor = header.cursor & kLargestCheckedNumber;
  if (found.guard != options.guard || (found.kept < options.kept && cursor > found.kept)) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, "keeps ", found.kept, " rows, the experiment asks for ", options.kept, kAdvice));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ring>> Ring::Open(const Options& options) {
  if (options.run_id.size() > kMaxRunId) {
    return absl::InvalidArgumentError(
        absl::StrCat("run id of ", options.run_id.size(), " bytes; at most ", kMaxRunId, " are allowed"));
  }
  const size_t bytes = RingBytes(options.kept, options.guard, options.record_bytes);
  bool created = false;
  ASSIGN_OR_RETURN(auto file, MappedFile::OpenOrCreate(options.path, bytes, &created));
  Header* header = HeaderOf(file.get());
  const Header wanted = MakeHeader(options);
  if (created || (file->size() == bytes && IsUnfinished(*header, wanted))) RETURN_IF_ERROR(file->StoreHeader(wanted));
  if (file->size() >= kRingHeaderBytes) FinishGrowing(options, file->size(), header);
  RETURN_IF_ERROR(CheckReadable(*file, options));
  RETURN_IF_ERROR(CheckWritable(*header, options));
  if (header->identity.kept < options.kept) {
    RETURN_IF_ERROR(OpenReadOnly(options).status());  // a damaged ring stays as it is
    RETURN_IF_ERROR(MappedFile::Grow(options.path, bytes));
    ASSIGN_OR_RETURN(file, MappedFile::OpenOrCreate(options.path, bytes, &created));
    header = HeaderOf(file.get());
    header->frame.crc = FrameOf(Grown(header->identity, options.kept)).crc;
    std::atomic_ref(header->identity.kept).store(options.kept, std::memory_order_release);  // see FinishGrowing
    RETURN_IF_ERROR(file->Sync(0, kRingHeaderBytes));
  }
  file->AdviseRandom();
  std::unique_ptr<Ring> ring(new Ring(std::move(file), options));
  RETURN_IF_ERROR(ring->Load());
  if (options.sync) RETURN_IF_ERROR(ring->RewriteNewest());
  return ring;
}

absl::StatusOr<std::unique_ptr<const Ring>> Ring::OpenFile(Options options, absl::Status (Ring::*load)()) {
  ASSIGN_OR_RETURN(auto file, MappedFile::OpenReadOnly(options.path));
  RETURN_IF_ERROR(CheckReadable(*file, options));
  options.guard = HeaderOf(file.get())->identity.guard;
  std::unique_ptr<Ring> ring(new Ring(std::move(file), options));
  RETURN_IF_ERROR((ring.get()->*load)());
  return ring;
}

bool Ring::HasContent(const std::string& path) {
  const absl::StatusOr<OpenedFile> file = OpenedFile::Open(path);
  if (!file.ok()) return !absl::IsNotFound(file.status());
  const std::string start = file->Read(0, kRingHeaderBytes).value_or("");
  return start.find_first_not_of('\0') != std::string::npos;
}

Ring::Ring(std::unique_ptr<MappedFile> file, const Options& options)
    : file_(std::move(file)),
      kept_(HeaderOf(file_.get())->identity.kept),
      guard_(options.guard),
      count_(RingBlocks(kept_, guard_)),
      record_bytes_(options.record_bytes),
      sync_(options.sync),
      blocks_(file_->data() + kRingHeaderBytes) {}

absl::Status Ring::LoadNumbers() {
  ASSIGN_OR_RETURN(cursor_, StoredCursor());
  for (int i = 0; i < kCounters; ++i) {
    const uint64_t word = LoadWord(&HeaderOf(file_.get())->counters[i]);
    ASSIGN_OR_RETURN(counters_[i], NumberIn(file_->path(), word, kCursorPlace + 1 + i));
  }
  return absl::OkStatus();
}

absl::Status Ring::Load() {
  RETURN_IF_ERROR(LoadNumbers());
  next_.cursor = cursor_;
  for (uint64_t block = first() / kRingBlockRecords; block * kRingBlockRecords < cursor_; ++block) {
    ASSIGN_OR_RETURN(const int found, FindSum(block));
    if (cursor_ - block * kRingBlockRecords >= kRingBlockRecords) continue;
    next_.open_crc = SumOf(block * kRingBlockRecords, cursor_, 0);
    next_.sum = 1 - found;
  }
  return absl::OkStatus();
}

// The process before may have died, or met a failing disk, between storing records and cursor and syncing them. What
// is recovered counts as committed, so it must be on the disk. At most `guard` records were not committed.
absl::Status Ring::RewriteNewest() {
  RETURN_IF_ERROR(ForPlaces(cursor_ - std::min(cursor_, guard_), cursor_,
                            [this](size_t offset, size_t bytes) { return file_->Rewrite(offset, bytes); }));
  RETURN_IF_ERROR(file_->Sync(0, file_->size()));  // a process without sync has left older records, too
  return file_->Rewrite(0, kRingHeaderBytes);
}

std::atomic_ref<uint64_t> Ring::StoredSum(uint64_t block, int index) const {
  return std::atomic_ref<uint64_t>(reinterpret_cast<uint64_t*>(Block(block))[index]);
}

uint32_t Ring::SumOf(uint64_t from, uint64_t to, uint32_t before) const {
  if (from % kRingBlockRecords == 0) before = Crc32c(RawBytes(from / kRingBlockRecords));
  return Crc32c(absl::string_view(record(from), (to - from) * record_bytes_), before);
}

absl::StatusOr<int> Ring::FindSum(uint64_t block) const {
  const uint64_t from = block * kRingBlockRecords, to = std::min(from + kRingBlockRecords, cursor_);
  const uint32_t crc = SumOf(from, to, 0);
  for (int index = 0; index < 2; ++index) {
    const auto sum = std::bit_cast<Sum>(StoredSum(block, index).load(std::memory_order_acquire));
    if (sum.records == to - from && sum.crc == crc) return index;
  }
  return absl::DataLossError(absl::StrCat(Where(file_->path()), "records ", from, " to ", to,
                                          " are damaged, or older than the cursor, which is ", cursor_,
                                          "; restore the run folder from a copy, or start a new one"));
}

absl::StatusOr<uint64_t> Ring::StoredCursor() const {
  return NumberIn(file_->path(), LoadWord(&HeaderOf(file_.get())->cursor), kCursorPlace);
}

// A sum is stored after its records, and the cursor after the sum. So the sums are read first, then the records, then
// the cursor again. A block with a readable record is never overwritten (RingBlocks), so a wrong sum means damage
// unless the writer moved on.
absl::Status Ring::CopyBlock(uint64_t block, uint64_t end, std::string* records) const {
  const uint64_t from = block * kRingBlockRecords, to = std::min(from + kRingBlockRecords, end);
  for (;;) {
    ASSIGN_OR_RETURN(const uint64_t before, StoredCursor());
    Sum sums[2];
    for (int i = 0; i < 2; ++i) sums[i] = std::bit_cast<Sum>(StoredSum(block, i).load(std::memory_order_acquire));
    const uint64_t most = std::min<uint64_t>(std::max(sums[0].records, sums[1].records), kRingBlockRecords);
    records->assign(record(from), std::max(most, to - from) * record_bytes_);
    std::atomic_thread_fence(std::memory_order_acquire);
    ASSIGN_OR_RETURN(const uint64_t after, StoredCursor());
    if (after > kept_ && from + kRingBlockRecords <= after - kept_) {
      return absl::OutOfRangeError(absl::StrCat("records ", from, " to ", to, " were overwritten"));
    }
    for (const Sum& sum : sums) {
      if (sum.records < to - from || sum.records > kRingBlockRecords) continue;
      const absl::string_view summed = absl::string_view(*records).substr(0, sum.records * record_bytes_);
      if (Crc32c(summed, Crc32c(RawBytes(block))) != sum.crc) continue;
      records->resize((to - from) * record_bytes_);
      return absl::OkStatus();
    }
    if (after == before) {
      return absl::DataLossError(
          absl::StrCat("records ", from, " to ", to, " are damaged, or older than the cursor, which is ", after));
    }
  }
}

// The cursor and the counters change one by one: two equal copies in a row were read while none changed.
absl::StatusOr<std::string> Ring::CopyHeader(uint64_t* cursor) const {
  const auto copy = [this] { return file_->CopyWords(kRingHeaderBytes); };
  std::string page = copy();
  for (std::string again = copy(); again != page; again = copy()) page = std::move(again);
  Header header;
  std::memcpy(&header, page.data(), sizeof header);
  if (header.identity.kept != kept_) return absl::AbortedError(absl::StrCat(Where(file_->path()), "has grown"));
  ASSIGN_OR_RETURN(*cursor, NumberIn(file_->path(), header.cursor, kCursorPlace));
  return page;
}

std::string Ring::FrameBlock(uint64_t block, absl::string_view records) const {
  const Sum sum{static_cast<uint32_t>(records.size() / record_bytes_), Crc32c(records, Crc32c(RawBytes(block)))};
  std::string bytes(RingBlockBytes(record_bytes_), '\0');
  std::memcpy(bytes.data(), &sum, sizeof sum);
  std::memcpy(bytes.data() + kRingBlockHeaderBytes, records.data(), records.size());
  return bytes;
}

template <typename Write>
absl::Status Ring::ForPlaces(uint64_t from, uint64_t to, const Write& write) const {
  if (from == to) return absl::OkStatus();
  const uint64_t first = from / kRingBlockRecords % count_, last = (to - 1) / kRingBlockRecords % count_;
  const uint64_t bytes = RingBlockBytes(record_bytes_);
  if (first <= last) return write(kRingHeaderBytes + first * bytes, (last - first + 1) * bytes);
  RETURN_IF_ERROR(write(kRingHeaderBytes + first * bytes, (count_ - first) * bytes));
  return write(kRingHeaderBytes, (last + 1) * bytes);
}

absl::Status Ring::SyncRange(uint64_t from, uint64_t to) const {
  return ForPlaces(from, to, [this](size_t offset, size_t bytes) { return file_->Sync(offset, bytes); });
}

void Ring::StoreCursor(uint64_t cursor) {
  std::atomic_ref<uint64_t>(HeaderOf(file_.get())->cursor)
      .store(CheckedWord(cursor, kCursorPlace), std::memory_order_release);
}

absl::Status Ring::Commit(uint64_t cursor) {
  Prepare(cursor);
  RETURN_IF_ERROR(SyncRecords());
  RETURN_IF_ERROR(SyncCursor());
  Finish();
  return absl::OkStatus();
}

void Ring::Prepare(uint64_t cursor) {
  for (uint64_t from = next_.cursor; from < cursor;) {
    const uint64_t to = std::min(cursor, from + contiguous(from)), block = from / kRingBlockRecords;
    next_.open_crc = SumOf(from, to, next_.open_crc);
    const Sum sum{static_cast<uint32_t>(to - block * kRingBlockRecords), next_.open_crc};
    StoredSum(block, next_.sum).store(std::bit_cast<uint64_t>(sum), std::memory_order_release);
    next_.sum = to % kRingBlockRecords == 0 ? 0 : 1 - next_.sum;
    from = to;
  }
  next_.cursor = cursor;
}

absl::Status Ring::SyncRecords() const { return sync_ ? SyncRange(cursor_, next_.cursor) : absl::OkStatus(); }

absl::Status Ring::SyncCursor() {
  if (next_.cursor == cursor_) return absl::OkStatus();
  DATACOM_FAILPOINT("ring.records");
  StoreCursor(next_.cursor);
  DATACOM_FAILPOINT("ring.cursor");
  return sync_ ? file_->Sync(0, kRingHeaderBytes) : absl::OkStatus();
}

absl::Status Ring::Truncate(uint64_t cursor) {
  if (cursor >= cursor_) return absl::OkStatus();
  const uint64_t block = cursor / kRingBlockRecords, from = block * kRingBlockRecords;
  next_.sum = 0;
  if (cursor > from) {
    next_.open_crc = SumOf(from, cursor, 0);
    const Sum sum{static_cast<uint32_t>(cursor - from), next_.open_crc};
    const int index = 1 - FindSum(block).value_or(0);  // the sum up to cursor_ stays until the cursor is stored
    StoredSum(block, index).store(std::bit_cast<uint64_t>(sum), std::memory_order_release);
    next_.sum = 1 - index;
    if (sync_) RETURN_IF_ERROR(SyncRange(from, cursor));
  }
  StoreCursor(cursor);
  cursor_ = next_.cursor = cursor;
  return sync_ ? file_->Sync(0, kRingHeaderBytes) : absl::OkStatus();
}

std::string Ring::run_id() const { return RunOf(HeaderOf(file_.get())->identity.owner); }

absl::Status Ring::CheckBelongsTo(const std::string& run_id, uint32_t member) const {
  return CheckOwner(kFormat, file_->path(), HeaderOf(file_.get())->identity.owner, MakeOwner(run_id, member));
}

void Ring::set_counter(int index, uint64_t value) {
  counters_[index] = value;
  HeaderOf(file_.get())->counters[index] = CheckedWord(value, kCursorPlace + 1 + index);
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
