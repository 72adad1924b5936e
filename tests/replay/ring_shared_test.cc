// Reads a ring block by block while another process writes it: every copy is right or was overwritten.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>

#include "gtest/gtest.h"
#include "replay/ring.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"

namespace datacom::replay {
namespace {

using ::datacom::testing::IsOk;
using testing::TemporaryFolder;

constexpr uint64_t kRecordBytes = 24, kKept = 500, kGuard = 100;
constexpr uint64_t kCopies = 20000;

Ring::Options OptionsIn(const TemporaryFolder& folder) {
  Ring::Options options;
  options.path = folder.path() + "/ring";
  options.run_id = "run";
  options.schema_fingerprint = 7;
  options.record_bytes = kRecordBytes;
  options.kept = kKept;
  options.guard = kGuard;
  return options;
}

void Fill(Ring* ring, uint64_t from, uint64_t to) {
  for (uint64_t number = from; number < to; ++number) {
    for (uint64_t i = 0; i < kRecordBytes / 8; ++i) {
      const uint64_t value = number * 10 + i;
      std::memcpy(ring->writable(number) + 8 * i, &value, sizeof value);
    }
  }
}

// Commits records until it is killed.
[[noreturn]] void WriteForever(const Ring::Options& options) {
  auto ring = Ring::Open(options);
  if (!ring.ok()) ::_exit(1);
  for (uint64_t i = 0;; ++i) {
    const uint64_t from = (*ring)->cursor(), to = from + 1 + i * 31 % kGuard;
    Fill(ring->get(), from, to);
    if (!(*ring)->Commit(to).ok()) ::_exit(1);
  }
}

// Adds what a pass over all blocks finds.
struct Found {
  uint64_t copied = 0, overwritten = 0, wrong = 0;

  void Add(const Ring& shared) {
    std::string records;
    const uint64_t end = shared.StoredCursor().value();
    const uint64_t first = end - std::min(end, kKept);
    for (uint64_t block = first / kRingBlockRecords; block * kRingBlockRecords < end; ++block) {
      const absl::Status status = shared.CopyBlock(block, end, &records);
      if (absl::IsOutOfRange(status)) {
        ++overwritten;
        continue;
      }
      EXPECT_THAT(status, IsOk());
      ++copied;
      for (uint64_t i = 0; i < records.size() / 8; ++i) {
        const uint64_t number = block * kRingBlockRecords + i / (kRecordBytes / 8);
        if (number >= first) wrong += At<uint64_t>(records.data(), 8 * i) != number * 10 + i % (kRecordBytes / 8);
      }
    }
  }
};

TEST(SharedRing, EveryCopyIsRightOrWasOverwritten) {
  TemporaryFolder folder;
  ASSERT_THAT(Ring::Open(OptionsIn(folder)), IsOk());
  const pid_t writer = ::fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) WriteForever(OptionsIn(folder));
  const auto shared = Ring::OpenShared(OptionsIn(folder)).value();
  Found found;
  while (found.copied < kCopies || shared->StoredCursor().value() < 10 * kKept) found.Add(*shared);
  ::kill(writer, SIGKILL);
  int status = 0;
  ::waitpid(writer, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer failed";
  EXPECT_EQ(found.wrong, 0u);
  RecordProperty("overwritten", static_cast<int>(found.overwritten));
}

TEST(SharedRing, ADamagedBlockIsNamedAndTheOthersAreRead) {
  TemporaryFolder folder;
  {
    auto ring = Ring::Open(OptionsIn(folder)).value();
    Fill(ring.get(), 0, 100);
    ASSERT_THAT(ring->Commit(100), IsOk());
    Fill(ring.get(), 100, 150);
    ASSERT_THAT(ring->Commit(150), IsOk());
  }
  {
    std::fstream file(folder.path() + "/ring", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(kRingHeaderBytes + RingBlockBytes(kRecordBytes) + kRingBlockHeaderBytes + 5);
    file.put('x');
  }
  const auto shared = Ring::OpenShared(OptionsIn(folder)).value();
  std::string records;
  EXPECT_THAT(shared->CopyBlock(0, 150, &records), IsOk());
  EXPECT_EQ(records.size(), 64 * kRecordBytes);
  const absl::Status status = shared->CopyBlock(1, 150, &records);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find("records 64 to 128"), absl::string_view::npos) << status;
  EXPECT_THAT(shared->CopyBlock(2, 150, &records), IsOk());
  EXPECT_EQ(records.size(), (150 - 128) * kRecordBytes);
}

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
