#include "replay/credit_file.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/framed_file.h"
#include "common/base/status.h"
#include "common/transitions/replay_layout.h"
#include "replay/checked_word.h"

namespace datacom::replay {
namespace {

constexpr char kAdvice[] = "; resume with the build and the experiment that wrote it, or start a new run folder";
constexpr FileFormat kFormat = {"credit file", "DCCREDIT", 4, kAdvice};

constexpr uint64_t kStartPlace = uint64_t{1} << 63;  // of the checked word; entries have smaller ones

struct Identity {
  uint32_t slots, members;
  Owner owner;
};

struct Header {
  FrameHeader frame;
  Identity identity;
  alignas(64) uint64_t start;  // a checked word
};
static_assert(sizeof(Header) <= kCreditHeaderBytes);

Header MakeHeader(const CreditFile::Options& options) {
  Header header;
  std::memset(&header, 0, sizeof header);
  header.identity.slots = options.slots;
  header.identity.members = options.members;
  header.identity.owner = MakeOwner(options.run_id, kEveryMember);
  header.frame = MakeFrameHeader(kFormat, RawBytes(header.identity));
  header.start = CheckedWord(0, kStartPlace);
  return header;
}

// A process that died while creating the file left zeros, or part of the header without its checksum.
bool IsUnfinished(const MappedFile& file) {
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  const char* entries = file.data() + kCreditHeaderBytes;
  return header.frame.crc == 0 &&
         std::all_of(entries, entries + file.size() - kCreditHeaderBytes, [](char byte) { return byte == 0; });
}

std::string Where(const MappedFile& file) { return absl::StrCat("credit file ", file.path(), ": "); }

absl::StatusOr<Identity> IdentityOf(const MappedFile& file) {
  ASSIGN_OR_RETURN(const absl::string_view payload,
                   Unframe(kFormat, file.path(), absl::string_view(file.data(), file.size())));
  Identity found;
  if (payload.size() != sizeof found) return absl::DataLossError(absl::StrCat(Where(file), "damaged", kAdvice));
  std::memcpy(&found, payload.data(), sizeof found);
  return found;
}

absl::Status CheckSize(const MappedFile& file, const Identity& found) {
  const uint64_t entries = uint64_t{found.slots} * found.members;  // its bytes could overflow
  if (entries < file.size() && file.size() == kCreditHeaderBytes + entries * kCreditEntryBytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(Where(file), file.size(), " bytes for ", found.slots, " slots of ",
                                          found.members, " members", kAdvice));
}

absl::Status Check(const MappedFile& file, const CreditFile::Options& options, const Header& wanted) {
  ASSIGN_OR_RETURN(const Identity found, IdentityOf(file));
  RETURN_IF_ERROR(CheckOwner(kFormat, file.path(), found.owner, wanted.identity.owner));
  if (std::memcmp(&found, &wanted.identity, sizeof found) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(Where(file), "of ", found.members, " members and ", found.slots,
                                                      " slots, not of ", options.members, " and ", options.slots,
                                                      kAdvice));
  }
  return CheckSize(file, found);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CreditFile>> CreditFile::Open(const Options& options) {
  const size_t entries = size_t{options.slots} * options.members;
  bool created = false;
  std::error_code error;  // an empty file would be made anew
  if (options.must_have_content && !(std::filesystem::file_size(options.path, error) > 0 && !error)) {
    return absl::DataLossError(
        absl::StrCat("credit file ", options.path, ": missing or empty, although the run has sessions", kAdvice));
  }
  ASSIGN_OR_RETURN(auto file,
                   MappedFile::OpenOrCreate(options.path, kCreditHeaderBytes + entries * kCreditEntryBytes, &created));
  if (file->size() < kCreditHeaderBytes) {
    return absl::DataLossError(
        absl::StrCat("credit file ", options.path, ": ", file->size(), " bytes: truncated", kAdvice));
  }
  const Header wanted = MakeHeader(options);
  if (!options.must_have_content && (created || IsUnfinished(*file))) RETURN_IF_ERROR(file->StoreHeader(wanted));
  RETURN_IF_ERROR(Check(*file, options, wanted));
  RETURN_IF_ERROR(StartOf(*file).status());
  // The process before may have died, or met a failing disk, before it synced what it stored.
  if (options.sync) RETURN_IF_ERROR(file->Rewrite(0, file->size()));
  return std::unique_ptr<CreditFile>(new CreditFile(std::move(file), options));
}

absl::StatusOr<uint64_t> CreditFile::StartOf(const MappedFile& file) {
  const auto* header = reinterpret_cast<const Header*>(file.data());
  const auto start = NumberOf(header->start, kStartPlace);
  if (start.has_value()) return *start;
  return absl::DataLossError(
      absl::StrCat(Where(file), "its start is damaged; restore the file from a copy, or start a ", "new run folder"));
}

absl::StatusOr<uint64_t> CreditFile::start() const { return StartOf(*file_); }

void CreditFile::SetStart(uint64_t start) {
  reinterpret_cast<Header*>(file_->data())->start = CheckedWord(start, kStartPlace);
}

absl::StatusOr<CreditFile::Content> CreditFile::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::OpenReadOnly(path));
  ASSIGN_OR_RETURN(const Identity found, IdentityOf(*file));
  RETURN_IF_ERROR(CheckSize(*file, found));
  ASSIGN_OR_RETURN(const uint64_t start, StartOf(*file));
  Content content{RunOf(found.owner), found.slots, found.members, start, {}, {}};
  auto* words = reinterpret_cast<uint64_t*>(file->data() + kCreditHeaderBytes);
  for (uint64_t i = 0; i < uint64_t{2} * found.slots * found.members; ++i) {
    const uint64_t word = std::atomic_ref<uint64_t>(words[i]).load(std::memory_order_acquire);
    content.words.push_back(NumberOf(word, i));
    content.unused.push_back(word == 0);
  }
  return content;
}

CreditFile::CreditFile(std::unique_ptr<MappedFile> file, const Options& options)
    : file_(std::move(file)),
      words_(reinterpret_cast<uint64_t*>(file_->data() + kCreditHeaderBytes)),
      slots_(options.slots),
      members_(options.members),
      sync_(options.sync),
      entries_(size_t{slots_} * members_),
      durable_(entries_.size()),
      is_changed_(entries_.size()) {}

absl::Status CreditFile::Load(uint32_t slot) {
  for (uint32_t member = 0; member < members_; ++member) {
    const size_t index = Index(slot, member);
    const auto limit = NumberOf(words_[2 * index], 2 * index);
    const auto next_sequence = NumberOf(words_[2 * index + 1], 2 * index + 1);
    if (!limit.has_value() || !next_sequence.has_value()) {
      return absl::DataLossError(absl::StrCat("credit file ", file_->path(), ": the credit of slot ", slot,
                                              " for member ", member,
                                              " is damaged; restore the file from a copy, or start a new run folder"));
    }
    entries_[index] = durable_[index] = {*limit, *next_sequence};
  }
  return absl::OkStatus();
}

void CreditFile::Clear(uint32_t slot) {
  const size_t begin = Index(slot, 0), end = begin + members_;
  for (size_t index = begin; index < end; ++index) {
    entries_[index] = durable_[index] = Entry{};
    is_changed_[index] = false;
    Store(index, Entry{});
  }
  std::erase_if(changed_, [=](size_t index) { return index >= begin && index < end; });
  std::erase_if(taken_, [=](const Taken& taken) { return taken.index >= begin && taken.index < end; });
}

void CreditFile::Set(uint32_t slot, uint32_t member, const Entry& entry) {
  const size_t index = Index(slot, member);
  entries_[index] = entry;
  if (!sync_) {
    Store(index, entry);
  } else if (!is_changed_[index]) {
    is_changed_[index] = true;
    changed_.push_back(index);
  }
}

void CreditFile::Store(size_t index, const Entry& entry) {
  words_[2 * index] = CheckedWord(entry.limit, 2 * index);
  words_[2 * index + 1] = CheckedWord(entry.next_sequence, 2 * index + 1);
}

absl::Status CreditFile::Sync(uint32_t slot) {
  const size_t bytes = members_ * kCreditEntryBytes;
  return file_->Sync(kCreditHeaderBytes + slot * bytes, bytes);
}

void CreditFile::Take() {
  taken_.clear();
  for (const size_t index : changed_) {
    taken_.push_back({index, entries_[index]});
    is_changed_[index] = false;
  }
  changed_.clear();
}

void CreditFile::StoreTaken() {
  for (const Taken& taken : taken_) Store(taken.index, taken.entry);
}

absl::Status CreditFile::SyncTaken() const {
  return file_->Sync(kCreditHeaderBytes, entries_.size() * kCreditEntryBytes);
}

void CreditFile::Finish() {
  for (const Taken& taken : taken_) durable_[taken.index] = taken.entry;
  taken_.clear();
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
