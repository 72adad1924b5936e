// Golden files of another version, and with flipped bits and missing, repeated, exchanged, erased or added pieces: the
// reader refuses them by name, or reads what it read before. Text records (CSV) have no checksums; `datacom verify`
// recounts them (tests/e2e/verify_test.py).
#include <filesystem>
#include <functional>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/acting/policy_file.h"
#include "common/base/checksum.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/records/checkpoint.h"
#include "common/records/dataset.h"
#include "common/records/ledger.h"
#include "gmock/gmock.h"
#include "learner/run_records.h"
#include "tests/golden/formats/format_files.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/changed_files.h"
#include "tests/testing/framed_files.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::golden {
namespace {

using ::datacom::replay::testing::SmallSchema;
using ::datacom::testing::IsOk;
using ::datacom::testing::TemporaryFolder;
using ::datacom::testing::VersionOf;
using ::datacom::testing::WithVersion;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

using Content = absl::StatusOr<std::string>;  // all that files say

Content ReadReplay(const std::string& folder) {
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

template <typename Ring>
Content ContentOf(const absl::StatusOr<std::unique_ptr<Ring>>& ring) {
  RETURN_IF_ERROR(ring.status());
  std::string content = absl::StrCat((*ring)->run_id(), " ", (*ring)->cursor(), " ", (*ring)->counter(0), "\n");
  for (uint64_t number = (*ring)->first(); number < (*ring)->cursor(); ++number)
    content.append((*ring)->record(number), 8);
  return content;
}

Content ReadRing(const std::string& folder) { return ContentOf(replay::Ring::Open(GoldenRing(folder))); }

Content ReadRingOnly(const std::string& folder) { return ContentOf(replay::Ring::OpenReadOnly(GoldenRing(folder))); }

Content ReadRingShared(const std::string& folder) { return ContentOf(replay::Ring::OpenShared(GoldenRing(folder))); }

// Without the words, which `datacom verify` compares with the sessions.
Content ReadCredit(const std::string& folder) {
  ASSIGN_OR_RETURN(const replay::CreditFile::Content content, replay::CreditFile::Read(folder + "/replay/credit"));
  return absl::StrCat(content.run_id, " ", content.slots, " ", content.members);
}

Content ReadSessions(const std::string& folder) {
  ASSIGN_OR_RETURN(const v1::ReplaySessions sessions, replay::SessionTable::Read(folder + "/replay"));
  return sessions.DebugString();
}

std::string ContentOf(const Snapshot& snapshot) {
  std::string content = absl::StrCat(snapshot.run_id, snapshot.run_seed, " ", snapshot.member, snapshot.member_seed,
                                     " ", snapshot.version.update, snapshot.task, snapshot.acting_rule);
  for (const NamedArray& array : snapshot.arrays) {
    absl::StrAppend(&content, array.name);
    for (const float value : array.values) absl::StrAppend(&content, " ", value);
  }
  for (const auto& [name, value] : snapshot.scalars) absl::StrAppend(&content, name, value);
  return content;
}

Content ReadSnapshots(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto snapshots, ReadSnapshotFile(folder + "/policies.snapshot"));
  std::string content;
  for (const Snapshot& snapshot : snapshots) content += ContentOf(snapshot);
  return content;
}

Content ReadPolicy(const std::string& folder) {
  ASSIGN_OR_RETURN(const Policy policy, ReadPolicyFile(folder + "/exported.policy"));
  return policy.about.SerializeAsString() + ContentOf(policy.snapshot);
}

Content ReadCheckpoint(const std::string& folder) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, CheckpointStore(folder + "/checkpoints").Load(kCheckpointUpdate));
  return checkpoint.learner.SerializeAsString() + StateHash(checkpoint);
}

Content ReadSteps(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto violation, ReadViolation(folder, 1));
  ASSIGN_OR_RETURN(const auto steps, ReadEpisode(folder, violation));
  std::string content;
  for (const LedgerStep& step : steps) {
    absl::StrAppend(&content, step.session, " ", step.episode, " ", step.step, " ", step.cost, " ", step.check, " ",
                    step.execution[0], " ", step.execution[1], "\n");
  }
  return content;
}

Content ReadDataset(const std::string& folder) {
  ASSIGN_OR_RETURN(const Dataset dataset, Dataset::Read(folder + "/dataset", "cartpole", SmallSchema()));
  std::string content;
  dataset.Gather({0, 1, 2, 3, 4, 5}, &content);
  return absl::StrCat(dataset.rows(), " ", dataset.failures().size(), "\n", content) +
         dataset.manifest().SerializeAsString();
}

struct Case {
  std::string name, file;
  uint32_t version;  // that this build reads; 0: another version is another text (OtherTextVersions)
  Content (*read)(const std::string& folder);
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.file; }

const Case kCases[] = {
    {"Rows", "replay/member_0.rows", 4, ReadReplay},
    {"Failures", "replay/member_0.failures", 4, ReadReplay},
    {"RingOfAReplay", "wrapped.ring", 4, ReadRing},
    {"RingOfAnExport", "wrapped.ring", 4, ReadRingOnly},
    {"RingOfARunningReplay", "wrapped.ring", 4, ReadRingShared},
    {"Credit", "replay/credit", 4, ReadReplay},
    {"CreditOfARunningReplay", "replay/credit", 4, ReadCredit},
    {"Sessions", "replay/sessions", 5, ReadReplay},
    {"SessionsOfARunningReplay", "replay/sessions", 5, ReadSessions},
    {"Snapshots", "policies.snapshot", 2, ReadSnapshots},
    {"Policy", "exported.policy", 3, ReadPolicy},
    {"Learner", "checkpoints/40/learner.state", 6, ReadCheckpoint},
    {"Algorithm", "checkpoints/40/algorithm.state", 6, ReadCheckpoint},
    {"StateHash", "checkpoints/40/state.sha256", 0, ReadCheckpoint},
    {"Steps", "ledger/member_0.steps", 3, ReadSteps},
    {"Manifest", "dataset/manifest.textproto", 0, ReadDataset},
    {"RowsOfADataset", "dataset/member_0.rows", 0, ReadDataset},
    {"RowsOfASecondMember", "dataset/member_1.rows", 0, ReadDataset},
};

class ChangedFiles : public ::testing::TestWithParam<Case> {
 protected:
  ChangedFiles()
      : folder_(temporary_.path() + "/golden"),
        path_(folder_ + "/" + GetParam().file),
        parent_(fs::path(path_).parent_path().string()) {
    EXPECT_THAT(Unpack(std::string(kGoldenFolder) + "/" + kNewest, folder_), IsOk());
    for (const auto& entry : fs::directory_iterator(parent_)) {
      if (entry.is_regular_file()) sound_[entry.path().string()] = *ReadFile(entry.path().string());
    }
  }
  // With the golden files, but this content of the case's file.
  Content ReadWith(const std::string& content) const {
    for (const auto& [path, sound] : sound_) testing::WriteInPlace(path, path == path_ ? content : sound);
    return GetParam().read(folder_);
  }
  // Every version with the right checksum.
  void ExpectRefused(uint32_t version) const {
    const std::string content = WithVersion(sound_.at(path_), version);
    const absl::Status status = ReadWith(content).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat(path_, ": format version ", version, ", this build reads version ",
                                       GetParam().version)));
    EXPECT_TRUE(ReadFile(path_).value_or("") == content) << "a refused file stays as it is";
  }

  const TemporaryFolder temporary_{testing::ParentInMemory()};
  const std::string folder_, path_, parent_;
  std::map<std::string, std::string> sound_;  // by path: the case's file and those next to it
};

class OtherVersions : public ChangedFiles {};

TEST_P(OtherVersions, TheNextAndThePreviousAreRefusedNamingBoth) {
  ASSERT_THAT(ReadWith(sound_.at(path_)), IsOk());
  EXPECT_EQ(VersionOf(sound_.at(path_)), GetParam().version);
  ExpectRefused(GetParam().version + 1);
  ExpectRefused(GetParam().version - 1);
}

TEST_P(ChangedFiles, DamageIsRefusedByNameOrReadAsBefore) {
  const Content whole = ReadWith(sound_.at(path_));
  ASSERT_THAT(whole, IsOk());
  const auto changes = testing::ChangesOf(sound_.at(path_), /*dense=*/400, /*stride=*/37);
  size_t refused = 0;
  for (const auto& [change, content] : changes) {
    const Content read = ReadWith(content);
    if (read.ok()) {
      EXPECT_TRUE(*read == *whole) << change << ": accepted with another content";
      continue;
    }
    ++refused;
    EXPECT_TRUE(absl::IsDataLoss(read.status()) || absl::IsFailedPrecondition(read.status()) ||
                absl::IsInvalidArgument(read.status()))
        << change << ": " << read.status();
    EXPECT_TRUE(absl::StrContains(read.status().message(), parent_)) << change << ": " << read.status();
  }
  std::printf("%s: %zu changed files, %zu refused, the others read as before\n", GetParam().name.c_str(),
              changes.size(), refused);
  EXPECT_GT(refused, changes.size() / 3);
}

std::vector<Case> CasesWithAVersion() {
  std::vector<Case> cases;
  for (const Case& one : kCases) {
    if (one.version > 0) cases.push_back(one);
  }
  return cases;
}

// A replay and a reader of a running replay take a ring that was cut off for one that was just created; Tables::Open
// compares its rows with the sessions (tests/replay/tables_damage_test.cc).
std::vector<Case> CasesWithoutRingsInUse() {
  std::vector<Case> cases;
  for (const Case& one : kCases) {
    if (one.name != "RingOfAReplay" && one.name != "RingOfARunningReplay") cases.push_back(one);
  }
  return cases;
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Readers, ChangedFiles, ::testing::ValuesIn(CasesWithoutRingsInUse()), NameOf);
INSTANTIATE_TEST_SUITE_P(Readers, OtherVersions, ::testing::ValuesIn(CasesWithAVersion()), NameOf);

class OtherTextVersions : public ::testing::Test {
 protected:
  OtherTextVersions() : folder_(temporary_.path() + "/golden") {
    EXPECT_THAT(Unpack(std::string(kGoldenFolder) + "/" + kNewest, folder_), IsOk());
  }
  void Replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string content = *ReadFile(folder_ + "/" + file);
    ASSERT_NE(content.find(from), std::string::npos) << file;
    content.replace(content.find(from), from.size(), to);
    testing::WriteInPlace(folder_ + "/" + file, content);
  }

  const TemporaryFolder temporary_;
  // As a checkpoint names a file that is whole.
  FileEnd End(const std::string& file) const {
    const std::string content = ReadFile(folder_ + "/" + file).value();
    return {content.size(), Sha256Hex(content)};
  }
  const std::string folder_;
};

TEST_F(OtherTextVersions, ADatasetOfAnotherLayoutIsRefusedNamingBoth) {
  for (const std::string layout : {"2", "4"}) {
    Replace("dataset/manifest.textproto", "layout: 3", "layout: " + layout);
    const absl::Status status = Dataset::Read(folder_ + "/dataset", "cartpole", SmallSchema()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("dataset/manifest.textproto: layout " + layout + ", this build reads 3"));
    Replace("dataset/manifest.textproto", "layout: " + layout, "layout: 3");
  }
}

TEST_F(OtherTextVersions, ARunThatIsResumedRefusesViolationsWithOtherColumns) {
  Replace("ledger/violations.csv", "policy_version", "policy_update");
  const absl::Status status =
      LedgerWriter::Open({folder_, 1, 2, "run"}, {{"ledger/violations.csv", End("ledger/violations.csv")},
                                                  {"ledger/member_0.steps", End("ledger/member_0.steps")}})
          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ledger/violations.csv: its header differs"));
}

TEST_F(OtherTextVersions, ARunThatIsResumedRefusesRecordsWithOtherColumnsNamingBothHeaders) {
  for (const std::string file : {"progress.csv", "episodes.csv"}) {
    std::filesystem::remove_all(folder_);
    ASSERT_THAT(Unpack(std::string(kGoldenFolder) + "/" + kNewest, folder_), IsOk());
    Replace(file, "member,", "agent,");
    const absl::Status status =
        learner::RunRecords::Open({folder_, "datacom", {}, 10, {}, {}},
                                  {{"progress.csv", End("progress.csv")}, {"episodes.csv", End("episodes.csv")}})
            .status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::ContainsRegex(file + " has the header \"agent,.*\", this build writes \"member,"));
  }
}

}  // namespace
}  // namespace datacom::golden
// SPDX-License-Identifier: Apache-2.0
