// Tests which rings MemberTable accepts as those of one member.
#include "replay/member_table.h"

#include <cstring>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/ring.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/changed_files.h"
#include "tests/testing/is_ok.h"

namespace datacom::replay {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

// The two rings of a member, written without the table.
class MemberRingsTest : public ::testing::Test {
 protected:
  MemberRingsTest() : schema_(testing::SmallSchema()) {
    options_.folder = folder_.path();
    options_.run_id = "run";
    options_.members.resize(1);
    options_.limits.schedule.env_steps = options_.layout.capacity = options_.layout.failure_capacity = 64;
    options_.layout.guard = 8;
    EXPECT_THAT(Open(), IsOk());
  }
  absl::Status Open() const {
    const auto table = MemberTable::Open(schema_, options_, 0);
    return table.ok() ? (*table)->Complete(1) : table.status();
  }
  // Appends `count` records of zeros, with number(i) at `place` of record i.
  template <typename Number>
  void Append(const std::string& name, uint64_t record_bytes, int count, size_t place, const Number& number) const {
    Ring::Options ring;
    ring.path = folder_.path() + "/member_0" + name;
    ring.run_id = options_.run_id;
    ring.schema_fingerprint = schema_.fingerprint();
    ring.record_bytes = record_bytes;
    ring.kept = 64;
    ring.guard = 8;
    const auto opened = Ring::Open(ring);
    ASSERT_THAT(opened, IsOk());
    for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
      const uint64_t value = number(i);
      std::memset((*opened)->writable(i), 0, record_bytes);
      std::memcpy((*opened)->writable(i) + place, &value, sizeof value);
      ASSERT_THAT((*opened)->Commit(i + 1), IsOk());
    }
  }
  template <typename Number>
  void AppendRows(int count, const Number& sequence) const {
    Append(".rows", schema_.stored_row_bytes(), count, schema_.offset("sequence"), sequence);
  }
  template <typename Number>
  void AppendFailures(int count, const Number& row) const {
    Append(".failures", kFailureHeaderBytes + schema_.stored_row_bytes(), count, 0, row);
  }

  TemporaryFolder folder_;
  const RowSchema schema_;
  Options options_;
};

TEST_F(MemberRingsTest, AnEmptyFileOfRowsIsNamedItself) {
  AppendRows(3, [](uint64_t number) { return number; });
  AppendFailures(1, [](uint64_t) { return uint64_t{0}; });
  ::datacom::testing::WriteInPlace(folder_.path() + "/member_0.rows", "");
  const absl::Status status = Open();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("member_0.rows was missing or is empty, although"));
}

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
  EXPECT_THAT(Open(), IsOk());
  std::filesystem::remove(folder_.path() + "/member_0.failures");
  AppendFailures(20, [](uint64_t number) { return number < 11 ? number : number + 9; });
  const absl::Status status = Open();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("member_0.rows holds 20 rows, and 9 failures are newer"));
}

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
