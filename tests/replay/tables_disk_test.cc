// Damaged files and failing disks.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "replay/mapped_file.h"
#include "replay/ring.h"
#include "tests/replay/test_disk.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"

namespace datacom::replay::testing {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

// Offsets in a ring's file.
constexpr int64_t kChecksum = 12, kKept = 40, kUnused = 312, kCursor = 320, kStartWord = 352;

TEST(StoreTest, TwoReplaysInOneFolderAndFilesOfAnotherRunAreRefused) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallOptions(1), folder.path(), &clock);
  Options options = StoreOptions(SmallOptions(1), folder.path(), &clock);
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()), HasSubstr("another process"));
  store.reset();
  options.run_id = "other";
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()),
              HasSubstr("belongs to member 0 of run \"run\", not to member 0 of run \"other\""));
  options.run_id = "run";
  EXPECT_THAT(std::string(Store::Open(RowSchema::For(3, 1), options).status().message()), HasSubstr("row schema"));
}

TEST(StoreTest, ADamagedOrTruncatedRingIsRefusedAndAResumeMayAddSteps) {
  TemporaryFolder folder;
  ManualClock clock;
  Options options = StoreOptions(SmallOptions(1), folder.path(), &clock);
  options.limits.schedule.env_steps = 50;
  auto store = MustOpen(options, folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 5))), absl::StatusCode::kOk);
  store.reset();
  options.limits.schedule.env_steps = 80;
  store = MustOpen(options, folder.path(), &clock);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(MemberOf(*store, 0).inserted(), 5u);
  store.reset();
  const std::string path = folder.path() + "/member_0.rows";
  const auto flip = [&path](int64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char byte = static_cast<char>(file.get() ^ 0x41);
    file.seekp(offset);
    file.put(byte);
  };
  for (int64_t offset = 0; offset < 344; ++offset) {  // every byte of the header
    if (kKept <= offset && offset < kKept + 8) continue;
    if (kUnused <= offset && offset < kCursor) continue;
    flip(offset);
    EXPECT_TRUE(absl::IsDataLoss(Store::Open(SmallSchema(), options).status())) << "byte " << offset;
    flip(offset);
  }
  EXPECT_THAT(Store::Open(SmallSchema(), options), IsOk());
  flip(kKept);  // the number of rows, as when the process died between writing checksum and size
  store = MustOpen(options, folder.path(), &clock);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(MemberOf(*store, 0).inserted(), 5u);
  store.reset();
  std::filesystem::resize_file(path, 5000);
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()), HasSubstr("truncated"));
}

TEST(StoreTest, AMissingRingOfAStartedRunIsNotReplacedSilently) {
  TemporaryFolder folder;
  ManualClock clock;
  MustOpen(SmallOptions(1), folder.path(), &clock).reset();
  for (const char* lost : {"/member_0.rows", "/member_0.failures"}) {
    std::filesystem::remove(folder.path() + lost);
    for (int attempt = 0; attempt < 2; ++attempt) {  // the first one leaves no new ring for the second
      const absl::Status status =
          Store::Open(SmallSchema(), StoreOptions(SmallOptions(1), folder.path(), &clock)).status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("member_0.rows was missing"));
      EXPECT_FALSE(std::filesystem::exists(folder.path() + "/member_0.rows"));
    }
  }
}

TEST(StoreTest, HolesOfACopiedFileAreReservedBeforeItIsWritten) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  constexpr int64_t kBytes = 1 << 20;
  std::ofstream(path) << "x";
  std::filesystem::resize_file(path, kBytes);
  struct stat info = {};
  bool created = true;
  disk.full = true;
  const absl::Status refused = MappedFile::OpenOrCreate(path, 4096, &created).status();
  disk.full = false;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  if (info.st_blocks * 512 >= kBytes) GTEST_SKIP() << "this file system makes no holes";
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(MappedFile::OpenOrCreate(path, 4096, &created), IsOk());
  EXPECT_FALSE(created);
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_size, kBytes);
  EXPECT_GE(info.st_blocks * 512, kBytes);
}

TEST(StoreTest, APipeInThePlaceOfAFileIsRefused) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  bool created = false;
  for (const absl::Status& status :
       {MappedFile::OpenReadOnly(path).status(), MappedFile::OpenOrCreate(path, 4096, &created).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path + " is not a regular file"));
  }
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_FALSE(Ring::HasContent(path));
}

TEST(StoreTest, ARunWhoseRingsHaveNoChecksumYetCanStart) {
  TemporaryFolder folder;
  ManualClock clock;
  MustOpen(SmallOptions(1), folder.path(), &clock).reset();
  for (const char* later : {"/member_0.failures", "/credit", "/sessions"})
    std::filesystem::remove(folder.path() + later);
  std::fstream file(folder.path() + "/member_0.rows", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(kChecksum);
  file.write("\0\0\0\0", 4);
  file.seekp(kStartWord);
  file.write("\0\0\0\0\0\0\0\0", 8);
  file.flush();
  auto store = MustOpen(SmallOptions(1), folder.path(), &clock);
  ASSERT_NE(store, nullptr);
  EXPECT_THAT(store->Register("actor-0", 1, 1), IsOk());
  store.reset();
  file.seekp(0);
  file.put('X');  // but not every file without a checksum belongs to a starting run
  file.seekp(kChecksum);
  file.write("\0\0\0\0", 4);
  file.close();
  const auto options = StoreOptions(SmallOptions(1), folder.path(), &clock);
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()), HasSubstr("not a ring"));
}

TEST(StoreTest, AfterADiskFailureNothingIsAcknowledgedAndAcknowledgedRowsRemain) {
  TemporaryFolder folder;
  ManualClock clock;
  Options options = SmallOptions(1);
  options.sync = true;
  auto store = MustOpen(options, folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  ASSERT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 6))), absl::StatusCode::kOk);
  client.Hear(store.get());
  ASSERT_EQ(client.Send(store.get(), MakeChunk(0, 6, SimpleRows(6, 1))), absl::StatusCode::kOk);
  disk.fails = true;
  v1::InsertReply reply;
  const absl::Status refused = store->Commit();
  disk.fails = false;
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("disk failed"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("member_0.rows"));
  EXPECT_FALSE(store->health().ok());
  EXPECT_FALSE(store->Tick().ok());
  EXPECT_FALSE(store->AwaitStaged()) << "nothing is committed any more";
  EXPECT_FALSE(store->Progress(client.session, client.stream, &client.progress, &reply).ok())
      << "no acknowledgement is sent any more";
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 6, SimpleRows(6, 1))), absl::StatusCode::kUnavailable)
      << "even though the disk works again";
  v1::RowRange range;
  EXPECT_THAT(store->ReadRange(0, 0, 6, &range), IsOk()) << "reading still works";
  store.reset();
  store = MustOpen(options, folder.path(), &clock);
  EXPECT_GE(MemberOf(*store, 0).inserted(), 6u);
  client.Reconnect(store.get());
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, client.next[0], SimpleRows(client.next[0], 1))),
            absl::StatusCode::kOk);
}

TEST(StoreTest, AFullDiskIsReportedAtTheStartWithTheNeededBytesAndLeavesNoFile) {
  TemporaryFolder folder;
  ManualClock clock;
  const auto options = StoreOptions(SmallOptions(1), folder.path(), &clock);
  disk.full = true;
  const absl::Status refused = Store::Open(SmallSchema(), options).status();
  disk.full = false;
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              ::testing::ContainsRegex("no disk space for .*member_0.rows: [0-9]+ bytes are needed, [0-9]+ are free"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/member_0.rows"));
  EXPECT_THAT(Store::Open(SmallSchema(), options), IsOk());
}

void Overwrite(const std::string& path, int64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file << bytes;
}

TEST(StoreTest, AnInvalidCursorAndAnInvalidSessionFileAreRefused) {
  TemporaryFolder folder;
  ManualClock clock;
  const auto options = StoreOptions(SmallOptions(1), folder.path(), &clock);
  auto store = MustOpen(SmallOptions(1), folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  ASSERT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 6))), absl::StatusCode::kOk);
  store.reset();
  for (const std::string name : {"/member_0.rows", "/member_0.failures"}) {
    const std::string path = folder.path() + name;
    std::string cursor(8, '\0');
    std::ifstream(path, std::ios::binary).seekg(kCursor).read(cursor.data(), 8);
    Overwrite(path, kCursor, std::string("\0\0\0\0\1\0\0\0", 8));
    EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()),
                HasSubstr("member_0." + name.substr(10)))
        << name;
    Overwrite(path, kCursor, cursor);
  }
  std::ofstream(folder.path() + "/sessions", std::ios::binary) << "\xff\xff damaged";
  EXPECT_EQ(Store::Open(SmallSchema(), options).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
