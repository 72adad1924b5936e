// Every reader refuses a file of another version and names the version that it found and the one that it reads.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/str_cat.h"
#include "common/acting/policy_file.h"
#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/framed_file.h"
#include "common/records/checkpoint.h"
#include "common/records/csv.h"
#include "common/records/dataset.h"
#include "common/records/ledger.h"
#include "gmock/gmock.h"
#include "learner/run_records.h"
#include "tests/golden/formats/format_files.h"
#include "tests/replay/replay_fixture.h"

namespace datacom::golden {
namespace {

using ::datacom::testing::SmallSchema;
using ::datacom::testing::TemporaryFolder;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

struct Format {
  std::string name, file;
  uint32_t version;                    // that this build reads
  std::string old_magic, old_version;  // empty: older files had no magic
  std::function<absl::Status(const std::string& folder)> read;
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.file; }

absl::Status ReadReplay(const std::string& folder) {
  const ManualClock clock;
  return Store::Open(SmallSchema(), GoldenStore(folder + "/replay", &clock)).status();
}

absl::Status ReadRing(const std::string& folder) { return Ring::Open(GoldenRing(folder)).status(); }

absl::Status ReadRingOnly(const std::string& folder) { return Ring::OpenReadOnly(GoldenRing(folder)).status(); }

absl::Status ReadRingShared(const std::string& folder) { return Ring::OpenShared(GoldenRing(folder)).status(); }

absl::Status ReadCredit(const std::string& folder) { return CreditFile::Read(folder + "/replay/credit").status(); }

absl::Status ReadSessions(const std::string& folder) { return SessionTable::Read(folder + "/replay").status(); }

absl::Status ReadSnapshots(const std::string& folder) {
  return ReadSnapshotFile(folder + "/policies.snapshot").status();
}

absl::Status ReadPolicy(const std::string& folder) { return ReadPolicyFile(folder + "/exported.policy").status(); }

absl::Status ReadCheckpoint(const std::string& folder) {
  std::vector<std::string> notes;
  return CheckpointStore(folder + "/checkpoints").LoadNewest(&notes).status();
}

absl::Status ReadSteps(const std::string& folder) {
  const auto violation = ReadViolation(folder, 1);
  return violation.ok() ? ReadEpisode(folder, *violation).status() : violation.status();
}

const Format kFormats[] = {
    {"Rows", "replay/member_0.rows", 2, "DATACOMR", "1", ReadReplay},
    {"Failures", "replay/member_0.failures", 2, "DATACOMR", "1", ReadReplay},
    {"RingOfAReplay", "wrapped.ring", 2, "DATACOMR", "1", ReadRing},
    {"RingOfAnExport", "wrapped.ring", 2, "DATACOMR", "1", ReadRingOnly},
    {"RingOfARunningReplay", "wrapped.ring", 2, "DATACOMR", "1", ReadRingShared},
    {"Credit", "replay/credit", 2, "", "", ReadReplay},
    {"CreditOfARunningReplay", "replay/credit", 2, "", "", ReadCredit},
    {"Sessions", "replay/sessions", 3, "", "", ReadReplay},
    {"SessionsOfARunningReplay", "replay/sessions", 3, "", "", ReadSessions},
    {"Snapshots", "policies.snapshot", 2, "DCSNAP01", "1", ReadSnapshots},
    {"Policy", "exported.policy", 2, "DCPOLICY", "1", ReadPolicy},
    {"Learner", "checkpoints/40/learner.state", 3, "DATACOMC", "2 or older", ReadCheckpoint},
    {"Algorithm", "checkpoints/40/algorithm.state", 3, "DATACOMC", "2 or older", ReadCheckpoint},
    {"Steps", "ledger/member_0.steps", 2, "DCSTEP01", "1", ReadSteps},
};

uint32_t VersionOf(const std::string& content) {
  FrameHeader header{};
  std::memcpy(&header, content.data(), sizeof header);
  return header.version;
}

// Another version with the right checksum.
std::string WithVersion(std::string content, uint32_t version) {
  FrameHeader header;
  std::memcpy(&header, content.data(), sizeof header);
  FileFormat format;
  format.magic = absl::string_view(header.magic, sizeof header.magic);
  format.version = version;
  header = MakeFrameHeader(format, absl::string_view(content).substr(sizeof header, header.length));
  return content.replace(0, sizeof header, reinterpret_cast<const char*>(&header), sizeof header);
}

// What a reader says about a file of version `found`.
std::string RefusalOf(const Format& format, const std::string& path, const std::string& found) {
  return absl::StrCat(path, ": format version ", found, ", this build reads version ", format.version);
}

class OtherVersions : public ::testing::TestWithParam<Format> {
 protected:
  OtherVersions() : folder_(temporary_.path() + "/golden"), path_(folder_ + "/" + GetParam().file) {
    EXPECT_TRUE(Unpack(std::string(kGoldenFolder) + "/" + kNewest, folder_).ok());
    content_ = ReadFile(path_).value_or("");
  }
  // What the reader says about the file with another content. It does not change the file.
  absl::Status ReadWith(const std::string& content) const {
    std::ofstream(path_, std::ios::binary) << content;
    const absl::Status status = GetParam().read(folder_);
    EXPECT_TRUE(ReadFile(path_).value_or("") == content) << "a refused file stays as it is";
    return status;
  }
  void ExpectRefusal(const absl::Status& status, const std::string& found) const {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(RefusalOf(GetParam(), path_, found)));
  }

  const TemporaryFolder temporary_;
  const std::string folder_, path_;
  std::string content_;
};

TEST_P(OtherVersions, TodaysVersionIsRead) {
  EXPECT_EQ(VersionOf(content_), GetParam().version);
  const absl::Status status = ReadWith(content_);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(OtherVersions, ANewerVersionIsRefusedNamingBoth) {
  const uint32_t newer = GetParam().version + 1;
  ExpectRefusal(ReadWith(WithVersion(content_, newer)), absl::StrCat(newer));
}

TEST_P(OtherVersions, AnOlderVersionWithAFrameIsRefusedNamingBoth) {
  const uint32_t older = GetParam().version - 1;
  ExpectRefusal(ReadWith(WithVersion(content_, older)), absl::StrCat(older));
}

TEST_P(OtherVersions, AVersionBeforeTheFrameIsRefused) {
  if (GetParam().old_magic.empty()) {  // version 1 was what now follows the header; nothing in it names a version
    const size_t header = GetParam().file == "replay/credit" ? 4096 : sizeof(FrameHeader);
    const absl::Status status = ReadWith(content_.substr(header));
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::AllOf(HasSubstr(path_), HasSubstr("of this program (its first bytes differ)")));
    return;
  }
  std::string old = GetParam().old_magic;
  PutValue(uint32_t{1}, &old);
  ExpectRefusal(ReadWith(old + content_.substr(old.size())), GetParam().old_version);
  ExpectRefusal(ReadWith(old), GetParam().old_version);
}

INSTANTIATE_TEST_SUITE_P(Formats, OtherVersions, ::testing::ValuesIn(kFormats),
                         [](const auto& info) { return info.param.name; });

class OtherTextVersions : public ::testing::Test {
 protected:
  OtherTextVersions() : folder_(temporary_.path() + "/golden") {
    EXPECT_TRUE(Unpack(std::string(kGoldenFolder) + "/" + kNewest, folder_).ok());
  }
  void Replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string content = *ReadFile(folder_ + "/" + file);
    ASSERT_NE(content.find(from), std::string::npos) << file;
    content.replace(content.find(from), from.size(), to);
    std::ofstream(folder_ + "/" + file, std::ios::binary) << content;
  }

  const TemporaryFolder temporary_;
  const std::string folder_;
};

TEST_F(OtherTextVersions, ADatasetOfAnotherLayoutIsRefusedNamingBoth) {
  for (const std::string layout : {"1", "3"}) {
    Replace("dataset/manifest.textproto", "layout: 2", "layout: " + layout);
    const absl::Status status = Dataset::Read(folder_ + "/dataset", "cartpole", SmallSchema()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("dataset/manifest.textproto: layout " + layout + ", this build reads 2"));
    Replace("dataset/manifest.textproto", "layout: " + layout, "layout: 2");
  }
}

TEST_F(OtherTextVersions, ARunThatIsResumedRefusesViolationsWithOtherColumns) {
  Replace("ledger/violations.csv", "policy_version", "policy_update");
  const auto bytes = [&](const std::string& file) { return uint64_t{fs::file_size(folder_ + "/" + file)}; };
  const absl::Status status =
      LedgerWriter::Open({folder_, 1, 2}, {{"ledger/violations.csv", bytes("ledger/violations.csv")},
                                           {"ledger/member_0.steps", bytes("ledger/member_0.steps")}})
          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ledger/violations.csv: its header differs"));
}

TEST_F(OtherTextVersions, ARunThatIsResumedRefusesRecordsWithOtherColumnsNamingBothHeaders) {
  for (const std::string file : {"progress.csv", "episodes.csv"}) {
    Replace(file, "member,", "agent,");
    v1::FileOffset offset;
    offset.set_path(file);
    offset.set_bytes(fs::file_size(folder_ + "/" + file));
    const absl::Status status = learner::RunRecords::Open({folder_}, {offset}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::ContainsRegex(file + " has the header \"agent,.*\", this build writes \"member,"));
  }
}

// A folder of an earlier release: what this build still reads is read, the rest is refused by name.
TEST(EarlierReleases, EveryFileIsReadOrRefusedNamingBothVersions) {
  for (const auto& entry : fs::directory_iterator(kGoldenFolder)) {
    if (!entry.is_directory()) continue;
    const TemporaryFolder temporary;
    const std::string folder = temporary.path() + "/golden";
    ASSERT_TRUE(Unpack(entry.path().string(), folder).ok());
    const auto version_of = [&](const Format& format) { return VersionOf(*ReadFile(folder + "/" + format.file)); };
    std::vector<::testing::Matcher<std::string>> refusals;  // a reader of several files names one of them
    for (const Format& format : kFormats) {
      const uint32_t found = version_of(format);
      if (found == format.version) continue;
      refusals.push_back(HasSubstr(RefusalOf(format, folder + "/" + format.file, absl::StrCat(found))));
    }
    for (const Format& format : kFormats) {
      const absl::Status status = format.read(folder);
      if (status.ok() && version_of(format) == format.version) continue;
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << entry.path() << " " << format.name << ": " << status;
      EXPECT_THAT(std::string(status.message()), ::testing::AnyOfArray(refusals)) << entry.path() << " " << format.name;
    }
  }
}

}  // namespace
}  // namespace datacom::golden
