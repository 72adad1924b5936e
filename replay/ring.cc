#include "replay/ring.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/transitions/replay_layout.h"

namespace datacom {
namespace {

constexpr char kMagic[8] = {'D', 'A', 'T', 'A', 'C', 'O', 'M', 'R'};
constexpr uint32_t kLayout = 1;  // incremented whenever the file layout changes
constexpr int kCounters = 2;

struct Identity {
  char magic[8];
  uint32_t layout;
  uint32_t header_bytes;
  uint64_t schema_fingerprint;
  uint64_t record_bytes;
  uint64_t kept;
  uint64_t guard;
  char run_id[256];
};

struct Header {
  Identity identity;
  uint32_t crc;  // of identity
  uint32_t unused;
  alignas(64) uint64_t cursor;
  uint64_t counters[kCounters];
};
static_assert(sizeof(Header) <= kRingHeaderBytes && std::is_trivially_copyable_v<Header>);

Header* HeaderOf(MappedFile* file) { return reinterpret_cast<Header*>(file->data()); }

uint32_t CrcOf(const Identity& identity) {
  return Crc32(absl::string_view(reinterpret_cast<const char*>(&identity), sizeof identity));
}

Identity MakeIdentity(const Ring::Options& options) {
  Identity identity;
  std::memset(&identity, 0, sizeof identity);
  std::memcpy(identity.magic, kMagic, sizeof kMagic);
  identity.layout = kLayout;
  identity.header_bytes = kRingHeaderBytes;
  identity.schema_fingerprint = options.schema_fingerprint;
  identity.record_bytes = options.record_bytes;
  identity.kept = options.kept;
  identity.guard = options.guard;
  std::memcpy(identity.run_id, options.run_id.data(), options.run_id.size());
  return identity;
}

// A process that died while creating the file left its blocks and at most part of the identity; nothing was committed.
bool IsUnfinished(const Header& header, const Identity& wanted) {
  const auto* found = reinterpret_cast<const char*>(&header.identity);
  const auto* whole = reinterpret_cast<const char*>(&wanted);
  for (size_t i = 0; i < sizeof wanted; ++i) {
    if (found[i] != 0 && found[i] != whole[i]) return false;
  }
  return header.crc == 0 && header.cursor == 0;
}

Identity Grown(Identity identity, uint64_t kept) {
  identity.kept = kept;
  return identity;
}

// A process that died while growing a ring may have left the new checksum with the old size.
void FinishGrowing(const Ring::Options& options, uint64_t bytes, Header* header) {
  if (bytes < RingBytes(options.kept, options.guard, options.record_bytes)) return;
  if (header->crc == CrcOf(Grown(header->identity, options.kept))) header->identity.kept = options.kept;
}

std::string RunOf(const Identity& identity) {
  return std::string(identity.run_id, strnlen(identity.run_id, sizeof identity.run_id));
}

constexpr char kAdvice[] = "; resume with the build and the experiment that wrote it, or start a new run folder";

// Whether the file is a complete ring of this row schema that this build can read.
absl::Status CheckReadable(const MappedFile& file, const Ring::Options& options) {
  const std::string where = "ring " + options.path + ": ";
  Header header;
  if (file.size() < kRingHeaderBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, "truncated: ", file.size(), " bytes, the header alone has ", kRingHeaderBytes, kAdvice));
  }
  std::memcpy(&header, file.data(), sizeof header);
  const Identity& found = header.identity;
  if (std::memcmp(found.magic, kMagic, sizeof kMagic) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, "not a ring of this program (its first bytes differ)", kAdvice));
  }
  if (found.layout != kLayout) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, "layout version ", found.layout, ", this build reads ", kLayout, kAdvice));
  }
  if (CrcOf(found) != header.crc) {
    return absl::DataLossError(absl::StrCat(where, "the header's checksum is wrong: the file is damaged", kAdvice));
  }
  if (found.schema_fingerprint != options.schema_fingerprint || found.record_bytes != options.record_bytes) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%srow schema %016x of %d bytes, the experiment has %016x of %d%s", where, found.schema_fingerprint,
        found.record_bytes, options.schema_fingerprint, options.record_bytes, kAdvice));
  }
  const uint64_t bytes = RingBytes(found.kept, found.guard, found.record_bytes);
  if (file.size() < bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, "truncated: ", file.size(), " bytes instead of ", bytes, kAdvice));
  }
  return absl::OkStatus();
}

// Whether the run may continue with the ring.
absl::Status CheckWritable(const Header& header, const Ring::Options& options) {
  const std::string where = "ring " + options.path + ": ";
  const Identity& found = header.identity;
  if (RunOf(found) != options.run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, "belongs to run \"", RunOf(found), "\", not to \"", options.run_id, "\"", kAdvice));
  }
  // A run that is resumed with more steps needs a larger ring; records stay in place as long as none was overwritten.
  if (found.guard != options.guard || (found.kept < options.kept && header.cursor > found.kept)) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, "keeps ", found.kept, " rows, the experiment asks for ", options.kept, kAdvice));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ring>> Ring::Open(const Options& options) {
  if (options.run_id.size() >= sizeof(Identity::run_id)) {
    return absl::InvalidArgumentError(
        absl::StrCat("run id of ", options.run_id.size(), " bytes; at most 255 are allowed"));
  }
  const size_t bytes = RingBytes(options.kept, options.guard, options.record_bytes);
  bool created = false;
  ASSIGN_OR_RETURN(auto file, MappedFile::OpenOrCreate(options.path, bytes, &created));
  Header* header = HeaderOf(file.get());
  const Identity identity = MakeIdentity(options);
  const bool fresh = created || (file->size() == bytes && IsUnfinished(*header, identity));
  if (fresh) {
    header->identity = identity;
    header->crc = CrcOf(header->identity);
    RETURN_IF_ERROR(file->Sync(0, kRingHeaderBytes));
  }
  FinishGrowing(options, file->size(), header);
  RETURN_IF_ERROR(CheckReadable(*file, options));
  RETURN_IF_ERROR(CheckWritable(*header, options));
  if (header->identity.kept < options.kept) {
    RETURN_IF_ERROR(MappedFile::Grow(options.path, bytes));
    ASSIGN_OR_RETURN(file, MappedFile::OpenOrCreate(options.path, bytes, &created));
    header = HeaderOf(file.get());
    header->crc = CrcOf(Grown(header->identity, options.kept));
    header->identity.kept = options.kept;
    RETURN_IF_ERROR(file->Sync(0, kRingHeaderBytes));
  }
  file->AdviseRandom();
  std::unique_ptr<Ring> ring(new Ring(std::move(file), options));
  ring->fresh_ = fresh;
  return ring;
}

absl::StatusOr<std::unique_ptr<const Ring>> Ring::OpenReadOnly(Options options) {
  ASSIGN_OR_RETURN(auto file, MappedFile::OpenReadOnly(options.path));
  RETURN_IF_ERROR(CheckReadable(*file, options));
  options.guard = HeaderOf(file.get())->identity.guard;
  return std::unique_ptr<const Ring>(new Ring(std::move(file), options));
}

Ring::Ring(std::unique_ptr<MappedFile> file, const Options& options)
    : file_(std::move(file)),
      kept_(HeaderOf(file_.get())->identity.kept),
      guard_(options.guard),
      slots_(kept_ + guard_),
      record_bytes_(options.record_bytes),
      sync_(options.sync),
      records_(file_->data() + kRingHeaderBytes) {
  cursor_ = std::atomic_ref<uint64_t>(HeaderOf(file_.get())->cursor).load(std::memory_order_acquire);
}

absl::Status Ring::SyncRecords(uint64_t from, uint64_t to) {
  const uint64_t begin = from % slots_, count = to - from;
  const uint64_t head = std::min(count, slots_ - begin);
  RETURN_IF_ERROR(file_->Sync(kRingHeaderBytes + begin * record_bytes_, head * record_bytes_));
  return head == count ? absl::OkStatus() : file_->Sync(kRingHeaderBytes, (count - head) * record_bytes_);
}

void Ring::StoreCursor(uint64_t cursor) {
  cursor_ = cursor;
  std::atomic_ref<uint64_t>(HeaderOf(file_.get())->cursor).store(cursor, std::memory_order_release);
}

absl::Status Ring::Commit(uint64_t cursor) {
  if (sync_ && cursor > cursor_) RETURN_IF_ERROR(SyncRecords(cursor_, cursor));
  StoreCursor(cursor);
  return sync_ ? file_->Sync(0, kRingHeaderBytes) : absl::OkStatus();
}

void Ring::Truncate(uint64_t cursor) { StoreCursor(cursor); }

std::string Ring::run_id() const { return RunOf(HeaderOf(file_.get())->identity); }
uint64_t Ring::counter(int index) const { return HeaderOf(file_.get())->counters[index]; }
void Ring::set_counter(int index, uint64_t value) { HeaderOf(file_.get())->counters[index] = value; }

}  // namespace datacom
