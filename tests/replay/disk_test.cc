// Damaged files, failing disks, power loss. This program replaces msync and posix_fallocate, so that they can fail and
// the tests know what reached the disk.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <functional>
#include <utility>

#include "common/base/random.h"
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
using ::datacom::testing::TestRow;
using ::testing::HasSubstr;

// Offsets in a ring's file.
constexpr int64_t kChecksum = 12, kKept = 40, kUnused = 312, kCursor = 320, kBlocks = 4096, kBlockHeader = 16;

std::atomic<bool> disk_fails{false}, disk_full{false};
std::atomic<int> syncs{0};
int syncs_left = -1;                 // msync fails after so many more calls; -1: never
std::function<void()> at_next_sync;  // called once, in the middle of the next msync

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
  // Replaces the rings and the credit file of a closed folder by the surviving content. With `random`, every second
  // page that was not synced has reached the disk all the same.
  void Strike(const std::string& folder, RandomStream* random = nullptr) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (name != "credit" && name.rfind("member_", 0) != 0) continue;
      std::string& content = disk_[entry.path()];
      content.resize(entry.file_size());
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string current{std::istreambuf_iterator<char>(file), {}};
      for (size_t at = 0; random != nullptr && at < content.size(); at += kPage) {
        if (content.compare(at, kPage, current, at, kPage) == 0 || random->Below(2) == 0) continue;
        content.replace(at, kPage, current, at, kPage);
      }
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

  static constexpr size_t kPage = 4096;
  static inline PowerLoss* living_ = nullptr;
  std::map<std::string, std::string> disk_;
};

}  // namespace
}  // namespace datacom

extern "C" int msync(void* address, size_t bytes, int flags) {
  ++datacom::syncs;
  if (const auto call = std::exchange(datacom::at_next_sync, nullptr); call != nullptr) call();
  if (!datacom::disk_fails && datacom::syncs_left != 0) {
    if (datacom::syncs_left > 0) --datacom::syncs_left;
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

TEST(StoreTest, WithSyncRowsReachTheDiskBeforeTheyAreAcknowledged) {
  for (const bool sync : {false, true}) {
    TemporaryFolder folder;
    ManualClock clock;
    v1::Experiment experiment = SmallExperiment(1);
    experiment.mutable_replay()->set_sync(sync);
    auto store = MustOpen(experiment, folder.path(), &clock);
    Client client;
    client.Open(store.get(), "actor-0", 1, 1);
    for (uint64_t completed = 1; completed < 300; ++completed) {  // the rings wrap
      client.Hear(store.get());
      const int before = syncs;
      const auto count = static_cast<uint32_t>(client.limit[0] - client.next[0]);
      if (count > 0) {
        ASSERT_EQ(client.Send(store.get(), MakeChunk(0, client.next[0], SimpleRows(client.next[0], count))),
                  absl::StatusCode::kOk);
        client.Hear(store.get());
        EXPECT_EQ(syncs - before >= 3, sync) << "for the rows, then for the cursor, then for the credit";
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
  void LosePower(RandomStream* random = nullptr) {
    store_.reset();
    power_.Strike(folder_.path(), random);
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

TEST_F(PowerLossTest, RowsThatAreNotCommittedAreNeitherAcknowledgedNorReadNorDrawnNorSurvive) {
  Client client;
  client.Open(store_.get(), "actor-0", 1, 1);
  ASSERT_EQ(client.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 8))), absl::StatusCode::kOk);
  client.Hear(store_.get());
  ASSERT_EQ(client.next[0], 8u);
  ASSERT_EQ(client.Send(store_.get(), MakeChunk(0, 8, SimpleRows(8, 3))), absl::StatusCode::kOk);
  v1::InsertReply reply;
  const auto changed = store_->Progress(client.session, client.stream, &client.progress, &reply);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_FALSE(*changed) << "neither rows nor the credit that followed them";
  EXPECT_FALSE(store_->Ready(1)) << "update 1 needs 11 rows";
  v1::DrawReply drawn;
  EXPECT_EQ(store_->Draw(1, &drawn).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(store_->Announce(1).ok());
  v1::RowRange range;
  EXPECT_EQ(store_->ReadRange(0, 8, 9, &range).code(), absl::StatusCode::kOutOfRange);
  LosePower();
  client.Reconnect(store_.get());
  EXPECT_EQ(client.next[0], 8u);
  ASSERT_EQ(client.Send(store_.get(), MakeChunk(0, 8, SimpleRows(8, 3))), absl::StatusCode::kOk);
  ASSERT_TRUE(store_->Commit().ok());
  EXPECT_TRUE(store_->Draw(1, &drawn).ok());
}

TEST_F(PowerLossTest, OneGroupCommitsTheRowsOfAllActorsWithTheSyncsOfOne) {
  Client clients[4];
  for (int i = 0; i < 4; ++i) clients[i].Open(store_.get(), "actor-" + std::to_string(i), 1, 1);
  for (const int actors : {1, 4}) {
    const int before = syncs;
    for (int i = 0; i < actors; ++i) {
      const uint64_t next = clients[i].next[0];
      ASSERT_EQ(clients[i].Send(store_.get(), MakeChunk(0, next, SimpleRows(next, 1))), absl::StatusCode::kOk);
      clients[i].next[0] = next + 1;
    }
    ASSERT_TRUE(store_->Commit().ok());
    EXPECT_LE(syncs - before, 5) << "rows, failures, the cursor of each, credit";
  }
  EXPECT_EQ(MemberOf(*store_, 0).inserted(), 5u);
}

TEST_F(PowerLossTest, WhileAGroupIsWrittenOthersInsertReadAndAreNotPartOfIt) {
  Client first, second;
  first.Open(store_.get(), "actor-0", 1, 1);
  second.Open(store_.get(), "actor-1", 1, 1);
  ASSERT_EQ(first.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 3))), absl::StatusCode::kOk);
  bool called = false;
  at_next_sync = [&] {
    called = true;
    EXPECT_EQ(second.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 2))), absl::StatusCode::kOk);
    EXPECT_EQ(MemberOf(*store_, 0).inserted(), 0u);
  };
  ASSERT_TRUE(store_->Commit().ok());
  EXPECT_TRUE(called);
  EXPECT_EQ(MemberOf(*store_, 0).inserted(), 3u);
  v1::InsertReply reply;
  ASSERT_TRUE(store_->Progress(second.session, second.stream, &second.progress, &reply).ok());
  EXPECT_EQ(reply.committed_size(), 0);
  second.Hear(store_.get());
  EXPECT_EQ(second.next[0], 2u);
  EXPECT_EQ(MemberOf(*store_, 0).inserted(), 5u);
}

TEST_F(PowerLossTest, ASessionThatEndsWhileItsCreditIsWrittenLeavesNoneToItsSuccessor) {
  for (uint64_t sync = 0; sync < 5; ++sync) {  // in the same slot of the credit file
    Client old, fresh;
    old.Open(store_.get(), "actor-0", 10 * sync + 1, 1);
    ASSERT_EQ(old.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 1))), absl::StatusCode::kOk);
    const auto replace = [&] {
      const auto registered = store_->Register("actor-0", 10 * sync + 2, 1);
      ASSERT_TRUE(registered.ok()) << registered.status();
      fresh.session = registered->session();
      fresh.incarnation = 10 * sync + 2;
    };
    uint64_t passed = 0;
    std::function<void()> next = [&] {
      if (passed++ == sync) {
        replace();
      } else {
        at_next_sync = next;
      }
    };
    at_next_sync = next;
    ASSERT_TRUE(store_->Commit().ok());
    ASSERT_EQ(passed, sync + 1);
    LosePower();
    fresh.Reconnect(store_.get());
    EXPECT_EQ(fresh.next[0], 0u) << "replaced in sync " << sync;
  }
}

TEST_F(PowerLossTest, ALockstepActorContinuesAfterTheRowsThatItsFormerProcessHadNotYetCommitted) {
  store_.reset();
  TemporaryFolder folder;
  experiment_.mutable_run()->set_lockstep(true);
  store_ = MustOpen(experiment_, folder.path(), &clock_);
  Client former, now;
  former.Open(store_.get(), "actor-0", 1, 1);
  ASSERT_EQ(former.Send(store_.get(), MakeChunk(0, 0, SimpleRows(0, 3))), absl::StatusCode::kOk);
  const auto registered = store_->Register("actor-0", 2, 1);
  ASSERT_TRUE(registered.ok()) << registered.status();
  EXPECT_EQ(registered->open_episodes(0).steps(), 3u);
  const auto stream = store_->Connect(registered->session(), 2);
  ASSERT_TRUE(stream.ok()) << stream.status();
  v1::InsertReply reply;
  ASSERT_TRUE(store_->Progress(registered->session(), *stream, &now.progress, &reply).ok());
  EXPECT_EQ(reply.committed(0).next_sequence(), 3u);
}

// Actors that insert while groups are written, on a disk that fails after any sync, with kills and losses of power.
class GroupModel {
 public:
  GroupModel(Store* store, uint64_t seed) : random_(StreamKey("test.groups", {seed})), store_(store) {
    for (uint64_t i = 0; i < 2; ++i) actors_[i].client.Open(store, "actor-" + std::to_string(i), 1, 1);
  }
  RandomStream* random() { return &random_; }
  void set_store(Store* store) { store_ = store; }

  // Returns whether the disk worked.
  bool InsertAndCommit() {
    Send();
    at_next_sync = [this] { Send(); };
    syncs_left = random_.Below(2) == 0 ? static_cast<int>(random_.Below(6)) : -1;
    const bool committed = store_->Commit().ok();
    syncs_left = -1;
    at_next_sync = nullptr;
    if (!committed) return false;
    Hear();
    if (store_->Ready(completed_ + 1)) {
      EXPECT_TRUE(store_->Announce(++completed_).ok());
    }
    return true;
  }
  void Reconnect() {
    ASSERT_TRUE(store_->Announce(completed_).ok()) << "the learner is not ahead of the replay";
    for (Actor& actor : actors_) {
      const uint64_t told = actor.client.next[0];
      actor.client.Reconnect(store_);
      ASSERT_GE(actor.client.next[0], told) << "acknowledged rows are kept";
      ASSERT_LE(actor.client.next[0], actor.sent);
      actor.sent = actor.client.next[0];
    }
  }
  // Each session's rows are in order, none is missing or double, up to what it was told.
  void CheckRows() {
    const uint64_t inserted = MemberOf(*store_, 0).inserted(), kept = 176;  // that of model_test.cc
    v1::RowRange range;
    const absl::Status read = store_->ReadRange(0, inserted - std::min(inserted, kept), inserted, &range);
    ASSERT_TRUE(read.ok()) << read;
    std::map<int, uint64_t> next;
    for (uint32_t i = 0; i < range.row_count(); ++i) {
      float value = 0;
      std::memcpy(&value, range.columns().data() + 8 * i, sizeof value);
      const int actor = static_cast<int>(value) / kOfActor;
      const uint64_t sequence = static_cast<uint64_t>(value) % kOfActor;
      ASSERT_TRUE(!next.contains(actor) || next[actor] == sequence) << "row " << i;
      next[actor] = sequence + 1;
    }
    for (const auto& [actor, end] : next) ASSERT_EQ(end, actors_[actor].client.next[0]) << "actor " << actor;
  }
  uint64_t rows() { return MemberOf(*store_, 0).inserted(); }

 private:
  static constexpr int kOfActor = 10000;
  struct Actor {
    Client client;
    uint64_t sent = 0;  // rows
  };

  void Send() {
    for (int i = 0; i < 2; ++i) {
      Actor& actor = actors_[i];
      const auto count = static_cast<uint32_t>(random_.Below(actor.client.limit[0] - actor.sent + 1));
      if (count == 0) continue;
      std::vector<TestRow> rows = SimpleRows(actor.sent, std::min<uint32_t>(count, 3));  // all of them fit the guard
      for (TestRow& row : rows) row.value += static_cast<float>(i * kOfActor);
      if (actor.client.Send(store_, MakeChunk(0, actor.sent, rows)) == absl::StatusCode::kOk) actor.sent += rows.size();
    }
  }
  void Hear() {
    for (Actor& actor : actors_) actor.client.Hear(store_);
  }

  RandomStream random_;
  Store* store_;
  Actor actors_[2];
  uint64_t completed_ = 0;
};

TEST_F(PowerLossTest, NoSyncThatFailsOrIsTheLastOneBeforeAKillOrALossOfPowerLosesOrDoublesARow) {
  GroupModel model(store_.get(), 1);
  int failures = 0;
  for (int round = 0; round < 900 && model.rows() < 900; ++round) {
    const bool worked = model.InsertAndCommit();
    failures += !worked;
    if (worked && model.random()->Below(8) != 0) continue;
    const uint64_t how = model.random()->Below(3);
    if (how == 0) {  // the process is killed, its successor acknowledges what it finds, then power is lost
      store_.reset();
      store_ = MustOpen(experiment_, folder_.path(), &clock_);
      model.set_store(store_.get());
      ASSERT_NO_FATAL_FAILURE(model.Reconnect()) << "round " << round;
    }
    ASSERT_NO_FATAL_FAILURE(LosePower(how == 1 ? nullptr : model.random())) << "round " << round;
    model.set_store(store_.get());
    ASSERT_NO_FATAL_FAILURE(model.Reconnect()) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(model.CheckRows()) << "round " << round;
  }
  EXPECT_GT(failures, 20);
  EXPECT_GT(model.rows(), 300u) << "the rings wrapped";
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
  client.Hear(store.get());
  ASSERT_EQ(client.Send(store.get(), MakeChunk(0, 6, SimpleRows(6, 1))), absl::StatusCode::kOk);
  disk_fails = true;
  v1::InsertReply reply;
  const absl::Status refused = store->Commit();
  disk_fails = false;
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
