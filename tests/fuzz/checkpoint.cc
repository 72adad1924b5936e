// The files of a checkpoint (common/records/checkpoint.h) with any content: refused, or the same after it was saved
// again. A damaged checkpoint is passed over for a sound older one.
//
// Input: a byte of flags, learner.state (Input::Text), algorithm.state (Input::Text), state.sha256. With kSeal the
// first two are payloads, the hash of the algorithm's state is written into learner.state, and state.sha256 is
// computed. kIncarnation: the number of the learner's start instead (NextIncarnation).
#include "common/records/checkpoint.h"

#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/config/sha256.h"
#include "tests/fuzz/fuzz_target.h"

namespace datacom::fuzz {
namespace {

namespace fs = std::filesystem;

enum Flags { kSeal = 1, kOtherUpdate = 2, kIncarnation = 4 };
constexpr uint64_t kUpdate = 7, kOlder = 3;

std::string Original() { return Folder() + "/checkpoints"; }
std::string Copy() { return Folder() + "/copy"; }

Checkpoint SoundCheckpoint(uint64_t update) {
  Checkpoint checkpoint;
  checkpoint.learner.set_update(update);
  checkpoint.learner.set_next_epoch(2);
  checkpoint.learner.set_run_id("run");
  checkpoint.learner.add_totals()->add_critic_losses(0.5);
  checkpoint.algorithm = {{"actor", std::string("\x01\x00\x02", 3)}, {"critic", ""}};
  return checkpoint;
}

struct Files {
  std::string learner, algorithm, hash;
  bool operator==(const Files&) const = default;
};

Files ReadFiles(const std::string& folder) {
  return {ReadBytes(folder + "/learner.state"), ReadBytes(folder + "/algorithm.state"),
          ReadBytes(folder + "/state.sha256")};
}

void WriteFiles(const std::string& folder, const Files& files) {
  fs::create_directories(folder);
  WriteBytes(folder + "/learner.state", files.learner);
  WriteBytes(folder + "/algorithm.state", files.algorithm);
  WriteBytes(folder + "/state.sha256", files.hash);
}

Files SoundFiles(uint64_t update) {
  fs::create_directories(Original());
  const CheckpointStore store(Original());
  MustAccept(store.Save(SoundCheckpoint(update)));
  return ReadFiles(store.Path(update));
}

const Files& Sound() {
  static const Files files = SoundFiles(kUpdate);
  return files;
}

// The entries of an algorithm's state as far as they can be read.
AlgorithmState Entries(absl::string_view payload) {
  AlgorithmState state;
  uint64_t count = 0;
  absl::string_view name, bytes;
  if (!TakeValue(&payload, &count)) return state;
  while (TakeSized(&payload, &name) && TakeSized(&payload, &bytes)) state[std::string(name)] = std::string(bytes);
  return state;
}

Files Seal(uint8_t flags, const Files& payloads) {
  Checkpoint checkpoint;
  if (!checkpoint.learner.ParseFromString(payloads.learner)) checkpoint.learner.Clear();
  checkpoint.algorithm = Entries(payloads.algorithm);
  if (!(flags & kOtherUpdate)) checkpoint.learner.set_update(kUpdate);
  checkpoint.learner.set_algorithm_sha256(Sha256Hex(payloads.algorithm));
  return {FrameLike(Sound().learner, checkpoint.learner.SerializeAsString()),
          FrameLike(Sound().algorithm, payloads.algorithm), StateHash(checkpoint) + "\n"};
}

void CheckLoaded(const Checkpoint& checkpoint) {
  MUST(checkpoint.learner.update() == kUpdate);
  const CheckpointStore copies(Copy());
  fs::create_directories(Copy());
  MustAccept(copies.Save(checkpoint));
  const Files first = ReadFiles(copies.Path(kUpdate));
  const auto again = copies.Load(kUpdate);
  MustAccept(again.status());
  MUST(again->algorithm == checkpoint.algorithm && StateHash(*again) == StateHash(checkpoint));
  MustAccept(copies.Save(*again));
  const Files second = ReadFiles(copies.Path(kUpdate));
  MUST(first == second);
}

void CheckFiles(const Files& files) {
  static const Files older = SoundFiles(kOlder);  // stays in its folder, which no input changes
  const CheckpointStore store(Original());
  MUST(ReadFiles(store.Path(kOlder)) == older);
  WriteFiles(store.Path(kUpdate), files);
  const auto checkpoint = store.Load(kUpdate);
  std::vector<std::string> notes;
  const auto newest = store.LoadNewest(&notes);
  if (checkpoint.ok()) {
    CheckLoaded(*checkpoint);
    MustAccept(newest.status());
    MUST(newest->learner.update() == kUpdate && notes.empty());
    return;
  }
  MustRefuse(checkpoint.status());
  if (absl::IsFailedPrecondition(checkpoint.status())) {
    MUST(absl::IsFailedPrecondition(newest.status()));
    return;
  }
  MustAccept(newest.status());
  MUST(newest->learner.update() == kOlder && notes.size() == 1 && store.List() == std::vector<uint64_t>{kOlder});
  MUST(fs::remove_all(store.Path(kUpdate) + ".damaged") == 4);  // the folder and its three files
}

void CheckIncarnation(const std::string& text) {
  const std::string path = Folder() + "/incarnation";
  WriteBytes(path, text);
  const auto first = NextIncarnation(path);
  if (!first.ok()) {
    MustRefuse(first.status());
    MUST(ReadBytes(path) == text);
    return;
  }
  const auto second = NextIncarnation(path);
  if (*first == UINT32_MAX) return;
  MustAccept(second.status());
  MUST(*first > 0 && *second == *first + 1);
}

}  // namespace

static void Run(absl::string_view bytes) {
  Sound();
  Input input(bytes);
  const uint8_t flags = input.Byte();
  if (flags & kIncarnation) return CheckIncarnation(std::string(input.Rest()));
  Files files;
  files.learner = std::string(input.Text());
  files.algorithm = std::string(input.Text());
  files.hash = std::string(input.Rest());
  CheckFiles(flags & kSeal ? Seal(flags, files) : files);
}

static std::vector<Seed> Seeds() {
  const Files& sound = Sound();
  const auto flags = [](int bits) { return std::string(1, static_cast<char>(bits)); };
  const std::string payloads = Text(sound.learner.substr(24)) + Text(sound.algorithm.substr(24));
  return {{"files", flags(0) + Text(sound.learner) + Text(sound.algorithm) + sound.hash},
          {"sealed", flags(kSeal) + payloads},
          {"other_update", flags(kSeal | kOtherUpdate) + payloads},
          {"incarnation", flags(kIncarnation) + "41\n"}};
}

static const Target kTarget("checkpoint", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0
