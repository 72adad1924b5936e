// Reads a ring block by block while a thread writes it: every copy is right or was overwritten.
#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "gtest/gtest.h"
#include "replay/ring.h"
#include "tests/replay/replay_fixture.h"

namespace datacom {
namespace {

using ::datacom::testing::TemporaryFolder;

constexpr uint64_t kRecordBytes = 24, kKept = 500, kGuard = 100;
constexpr int kPasses = 2000;

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

TEST(SharedRing, EveryCopyIsRightOrWasOverwritten) {
  TemporaryFolder folder;
  auto ring = Ring::Open(OptionsIn(folder)).value();
  const auto shared = Ring::OpenShared(OptionsIn(folder)).value();
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t cursor = 0, i = 0; !done; ++i) {
      const uint64_t next = cursor + 1 + i * 31 % kGuard;
      Fill(ring.get(), cursor, next);
      if (!ring->Commit(next).ok()) break;
      cursor = next;
    }
  });
  uint64_t copied = 0, overwritten = 0, wrong = 0;
  std::string records;
  for (int pass = 0; pass < kPasses || copied < 1000; ++pass) {
    const uint64_t end = shared->StoredCursor().value();
    const uint64_t first = end - std::min(end, kKept);
    for (uint64_t block = first / kRingBlockRecords; block * kRingBlockRecords < end; ++block) {
      const absl::Status status = shared->CopyBlock(block, end, &records);
      if (absl::IsOutOfRange(status)) {
        ++overwritten;
        continue;
      }
      EXPECT_TRUE(status.ok()) << status;
      ++copied;
      for (uint64_t i = 0; i < records.size() / 8; ++i) {
        const uint64_t number = block * kRingBlockRecords + i / (kRecordBytes / 8);
        uint64_t value = 0;
        std::memcpy(&value, records.data() + 8 * i, sizeof value);
        if (number >= first) wrong += value != number * 10 + i % (kRecordBytes / 8);
      }
    }
  }
  const uint64_t end = shared->StoredCursor().value();
  done = true;
  writer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(end, 10 * kKept) << "the ring has wrapped";
  RecordProperty("copied", static_cast<int>(copied));
  RecordProperty("overwritten", static_cast<int>(overwritten));
}

TEST(SharedRing, ADamagedBlockIsNamedAndTheOthersAreRead) {
  TemporaryFolder folder;
  {
    auto ring = Ring::Open(OptionsIn(folder)).value();
    Fill(ring.get(), 0, 100);
    ASSERT_TRUE(ring->Commit(100).ok());
    Fill(ring.get(), 100, 150);
    ASSERT_TRUE(ring->Commit(150).ok());
  }
  {
    std::fstream file(folder.path() + "/ring", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(kRingHeaderBytes + RingBlockBytes(kRecordBytes) + kRingBlockHeaderBytes + 5);
    file.put('x');
  }
  const auto shared = Ring::OpenShared(OptionsIn(folder)).value();
  std::string records;
  EXPECT_TRUE(shared->CopyBlock(0, 150, &records).ok());
  EXPECT_EQ(records.size(), 64 * kRecordBytes);
  const absl::Status status = shared->CopyBlock(1, 150, &records);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find("records 64 to 128"), absl::string_view::npos) << status;
  EXPECT_TRUE(shared->CopyBlock(2, 150, &records).ok());
  EXPECT_EQ(records.size(), (150 - 128) * kRecordBytes);
}

}  // namespace
}  // namespace datacom
