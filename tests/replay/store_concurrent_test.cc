// Uses the store from several threads, as the service does: actors insert while the learner draws and announces and
// others query. Most useful under the thread sanitizer.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"

namespace datacom::replay {
namespace {

using ::datacom::testing::IsOk;
using testing::Client;
using testing::MakeChunk;
using testing::SimpleRows;

class ConcurrentStoreTest : public ::testing::TestWithParam<bool> {};

TEST_P(ConcurrentStoreTest, ActorsLearnerAndQueriesEndWithExactlyTheRunsRows) {
  constexpr uint64_t kSteps = 400;
  testing::TemporaryFolder folder;
  Options options = testing::SmallOptions(1);
  options.limits.schedule.env_steps = kSteps;
  options.sync = GetParam();
  options.layout.capacity = kSteps;  // a waiting actor ends its episode late
  const auto store = testing::MustOpen(options, folder.path(), &Clock::Real());
  const uint64_t min_size = options.limits.schedule.min_size, updates = kSteps - min_size;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> accepted{0};

  std::vector<Client> clients(2);
  for (uint64_t i = 0; i < clients.size(); ++i) clients[i].Open(store.get(), "actor-" + std::to_string(i), i + 1, 1);
  std::vector<std::thread> threads;
  for (Client& client : clients) {
    threads.emplace_back([&store, &done, &accepted, &client] {
      while (!done) {
        client.Hear(store.get());
        if (client.limit[0] <= client.next[0]) {
          std::this_thread::yield();
          continue;
        }
        const uint32_t rows = static_cast<uint32_t>(std::min<uint64_t>(5, client.limit[0] - client.next[0]));
        const v1::Chunk chunk = MakeChunk(0, client.next[0], SimpleRows(client.next[0], rows));
        ASSERT_EQ(client.Send(store.get(), chunk), absl::StatusCode::kOk);
        accepted += rows;
      }
    });
  }
  threads.emplace_back([&store, &done] {
    while (!done) {
      v1::ReplayInfo info;
      store->Info(&info);
      ASSERT_THAT(store->Tick(), IsOk());
      std::this_thread::yield();
    }
  });
  threads.emplace_back([&store] {
    while (store->AwaitStaged()) ASSERT_THAT(store->Commit(), IsOk());
  });
  for (uint64_t update = 1; update <= updates; ++update) {
    while (!store->Ready(update)) std::this_thread::yield();
    v1::DrawReply reply;
    const absl::Status drawn = store->Draw(update, &reply);
    ASSERT_THAT(drawn, IsOk()) << "update " << update << ": " << drawn;
    EXPECT_THAT(store->Announce(update), IsOk());
  }
  done = true;
  store->StopCommits();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted, kSteps);
  EXPECT_EQ(testing::MemberOf(*store, 0).inserted(), kSteps);
}

INSTANTIATE_TEST_SUITE_P(Sync, ConcurrentStoreTest, ::testing::Bool());

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
