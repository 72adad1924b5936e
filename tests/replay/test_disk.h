// A disk for tests: it fails on demand, calls the test in the middle of a sync, and knows what a loss of power leaves.
// A program with test_disk.cc has its msync and posix_fallocate. Not thread-safe, except for `fails`, `full` and
// `syncs`.
#ifndef DATACOM_TESTS_REPLAY_TEST_DISK_H_
#define DATACOM_TESTS_REPLAY_TEST_DISK_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/random.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/manual_clock.h"

namespace datacom::replay::testing {

struct TestDisk {
  std::atomic<bool> fails{false}, full{false};
  std::atomic<int> syncs{0};
  int syncs_left = -1;                 // msync fails after so many more calls; -1: never
  std::function<void()> at_next_sync;  // called once, at the beginning of the next msync
};
inline TestDisk disk;

// While it exists, msync copies to here: the content of mapped files that is sure to survive a power loss.
class PowerLoss {
 public:
  PowerLoss() { living_ = this; }
  ~PowerLoss() { living_ = nullptr; }
  static void Synced(const void* address, size_t bytes);
  // Replaces the rings and the credit file of a closed folder by the surviving content. With `random`, every second
  // page that was not synced has reached the disk all the same.
  void Strike(const std::string& folder, RandomStream* random = nullptr);

 private:
  void Copy(uintptr_t address, size_t bytes);

  static constexpr size_t kPage = 4096;
  static inline PowerLoss* living_ = nullptr;
  std::map<std::string, std::string> disk_;
};

// A store with replay.sync.
class PowerLossTest : public ::testing::Test {
 protected:
  PowerLossTest() {
    options_.sync = true;
    store_ = MustOpen(options_, folder_.path(), &clock_);
  }
  void LosePower(RandomStream* random = nullptr) {
    store_.reset();
    power_.Strike(folder_.path(), random);
    store_ = MustOpen(options_, folder_.path(), &clock_);
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
  Options options_ = SmallOptions(1);
  PowerLoss power_;
  std::unique_ptr<Store> store_;
};

}  // namespace datacom::replay::testing

#endif  // DATACOM_TESTS_REPLAY_TEST_DISK_H_
// SPDX-License-Identifier: Apache-2.0
