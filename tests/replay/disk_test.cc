// Files that are damaged and disks that fail. msync and posix_fallocate are replaced in this program, so that they can
// fail.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>

#include "gmock/gmock.h"
#include "tests/replay/replay_fixture.h"

namespace datacom {
namespace {

using ::datacom::testing::Client;
using ::datacom::testing::MakeChunk;
using ::datacom::testing::MemberOf;
using ::datacom::testing::MustOpen;
using ::datacom::testing::SimpleRows;
using ::datacom::testing::SmallExperiment;
using ::datacom::testing::SmallSchema;
using ::datacom::testing::StoreOptions;
using ::datacom::testing::TemporaryFolder;
using ::testing::HasSubstr;

std::atomic<bool> disk_fails{false}, disk_full{false};
std::atomic<int> syncs{0};

}  // namespace
}  // namespace datacom

extern "C" int msync(void* address, size_t bytes, int flags) {
  ++datacom::syncs;
  if (!datacom::disk_fails) return static_cast<int>(::syscall(SYS_msync, address, bytes, flags));
  errno = EIO;
  return -1;
}

extern "C" int posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (datacom::disk_full) return ENOSPC;
  return ::syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}

namespace datacom {
namespace {

TEST(StoreTest, TwoReplaysInOneFolderAndFilesOfAnotherRunAreRefused) {
  TemporaryFolder folder;
  ManualClock clock;
  auto store = MustOpen(SmallExperiment(1), folder.path(), &clock);
  Store::Options options = StoreOptions(SmallExperiment(1), folder.path(), &clock);
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()), HasSubstr("another process"));
  store.reset();
  options.run_id = "other";
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()),
              HasSubstr("belongs to run \"run\", not to \"other\""));
  options.run_id = "run";
  EXPECT_THAT(std::string(Store::Open(RowSchema::For(3, 1), options).status().message()), HasSubstr("row schema"));
}

TEST(StoreTest, ADamagedOrTruncatedRingIsRefusedAndAResumedRunMayHaveMoreSteps) {
  TemporaryFolder folder;
  ManualClock clock;
  v1::Experiment experiment = SmallExperiment(1);
  experiment.mutable_run()->set_env_steps(50);
  auto store = MustOpen(experiment, folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 5))), absl::StatusCode::kOk);
  store.reset();
  experiment.mutable_run()->set_env_steps(80);
  store = MustOpen(experiment, folder.path(), &clock);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(MemberOf(*store, 0).inserted(), 5u);
  store.reset();
  const std::string path = folder.path() + "/member_0.rows";
  const auto options = StoreOptions(experiment, folder.path(), &clock);
  const auto flip = [&path](int64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char byte = static_cast<char>(file.get() ^ 0x41);
    file.seekp(offset);
    file.put(byte);
  };
  for (const int64_t offset : {0, 8, 16, 24, 32, 40, 50}) {  // magic, layout, sizes, schema, run
    flip(offset);
    EXPECT_FALSE(Store::Open(SmallSchema(), options).ok()) << "byte " << offset;
    flip(offset);
  }
  EXPECT_TRUE(Store::Open(SmallSchema(), options).ok());
  std::filesystem::resize_file(path, 5000);
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()), HasSubstr("truncated"));
}

TEST(StoreTest, ARingThatDisappearedFromARunThatHasBegunIsNotReplacedInSilence) {
  TemporaryFolder folder;
  ManualClock clock;
  MustOpen(SmallExperiment(1), folder.path(), &clock).reset();
  std::filesystem::remove(folder.path() + "/member_0.rows");
  const absl::Status status =
      Store::Open(SmallSchema(), StoreOptions(SmallExperiment(1), folder.path(), &clock)).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("member_0.rows was missing"));
}

TEST(StoreTest, WithSyncEveryBatchReachesTheDiskBeforeItIsAcknowledged) {
  for (const bool sync : {false, true}) {
    TemporaryFolder folder;
    ManualClock clock;
    v1::Experiment experiment = SmallExperiment(1);
    experiment.mutable_replay()->set_sync(sync);
    auto store = MustOpen(experiment, folder.path(), &clock);
    Client client;
    client.Open(store.get(), "actor-0", 1, 1);
    for (uint64_t completed = 1; completed < 300; ++completed) {  // the rings wrap
      const int before = syncs;
      client.Hear(store.get());
      const auto count = static_cast<uint32_t>(client.limit[0] - client.next[0]);
      if (count > 0) {
        ASSERT_EQ(client.Send(store.get(), MakeChunk(0, client.next[0], SimpleRows(client.next[0], count))),
                  absl::StatusCode::kOk);
        EXPECT_EQ(syncs - before >= 2, sync) << "rows, then the cursor";
      }
      store->Announce(completed);
    }
    const uint64_t rows = MemberOf(*store, 0).inserted();
    EXPECT_GT(rows, 300u);
    store.reset();
    store = MustOpen(experiment, folder.path(), &clock);
    EXPECT_EQ(MemberOf(*store, 0).inserted(), rows);
  }
}

TEST(StoreTest, AfterTheDiskFailedNothingIsAcknowledgedAndWhatWasIsStillThere) {
  TemporaryFolder folder;
  ManualClock clock;
  v1::Experiment experiment = SmallExperiment(1);
  experiment.mutable_replay()->set_sync(true);
  auto store = MustOpen(experiment, folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  ASSERT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 6))), absl::StatusCode::kOk);
  disk_fails = true;
  v1::InsertReply reply;
  const absl::Status refused = store->Insert(client.session, client.stream, MakeChunk(0, 6, SimpleRows(6, 1)), &reply);
  disk_fails = false;
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("disk failed"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("member_0.rows"));
  EXPECT_FALSE(store->health().ok());
  EXPECT_FALSE(store->Tick().ok());
  EXPECT_FALSE(store->Progress(client.session, client.stream, &client.progress, &reply).ok())
      << "no acknowledgement leaves any more";
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 6, SimpleRows(6, 1))), absl::StatusCode::kUnavailable)
      << "though the disk is back";
  v1::RowRange range;
  EXPECT_TRUE(store->ReadRange(0, 0, 6, &range).ok()) << "reading goes on";
  store.reset();
  store = MustOpen(experiment, folder.path(), &clock);
  EXPECT_GE(MemberOf(*store, 0).inserted(), 6u);
  client.Reconnect(store.get());
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, client.next[0], SimpleRows(client.next[0], 1))),
            absl::StatusCode::kOk);
}

TEST(StoreTest, AFullDiskIsToldAtTheStartWithTheBytesNeededAndLeavesNoFileBehind) {
  TemporaryFolder folder;
  ManualClock clock;
  const auto options = StoreOptions(SmallExperiment(1), folder.path(), &clock);
  disk_full = true;
  const absl::Status refused = Store::Open(SmallSchema(), options).status();
  disk_full = false;
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              ::testing::ContainsRegex("no disk space for .*member_0.rows: [0-9]+ bytes are needed, [0-9]+ are free"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/member_0.rows"));
  EXPECT_TRUE(Store::Open(SmallSchema(), options).ok());
}

void Overwrite(const std::string& path, int64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file << bytes;
}

TEST(StoreTest, AnImpossibleCursorOrSessionFileIsRefusedByNameAndDamagedRowsCrashNothing) {
  TemporaryFolder folder;
  ManualClock clock;
  const auto options = StoreOptions(SmallExperiment(1), folder.path(), &clock);
  auto store = MustOpen(SmallExperiment(1), folder.path(), &clock);
  Client client;
  client.Open(store.get(), "actor-0", 1, 1);
  ASSERT_EQ(client.Send(store.get(), MakeChunk(0, 0, SimpleRows(0, 6))), absl::StatusCode::kOk);
  store.reset();
  constexpr int64_t kCursor = 320, kRecords = 4096;
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
  Overwrite(folder.path() + "/member_0.rows", kRecords, std::string(6 * SmallSchema().stored_row_bytes(), '\xff'));
  store = MustOpen(SmallExperiment(1), folder.path(), &clock);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(MemberOf(*store, 0).inserted(), 6u);
  store.reset();
  std::ofstream(folder.path() + "/sessions", std::ios::binary) << "\xff\xff damaged";
  EXPECT_EQ(Store::Open(SmallSchema(), options).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace datacom
