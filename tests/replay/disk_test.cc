// Damaged files, failing disks, power loss. This program replaces msync and posix_fallocate, so that they can fail and
// the tests know what reached the disk.
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

// Offsets in a ring's file.
constexpr int64_t kChecksum = 12, kKept = 40, kUnused = 312, kCursor = 320, kBlocks = 4096, kBlockHeader = 16;

std::atomic<bool> disk_fails{false}, disk_full{false};
std::atomic<int> syncs{0};

// While it exists, msync copies to here: the content of mapped files that is sure to survive a power loss.
class PowerLoss {
 public:
  PowerLoss() { living_ = this; }
  ~PowerLoss() { living_ = nullptr; }
  // False when none exists.
  static bool Synced(const void* address, size_t bytes) {
    if (living_ != nullptr) living_->Copy(reinterpret_cast<uintptr_t>(address), bytes);
    return living_ != nullptr;
  }
  // Replaces the rings and the credit file of a closed folder by the surviving content.
  void Strike(const std::string& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (name != "credit" && name.rfind("member_", 0) != 0) continue;
      std::string& content = disk_[entry.path()];
      content.resize(entry.file_size());
      std::ofstream(entry.path(), std::ios::binary) << content;
    }
  }

 private:
  void Copy(uintptr_t address, size_t bytes) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      uintptr_t begin = 0, end = 0, offset = 0;
      if (std::sscanf(line.c_str(), "%zx-%zx %*s %zx", &begin, &end, &offset) != 3) continue;
      if (address < begin || address >= end) continue;
      std::string& content = disk_[line.substr(line.find('/'))];
      const size_t at = address - begin + offset;
      if (content.size() < at + bytes) content.resize(at + bytes);
      content.replace(at, bytes, reinterpret_cast<const char*>(address), bytes);  // NOLINT(performance-no-int-to-ptr)
    }
  }

  static inline PowerLoss* living_ = nullptr;
  std::map<std::string, std::string> disk_;
};

}  // namespace
}  // namespace datacom

extern "C" int msync(void* address, size_t bytes, int flags) {
  ++datacom::syncs;
  if (!datacom::disk_fails) {
    if (datacom::PowerLoss::Synced(address, bytes)) return 0;
    return static_cast<int>(::syscall(SYS_msync, address, bytes, flags));
  }
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

TEST(StoreTest, ADamagedOrTruncatedRingIsRefusedAndAResumeMayAddSteps) {
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
  for (int64_t offset = 0; offset < 344; ++offset) {  // every byte of the header
    if (kKept <= offset && offset < kKept + 8) continue;
    if (kUnused <= offset && offset < kCursor) continue;
    flip(offset);
    EXPECT_TRUE(absl::IsDataLoss(Store::Open(SmallSchema(), options).status())) << "byte " << offset;
    flip(offset);
  }
  EXPECT_TRUE(Store::Open(SmallSchema(), options).ok());
  flip(kKept);  // the number of rows, as when the process died between writing checksum and size
  store = MustOpen(experiment, folder.path(), &clock);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(MemberOf(*store, 0).inserted(), 5u);
  store.reset();
  std::filesystem::resize_file(path, 5000);
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()), HasSubstr("truncated"));
}

TEST(StoreTest, AMissingRingOfAStartedRunIsNotReplacedSilently) {
  TemporaryFolder folder;
  ManualClock clock;
  MustOpen(SmallExperiment(1), folder.path(), &clock).reset();
  std::filesystem::remove(folder.path() + "/member_0.rows");
  const absl::Status status =
      Store::Open(SmallSchema(), StoreOptions(SmallExperiment(1), folder.path(), &clock)).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("member_0.rows was missing"));
}

TEST(StoreTest, ARunWhoseRingsHaveNoChecksumYetCanStart) {
  TemporaryFolder folder;
  ManualClock clock;
  MustOpen(SmallExperiment(1), folder.path(), &clock).reset();
  std::filesystem::remove(folder.path() + "/credit");  // is written after the rings
  std::fstream file(folder.path() + "/member_0.rows", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(kChecksum);
  file.write("\0\0\0\0", 4);
  file.flush();
  auto store = MustOpen(SmallExperiment(1), folder.path(), &clock);
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->Register("actor-0", 1, 1).ok());
  store.reset();
  file.seekp(0);
  file.put('X');  // but not every file without a checksum belongs to a starting run
  file.seekp(kChecksum);
  file.write("\0\0\0\0", 4);
  file.close();
  const auto options = StoreOptions(SmallExperiment(1), folder.path(), &clock);
  EXPECT_THAT(std::string(Store::Open(SmallSchema(), options).status().message()), HasSubstr("not a ring"));
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
        EXPECT_EQ(syncs - before >= 2, sync) << "once for the rows, then for the cursor";
      }
      if (store->Ready(completed)) (void)store->Announce(completed);
    }
    const uint64_t rows = MemberOf(*store, 0).inserted();
    EXPECT_GT(rows, 300u);
    store.reset();
    store = MustOpen(experiment, folder.path(), &clock);
    EXPECT_EQ(MemberOf(*store, 0).inserted(), rows);
  }
}

class PowerLossTest : public ::testing::Test {
 protected:
  PowerLossTest() : experiment_(SmallExperiment(1)) {
    experiment_.mutable_replay()->set_sync(true);
    store_ = MustOpen(experiment_, folder_.path(), &clock_);
  }
  void LosePower() {
    store_.reset();
    power_.Strike(folder_.path());
    store_ = MustOpen(experiment_, folder_.path(), &clock_);
    ASSERT_NE(store_, nullptr);
  }
  // Sends rows until the client gets no more credit.
  void SendAll(Client* client) {
    for (client->Hear(store_.get()); client->next[0] < client->limit[0]; client->Hear(store_.get())) {
      const auto count = static_cast<uint32_t>(client->limit[0] - client->next[0]);
      ASSERT_EQ(client->Send(store_.get(), MakeChunk(0, client->next[0], SimpleRows(client->next[0], count))),
                absl::StatusCode::kOk);
    }
  }

  TemporaryFolder folder_;
  ManualClock clock_;
  v1::Experiment experiment_;
  PowerLoss power_;
  std::unique_ptr<Store> store_;
};

TEST_F(PowerLossTest, AnActorKeepsTheCreditThatItWasGranted) {
  Client client, other;
  client.Open(store_.get(), "actor-0", 1, 1);
  uint64_t sent = 0;
  for (; client.next[0] + 8 <= client.limit[0]; client.Hear(store_.get())) {
    ASSERT_EQ(client.Send(store_.get(), MakeChunk(0, sent, SimpleRows(sent, 8))), absl::StatusCode::kOk);
    sent += 8;
  }
  const uint64_t told = client.limit[0];
  ASSERT_GT(told, sent) << "some credit is unused";
  LosePower();
  other.Open(store_.get(), "actor-1", 1, 1);  // reconnects first and would take credit that the replay forgot
  client.Reconnect(store_.get());
  EXPECT_EQ(client.next[0], sent);
  EXPECT_GE(client.limit[0], told);
}

TEST_F(PowerLossTest, ANewSessionDoesNotGetTheCreditOfTheOneItReplaced) {
  Client old, fresh;
  old.Open(store_.get(), "actor-0", 1, 1);
  SendAll(&old);
  const auto registered = store_->Register("actor-0", 2, 1);
  ASSERT_TRUE(registered.ok()) << registered.status();
  fresh.session = registered->session();
  fresh.incarnation = 2;
  LosePower();
  fresh.Reconnect(store_.get());
  EXPECT_EQ(fresh.next[0], 0u);
}

TEST_F(PowerLossTest, ASilentSessionContinuesAfterItsRowsWereOverwritten) {
  Client silent, busy;
  silent.Open(store_.get(), "actor-0", 1, 1);
  ASSERT_EQ(silent.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 5))), absl::StatusCode::kOk);
  silent.Hear(store_.get());
  busy.Open(store_.get(), "actor-1", 1, 1);
  for (uint64_t completed = 0; completed < 600; completed += 5) {
    EXPECT_TRUE(store_->Announce(completed).ok());
    SendAll(&busy);
  }
  v1::RowRange range;
  ASSERT_EQ(store_->ReadRange(0, 0, 5, &range).code(), absl::StatusCode::kNotFound) << "overwritten";
  LosePower();
  silent.Reconnect(store_.get());
  EXPECT_EQ(silent.next[0], 5u);
  EXPECT_EQ(silent.Send(store_.get(), MakeChunk(0, 5, SimpleRows(5, 1))), absl::StatusCode::kOk);
}

TEST(StoreTest, AfterADiskFailureNothingIsAcknowledgedAndAcknowledgedRowsRemain) {
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
      << "no acknowledgement is sent any more";
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, 6, SimpleRows(6, 1))), absl::StatusCode::kUnavailable)
      << "even though the disk works again";
  v1::RowRange range;
  EXPECT_TRUE(store->ReadRange(0, 0, 6, &range).ok()) << "reading still works";
  store.reset();
  store = MustOpen(experiment, folder.path(), &clock);
  EXPECT_GE(MemberOf(*store, 0).inserted(), 6u);
  client.Reconnect(store.get());
  EXPECT_EQ(client.Send(store.get(), MakeChunk(0, client.next[0], SimpleRows(client.next[0], 1))),
            absl::StatusCode::kOk);
}

TEST(StoreTest, AFullDiskIsReportedAtTheStartWithTheNeededBytesAndLeavesNoFile) {
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

TEST(StoreTest, AnInvalidCursorAndAnInvalidSessionFileAreRefused) {
  TemporaryFolder folder;
  ManualClock clock;
  const auto options = StoreOptions(SmallExperiment(1), folder.path(), &clock);
  auto store = MustOpen(SmallExperiment(1), folder.path(), &clock);
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
}  // namespace datacom
