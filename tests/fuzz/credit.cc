// A credit file (replay/credit_file.h) with any content. Reading it, as `datacom verify` does, changes nothing: it is
// refused, or every word is the one in the file. A replay that opens it refuses it, unchanged if it had content,
// or grants credit in it; with kSync by a commit.
//
// Input: a byte of flags, then the file: the identity in its header (264 bytes) and, for byte 4096 and on, the words;
// with kRaw the file as it is.
#include "replay/credit_file.h"

#include <algorithm>

#include "tests/fuzz/credit_bytes.h"
#include "tests/fuzz/fuzz_target.h"

namespace datacom::fuzz {
namespace {

enum Flags { kSealHeader = 1, kSealWords = 2, kRaw = 4, kHasSessions = 8, kPad = 16, kSync = 32 };
constexpr uint32_t kSlots = 3, kMembers = 2;
constexpr size_t kWords = size_t{2} * kSlots * kMembers;

std::string Path() { return Folder() + "/credit"; }

replay::CreditFile::Options Options(uint8_t flags) {
  return {Path(), "run", kSlots, kMembers, (flags & kHasSessions) != 0, (flags & kSync) != 0};
}

// Two of the slots are in use.
const std::string& Sound() {
  static const std::string file = [] {
    WriteBytes(Path(), "");
    const auto credit = replay::CreditFile::Open(Options(0));
    MustAccept(credit.status());
    for (uint32_t slot = 0; slot < 2; ++slot) (*credit)->Clear(slot);
    (*credit)->Set(1, 1, {40, 7});
    return ReadBytes(Path());
  }();
  return file;
}

std::string FileOf(uint8_t flags, absl::string_view bytes) {
  if (flags & kRaw) return std::string(bytes);
  std::string file = Sound().substr(0, kCreditIdentity) + std::string(bytes.substr(0, kCreditIdentityBytes));
  file.resize(kCreditWords);
  if (flags & kSealHeader) file.replace(kCreditStart, 8, Sound().substr(kCreditStart, 8));
  if (bytes.size() > kCreditIdentityBytes) file.append(std::string(bytes.substr(kCreditIdentityBytes)));
  if (flags & kPad) file.resize(Sound().size());
  if (flags & kSealWords) SealCreditWords(&file);
  if (flags & kSealHeader) SealCreditHeader(Sound(), &file);
  return file;
}

// A process that died while creating the file may have left it. Open then completes the file.
bool IsUnfinished(const std::string& file) {
  if (file.empty()) return true;
  return file.size() >= kCreditWords && WordAt(file, 8) >> 32 == 0 &&  // the checksum
         std::all_of(file.begin() + kCreditWords, file.end(), [](char byte) { return byte == 0; });
}

void CheckContent(const replay::CreditFile::Content& content, const std::string& file) {
  MUST(content.words.size() == (file.size() - kCreditWords) / 8 && content.unused.size() == content.words.size());
  MUST(content.words.size() == size_t{2} * content.slots * content.members);
  MUST(file.compare(kCreditIdentity + 8, content.run_id.size(), content.run_id) == 0);
  for (size_t i = 0; i < content.words.size(); ++i) {
    const uint64_t word = WordAt(file, kCreditWords + 8 * i), number = word & replay::kLargestCheckedNumber;
    MUST(content.unused[i] == (word == 0) && content.words[i].has_value() == (replay::CheckedWord(number, i) == word));
    MUST(content.words[i].value_or(number) == number);
  }
}

replay::CreditFile::Content MustRead() {
  auto content = replay::CreditFile::Read(Path());
  MustAccept(content.status());
  MUST(content->run_id == "run" && content->words.size() == kWords);
  return *std::move(content);
}

void CheckLoading(replay::CreditFile* credit, const replay::CreditFile::Content& found) {
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const auto* words = &found.words[size_t{2} * slot * kMembers];
    const absl::Status loaded = credit->Load(slot);
    MUST(loaded.ok() == std::all_of(words, words + 2 * kMembers, [](const auto& word) { return word.has_value(); }));
    if (!loaded.ok()) MustRefuse(loaded);
    for (uint32_t member = 0; loaded.ok() && member < kMembers; ++member) {
      const replay::CreditFile::Entry& entry = credit->at(slot, member);
      MUST(entry.limit == words[2 * member] && entry.next_sequence == words[2 * member + 1]);
    }
  }
}

// Does what a replay does with the file that it opened: begins sessions in slots 0 and 2 and grants both credit; the
// one in slot 2 ends while a commit writes its credit.
void Use(replay::CreditFile* credit, bool sync) {
  replay::CreditFile::Content expected = MustRead();
  CheckLoading(credit, expected);
  const auto expect = [&](uint32_t slot, std::vector<uint64_t> words) {
    const size_t first = size_t{2} * slot * kMembers;
    std::copy(words.begin(), words.end(), expected.words.begin() + first);
    std::fill_n(expected.unused.begin() + first, words.size(), false);
  };
  const auto check_file = [&] {
    const replay::CreditFile::Content changed = MustRead();
    MUST(changed.words == expected.words && changed.unused == expected.unused);
  };
  credit->Clear(0);
  credit->Clear(2);
  expect(0, {0, 0, 0, 0});
  expect(2, {0, 0, 0, 0});
  check_file();
  credit->Set(0, 1, {4, 4});
  credit->Set(0, 1, {replay::kLargestCheckedNumber, 5});
  credit->Set(2, 0, {9, 9});
  MUST(credit->at(0, 1).limit == replay::kLargestCheckedNumber);
  MUST(credit->durable(0, 1).limit == (sync ? 0 : replay::kLargestCheckedNumber) && credit->changed() == sync);
  if (sync) check_file();
  credit->Take();
  MUST(!credit->changed());
  credit->Set(0, 0, {6, 6});
  credit->Clear(2);
  credit->StoreTaken();
  MustAccept(credit->SyncTaken());
  credit->Finish();
  const uint64_t next = sync ? 0 : 6;  // of member 0; it belongs to the commit after this one
  MUST(credit->durable(0, 1).limit == replay::kLargestCheckedNumber && credit->durable(0, 0).limit == next);
  MUST(credit->durable(2, 0).limit == 0 && credit->changed() == sync);
  MustAccept(credit->Sync(0));
  expect(0, {next, next, replay::kLargestCheckedNumber, 5});
  check_file();
}

}  // namespace

static void Run(absl::string_view bytes) {
  Input input(bytes);
  const uint8_t flags = input.Byte();
  const std::string file = FileOf(flags, input.Rest());
  WriteBytes(Path(), file);
  const auto content = replay::CreditFile::Read(Path());
  MUST(ReadBytes(Path()) == file);
  if (content.ok()) {
    CheckContent(*content, file);
  } else {
    MustRefuse(content.status());
  }
  const auto credit = replay::CreditFile::Open(Options(flags));
  if (credit.ok()) return Use(credit->get(), (flags & kSync) != 0);
  MustRefuse(credit.status());
  MUST(ReadBytes(Path()) == file || IsUnfinished(file));
}

static std::vector<Seed> Seeds() {
  const auto flags = [](int bits) { return std::string(1, static_cast<char>(bits)); };
  const std::string& file = Sound();
  const std::string packed = file.substr(kCreditIdentity, kCreditIdentityBytes) + file.substr(kCreditWords);
  std::string huge(kCreditIdentityBytes, '\0');
  PutWord(uint64_t{1} << 63 | uint64_t{1} << 31, 0, &huge);  // 2^31 slots and members
  return {{"file", flags(kRaw) + file},
          {"sealed", flags(kSealHeader | kHasSessions) + packed},
          {"words", flags(kSealHeader | kSealWords) + packed},
          {"synced", flags(kSealHeader | kSealWords | kSync) + packed},
          {"padded", flags(kSealHeader | kPad) + packed.substr(0, kCreditIdentityBytes + 20)},
          {"impossible_size", flags(kSealHeader) + huge},
          {"new", flags(kRaw) + std::string(file.size(), '\0')},
          {"empty", flags(kRaw)},
          {"lost", flags(kRaw | kHasSessions)},
          {"short", flags(kRaw) + file.substr(0, 30)}};
}

static const Target kTarget("credit", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0
