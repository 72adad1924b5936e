// Ring files with a wrong content whose checksums are right, or that are refused after a part of them was accepted.
#include "replay/ring.h"

#include <fstream>

#include "gmock/gmock.h"
#include "replay/member_table.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/framed_files.h"

namespace datacom {
namespace {

using ::datacom::testing::TemporaryFolder;
using ::datacom::testing::VersionOf;
using ::datacom::testing::WithVersion;
using ::testing::HasSubstr;

// Offsets in the file.
constexpr size_t kKept = 40, kGuard = 48, kCursorCheck = 326;

class RingTest : public ::testing::Test {
 protected:
  RingTest() {
    auto ring = Ring::Open(Options(64));
    EXPECT_TRUE(ring.ok()) << ring.status();
    std::memset((*ring)->writable(0), 1, 5 * 16);
    EXPECT_TRUE((*ring)->Commit(5).ok());
    ring->reset();
    content_ = Read();
  }
  Ring::Options Options(uint64_t kept) const {
    Ring::Options options;
    options.path = folder_.path() + "/ring";
    options.run_id = "run";
    options.schema_fingerprint = 7;
    options.record_bytes = 16;
    options.kept = kept;
    options.guard = 8;
    return options;
  }
  std::string Read() const {
    std::ifstream file(Options(0).path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write() const { std::ofstream(Options(0).path, std::ios::binary) << content_; }
  // Puts a number into the header and computes the checksum anew.
  void PutIntoHeader(uint64_t value, size_t at) {
    content_.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
    content_ = WithVersion(content_, VersionOf(content_));
  }

  TemporaryFolder folder_;
  std::string content_;
};

TEST_F(RingTest, ADamagedRingIsRefusedBeforeItGrows) {
  content_[kCursorCheck] = 'x';
  Write();
  const absl::Status status = Ring::Open(Options(200)).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("its cursor is damaged"));
  EXPECT_EQ(Read(), content_);
}

TEST_F(RingTest, ANumberOfRecordsThatTheFileCannotHoldIsRefused) {
  // With 2^58 blocks of 1040 bytes the size of the file overflows 64 bits.
  for (const size_t at : {kKept, kGuard}) {
    for (const uint64_t records : {uint64_t{1} << 62, ~uint64_t{0}, ~uint64_t{0} - 70, uint64_t{1000}}) {
      const std::string sound = content_;
      PutIntoHeader(records, at);
      Write();
      const absl::Status status = Ring::OpenReadOnly(Options(0)).status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("truncated"));
      content_ = sound;
    }
  }
}

// The two rings of a member, written without the table.
class MemberRingsTest : public ::testing::Test {
 protected:
  MemberRingsTest() : schema_(::datacom::testing::SmallSchema()) {
    options_.path = folder_.path() + "/member_0";
    options_.run_id = "run";
    options_.layout.capacity = options_.layout.failure_capacity = options_.layout.env_steps = 64;
    options_.layout.row_bytes = schema_.stored_row_bytes();
    options_.layout.guard = 8;
    EXPECT_TRUE(Open().ok());
  }
  absl::Status Open() const { return MemberTable::Open(schema_, options_).status(); }
  // Appends `count` records of zeros, with number(i) at `place` of record i.
  template <typename Number>
  void Append(const std::string& name, uint64_t record_bytes, int count, size_t place, const Number& number) const {
    Ring::Options ring;
    ring.path = options_.path + name;
    ring.run_id = options_.run_id;
    ring.schema_fingerprint = schema_.fingerprint();
    ring.record_bytes = record_bytes;
    ring.kept = 64;
    ring.guard = 8;
    const auto opened = Ring::Open(ring);
    ASSERT_TRUE(opened.ok()) << opened.status();
    for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
      const uint64_t value = number(i);
      std::memset((*opened)->writable(i), 0, record_bytes);
      std::memcpy((*opened)->writable(i) + place, &value, sizeof value);
      ASSERT_TRUE((*opened)->Commit(i + 1).ok());
    }
  }
  template <typename Number>
  void AppendRows(int count, const Number& sequence) const {
    Append(".rows", options_.layout.row_bytes, count, schema_.offset("sequence"), sequence);
  }
  template <typename Number>
  void AppendFailures(int count, const Number& row) const {
    Append(".failures", options_.layout.failure_bytes(), count, 0, row);
  }

  TemporaryFolder folder_;
  const RowSchema schema_;
  MemberTable::Options options_;
};

// Credit continues with the sequence of a session's newest row.
TEST_F(MemberRingsTest, ARowThatComesEarlierThanItsSequenceIsRefused) {
  AppendRows(3, [](uint64_t number) { return number == 2 ? uint64_t{1} << 50 : number; });
  const absl::Status status = Open();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("member_0.rows: row 2 has sequence 1125899906842624"));
}

// A commit has at most `guard` rows. Without more failures than that, older ones may be overwritten.
TEST_F(MemberRingsTest, OnlyTheFailuresOfOneCommitMayBeNewerThanTheRows) {
  AppendRows(20, [](uint64_t number) { return number; });
  AppendFailures(20, [](uint64_t number) { return number < 12 ? number : number + 8; });
  EXPECT_TRUE(Open().ok()) << Open();
  std::filesystem::remove(options_.path + ".failures");
  AppendFailures(20, [](uint64_t number) { return number < 11 ? number : number + 9; });
  const absl::Status status = Open();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("member_0.rows holds 20 rows, and 9 failures are newer"));
}

}  // namespace
}  // namespace datacom
