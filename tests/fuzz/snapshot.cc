// Snapshots (common/nn/snapshot.h) as an actor gets them in messages and as files: refused, or the same after they were
// encoded again.
//
// Input: a byte for the form, then its bytes.
#include "common/nn/snapshot.h"
#include "common/base/status.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/snapshot_inputs.h"

namespace datacom::fuzz {
namespace {

// An encoded snapshot; manifest and data; the same with the right checksum; a file; a file's payload; a file with one
// snapshot given as manifest and data.
enum Form { kEncoded, kManifest, kSealed, kFile, kPayload, kSealedFile, kForms };

std::string Path() { return Folder() + "/snapshots"; }

const std::string& SoundFile() {
  static const std::string file = [] {
    MustAccept(WriteSnapshotFile(Path(), {SmallSnapshot(), SmallSnapshot()}));
    return ReadBytes(Path());
  }();
  return file;
}

void Check(const absl::StatusOr<Snapshot>& snapshot) {
  if (snapshot.ok()) {
    CheckSnapshot(*snapshot);
  } else {
    MustRefuse(snapshot.status());
  }
}

void CheckFile(const std::string& content) {
  WriteBytes(Path(), content);
  const auto snapshots = ReadSnapshotFile(Path());
  if (!snapshots.ok()) return MustRefuse(snapshots.status());
  for (const Snapshot& snapshot : *snapshots) CheckSnapshot(snapshot);
  MustAccept(WriteSnapshotFile(Path(), *snapshots));
  const std::string written = ReadBytes(Path());
  const auto again = ReadSnapshotFile(Path());
  MustAccept(again.status());
  MustAccept(WriteSnapshotFile(Path(), *again));
  MUST(again->size() == snapshots->size() && ReadBytes(Path()) == written);
}

void CheckManifest(Input* input) {
  v1::SnapshotManifest manifest;
  const absl::string_view bytes = input->Text();
  if (!manifest.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  Check(SnapshotFromManifest(manifest, input->Rest()));
}

}  // namespace

static void Run(absl::string_view bytes) {
  SoundFile();
  Input input(bytes);
  switch (input.Byte() % kForms) {
    case kEncoded:
      return Check(DecodeSnapshot(input.Rest()));
    case kManifest:
      return CheckManifest(&input);
    case kSealed:
      return Check(DecodeSnapshot(SealedSnapshot(&input)));
    case kFile:
      return CheckFile(std::string(input.Rest()));
    case kPayload:
      return CheckFile(FrameLike(SoundFile(), input.Rest()));
    case kSealedFile: {
      std::string payload;
      PutValue(uint32_t{1}, &payload);
      PutSized(SealedSnapshot(&input), &payload);
      return CheckFile(FrameLike(SoundFile(), payload));
    }
  }
}

static std::vector<Seed> Seeds() {
  const auto form = [](Form which, const std::string& rest) { return std::string(1, static_cast<char>(which)) + rest; };
  const Snapshot snapshot = SmallSnapshot();
  const std::string open = OpenSnapshot(snapshot);
  return {{"encoded", form(kEncoded, EncodeSnapshot(snapshot))},
          {"manifest", form(kManifest, open)},
          {"sealed", form(kSealed, open)},
          {"file", form(kFile, SoundFile())},
          {"payload", form(kPayload, SoundFile().substr(24))},
          {"sealed_file", form(kSealedFile, open)}};
}

static const Target kTarget("snapshot", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0
