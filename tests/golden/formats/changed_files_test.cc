// Golden files with flipped bits and with missing, repeated, exchanged, erased or added pieces: the reader refuses
// them, or reads what it read before. Text records (CSV) have no checksums; `datacom verify` recounts them
// (tests/e2e/verify_test.py).
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/acting/policy_file.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/records/checkpoint.h"
#include "common/records/dataset.h"
#include "common/records/ledger.h"
#include "gtest/gtest.h"
#include "tests/golden/formats/format_files.h"
#include "tests/replay/replay_fixture.h"

namespace datacom::golden {
namespace {

using ::datacom::replay::testing::SmallSchema;

namespace fs = std::filesystem;

struct Reader {
  std::string name;
  std::vector<std::string> files;
  std::function<absl::StatusOr<std::string>(const std::string& folder)> read;  // all that the files say
};

void PrintTo(const Reader& reader, std::ostream* out) { *out << reader.name; }

absl::StatusOr<std::string> ReadReplay(const std::string& folder) {
  const ManualClock clock;
  ASSIGN_OR_RETURN(const auto store, replay::Store::Open(SmallSchema(), GoldenStore(folder + "/replay", &clock)));
  v1::ReplayInfo info;
  store->Info(&info);
  const v1::MemberInfo& member = info.members(0);
  v1::RowRange range;
  RETURN_IF_ERROR(store->ReadRange(0, 0, member.inserted(), &range));
  std::string content = absl::StrCat(member.inserted(), " ", member.failures(), " ", member.episodes(), " ",
                                     member.outstanding(), "\n", range.columns());
  for (const v1::SessionInfo& session : info.sessions())
    absl::StrAppend(&content, "\n", session.session(), " ", session.actor(), " ", session.environments());
  return content;
}

absl::StatusOr<std::string> ReadRing(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto ring, replay::Ring::OpenReadOnly(GoldenRing(folder)));
  std::string content = absl::StrCat(ring->run_id(), " ", ring->cursor(), " ", ring->counter(0), "\n");
  for (uint64_t number = ring->first(); number < ring->cursor(); ++number) content.append(ring->record(number), 8);
  return content;
}

std::string Content(const Snapshot& snapshot) {
  std::string content = absl::StrCat(snapshot.run_id, snapshot.run_seed, " ", snapshot.member, snapshot.member_seed,
                                     " ", snapshot.version.update, snapshot.task, snapshot.acting_rule);
  for (const NamedArray& array : snapshot.arrays) {
    absl::StrAppend(&content, array.name);
    for (const float value : array.values) absl::StrAppend(&content, " ", value);
  }
  for (const auto& [name, value] : snapshot.scalars) absl::StrAppend(&content, name, value);
  return content;
}

absl::StatusOr<std::string> ReadSnapshots(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto snapshots, ReadSnapshotFile(folder + "/policies.snapshot"));
  std::string content;
  for (const Snapshot& snapshot : snapshots) content += Content(snapshot);
  return content;
}

absl::StatusOr<std::string> ReadPolicy(const std::string& folder) {
  ASSIGN_OR_RETURN(const Policy policy, ReadPolicyFile(folder + "/exported.policy"));
  return policy.about.SerializeAsString() + Content(policy.snapshot);
}

absl::StatusOr<std::string> ReadCheckpoint(const std::string& folder) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, CheckpointStore(folder + "/checkpoints").Load(kCheckpointUpdate));
  return checkpoint.learner.SerializeAsString() + StateHash(checkpoint);
}

absl::StatusOr<std::string> ReadSteps(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto violation, ReadViolation(folder, 1));
  ASSIGN_OR_RETURN(const auto steps, ReadEpisode(folder, violation));
  std::string content;
  for (const LedgerStep& step : steps) {
    absl::StrAppend(&content, step.session, " ", step.episode, " ", step.step, " ", step.cost, " ", step.check, " ",
                    step.execution[0], " ", step.execution[1], "\n");
  }
  return content;
}

absl::StatusOr<std::string> ReadDataset(const std::string& folder) {
  ASSIGN_OR_RETURN(const Dataset dataset, Dataset::Read(folder + "/dataset", "cartpole", SmallSchema()));
  std::string content;
  dataset.Gather({0, 1, 2, 3, 4, 5}, &content);
  return absl::StrCat(dataset.rows(), " ", dataset.failures().size(), "\n", content) +
         dataset.manifest().SerializeAsString();
}

const Reader kReaders[] = {
    {"Replay", {"replay/member_0.rows", "replay/member_0.failures", "replay/credit", "replay/sessions"}, ReadReplay},
    {"Ring", {"wrapped.ring"}, ReadRing},
    {"Snapshots", {"policies.snapshot"}, ReadSnapshots},
    {"Policy", {"exported.policy"}, ReadPolicy},
    {"Checkpoint",
     {"checkpoints/40/learner.state", "checkpoints/40/algorithm.state", "checkpoints/40/state.sha256"},
     ReadCheckpoint},
    {"Steps", {"ledger/member_0.steps"}, ReadSteps},
    {"Dataset", {"dataset/manifest.textproto", "dataset/member_0.rows", "dataset/member_1.rows"}, ReadDataset},
};

struct Change {
  std::string name, content;
};

void AddPieces(const std::string& content, size_t at, size_t to, size_t bytes, std::vector<Change>* changes) {
  const std::string piece = content.substr(at, bytes), other = content.substr(to, bytes);
  const auto add = [&](const std::string& name, std::string changed) {
    changes->push_back({absl::StrCat(name, " (", bytes, " bytes at ", at, " and ", to, ")"), std::move(changed)});
  };
  add("cut off", content.substr(0, at));
  add("missing", content.substr(0, at) + content.substr(at + bytes));
  add("twice", content.substr(0, at) + piece + content.substr(at));
  add("erased", std::string(content).replace(at, bytes, bytes, '\0'));
  add("copied", std::string(content).replace(to, bytes, piece));
  add("exchanged", std::string(content).replace(to, bytes, piece).replace(at, bytes, other));
  add("at the end again", content + piece);
}

std::vector<Change> ChangesOf(const std::string& content) {
  const size_t used = content.find_last_not_of('\0') + 1;  // files that are mapped end with reserved space
  std::vector<Change> changes = {{"empty", ""},
                                 {"a byte shorter", content.substr(0, content.size() - 1)},
                                 {"zeros at the end", content + std::string(100, '\0')},
                                 {"text at the end", content + "text"},
                                 {"twice", content + content}};
  for (const size_t bytes : {size_t{8}, used / 8}) {
    for (size_t part = 0; part < 4; ++part)
      AddPieces(content, part * used / 8, (part + 4) * used / 8, std::min(bytes, used / 8), &changes);
  }
  for (size_t flip = 0; flip < 40; ++flip) {
    const size_t at = flip * used / 40;
    changes.push_back({absl::StrCat("a flipped bit of byte ", at), content});
    changes.back().content[at] = static_cast<char>(content[at] ^ (1 << (flip % 8)));
  }
  return changes;
}

// In memory where there is such a folder: every change replaces files.
struct MemoryFolder {
  MemoryFolder() {
    const fs::path parent = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    path = (parent / "datacom-test-XXXXXX").string();
    EXPECT_NE(::mkdtemp(path.data()), nullptr) << path;
  }
  ~MemoryFolder() { fs::remove_all(path); }
  std::string path;
};

class ChangedFiles : public ::testing::TestWithParam<Reader> {
 protected:
  ChangedFiles() : folder_(temporary_.path + "/golden") {
    EXPECT_TRUE(Unpack(std::string(kGoldenFolder) + "/" + kNewest, folder_).ok());
    for (const std::string& file : GetParam().files) sound_[file] = *ReadFile(folder_ + "/" + file);
  }
  // With the golden files, of which `file` holds `content`.
  absl::StatusOr<std::string> ReadWith(const std::string& file, const std::string& content) const {
    for (const auto& [name, sound] : sound_)
      std::ofstream(folder_ + "/" + name, std::ios::binary) << (name == file ? content : sound);
    return GetParam().read(folder_);
  }

  const MemoryFolder temporary_;
  const std::string folder_;
  std::map<std::string, std::string> sound_;
};

TEST_P(ChangedFiles, AreRefusedByNameOrReadAsBefore) {
  const absl::StatusOr<std::string> whole = GetParam().read(folder_);
  ASSERT_TRUE(whole.ok()) << whole.status();
  int changed = 0, refused = 0;
  for (const auto& [file, sound] : sound_) {
    for (const Change& change : ChangesOf(sound)) {
      if (change.content == sound) continue;
      ++changed;
      const absl::StatusOr<std::string> read = ReadWith(file, change.content);
      if (read.ok()) {
        EXPECT_TRUE(*read == *whole) << file << ", " << change.name << ": accepted with another content";
        continue;
      }
      ++refused;
      EXPECT_TRUE(absl::IsDataLoss(read.status()) || absl::IsFailedPrecondition(read.status()) ||
                  absl::IsInvalidArgument(read.status()))
          << file << ", " << change.name << ": " << read.status();
      EXPECT_TRUE(absl::StrContains(read.status().message(), fs::path(file).parent_path().string()))
          << file << ", " << change.name << ": " << read.status();
    }
  }
  std::printf("%s: %d changed files, %d refused, the others read as before\n", GetParam().name.c_str(), changed,
              refused);
  EXPECT_GT(changed, 80 * static_cast<int>(sound_.size()));
  EXPECT_GT(refused, changed / 3);
}

INSTANTIATE_TEST_SUITE_P(Readers, ChangedFiles, ::testing::ValuesIn(kReaders),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace datacom::golden
