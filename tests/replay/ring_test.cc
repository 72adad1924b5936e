// Ring files with a wrong content whose checksums are right, or that are refused after a part of them was accepted.
#include "replay/ring.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "common/base/files.h"
#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/changed_files.h"
#include "tests/testing/framed_files.h"
#include "tests/testing/is_ok.h"

namespace datacom::replay {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::VersionOf;
using ::datacom::testing::WithVersion;
using ::datacom::testing::WriteInPlace;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

// Offsets in the file.
constexpr size_t kKept = 40, kGuard = 48, kCursorCheck = 326;

class RingTest : public ::testing::Test {
 protected:
  RingTest() {
    auto ring = Ring::Open(Options(64));
    EXPECT_THAT(ring, IsOk());
    std::memset((*ring)->writable(0), 1, 5 * 16);
    EXPECT_THAT((*ring)->Commit(5), IsOk());
    ring->reset();
    content_ = ReadFile(Options(0).path).value();
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
  void Write() const { WriteInPlace(Options(0).path, content_); }
  // Puts a number into the header and computes the checksum again.
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
  EXPECT_EQ(ReadFile(Options(0).path).value(), content_);
}

// Random commits, with wrap-around; after each of them the file is put together from its header and its readable
// blocks.
TEST_F(RingTest, ACopyOfHeaderAndBlocksIsTheRingAtThatMoment) {
  std::filesystem::remove(Options(0).path);
  auto ring = Ring::Open(Options(200));
  ASSERT_THAT(ring, IsOk());
  std::mt19937 random(5);
  for (int commit = 0; commit < 300; ++commit) {
    const uint64_t next = (*ring)->cursor() + 1 + random() % 8;
    for (uint64_t record = (*ring)->cursor(); record < next; ++record) {
      std::memset((*ring)->writable(record), static_cast<int>(record % 251), 16);
    }
    (*ring)->set_counter(2, next);
    ASSERT_THAT((*ring)->Commit(next), IsOk());
    const auto shared = Ring::OpenShared(Options(0));
    ASSERT_THAT(shared, IsOk());
    uint64_t cursor = 0;
    const auto header = (*shared)->CopyHeader(&cursor);
    ASSERT_THAT(header, IsOk());
    ASSERT_EQ(cursor, next);
    std::string copy(std::filesystem::file_size(Options(0).path), '\0'), records;
    copy.replace(0, header->size(), *header);
    for (uint64_t block = (next - std::min<uint64_t>(next, 200)) / 64; block * 64 < next; ++block) {
      ASSERT_THAT((*shared)->CopyBlock(block, next, &records), IsOk());
      const std::string framed = (*shared)->FrameBlock(block, records);
      copy.replace((*shared)->BlockOffset(block), framed.size(), framed);
    }
    Ring::Options there = Options(200);
    there.path = folder_.path() + "/copy";
    WriteInPlace(there.path, copy);
    const auto copied = Ring::Open(there);
    ASSERT_THAT(copied, IsOk());
    ASSERT_EQ((*copied)->cursor(), next);
    EXPECT_EQ((*copied)->counter(2), next);
    for (uint64_t record = (*copied)->first(); record < next; ++record) {
      ASSERT_EQ(std::string((*copied)->record(record), 16), std::string(16, static_cast<char>(record % 251))) << record;
    }
  }
}

TEST_F(RingTest, ARingOfAnotherMemberOrRunIsRefusedNamingBoth) {
  Ring::Options options = Options(64);
  options.member = 1;
  absl::Status status = Ring::Open(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("/ring: belongs to member 0 of run \"run\", not to member 1 of run \"run\""));
  options = Options(64);
  options.run_id = "other";
  status = Ring::Open(options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("not to member 0 of run \"other\""));
  const auto read = Ring::OpenReadOnly(Options(0));
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT((*read)->CheckBelongsTo("run", 0), IsOk());
  EXPECT_TRUE(absl::IsFailedPrecondition((*read)->CheckBelongsTo("run", 1)));
}

TEST_F(RingTest, ANewRingIsNotBegunThroughALink) {
  const std::string target = folder_.path() + "/target";
  std::filesystem::remove(Options(64).path);
  std::filesystem::create_symlink(target, Options(64).path);
  EXPECT_TRUE(absl::IsInvalidArgument(Ring::Open(Options(64)).status()));
  EXPECT_FALSE(FileExists(target));
  WriteInPlace(target, "");
  const absl::Status status = Ring::Open(Options(64)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/ring is a link"));
  EXPECT_EQ(std::filesystem::file_size(target), 0u);
  WriteInPlace(target, content_);
  EXPECT_THAT(Ring::Open(Options(64)), IsOk()) << "one that exists may lie elsewhere";
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

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
