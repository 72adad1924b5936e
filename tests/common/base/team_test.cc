// A team of threads: who does which work, how often, and what happens to exceptions.
#include "common/base/team.h"

#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace datacom {
namespace {

void Spend(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(Team, CallsWorkOnceForEachIndex) {
  for (const int threads : {1, 2, 3, 8}) {
    Team team(threads);
    EXPECT_EQ(team.threads(), threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> calls(threads), shared(20);
      team.OnWorkers(threads, [&](int i) { ++calls[i]; });
      team.Share(20, [&](int i) { ++shared[i]; });
      for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
      for (const std::atomic<int>& count : shared) EXPECT_EQ(count, 1);
    }
  }
}

TEST(Team, RunsAnIndexOnTheSameThreadInEveryRound) {
  Team team(4);
  std::vector<std::thread::id> first(4), now(4);
  team.OnWorkers(4, [&](int i) { first[i] = std::this_thread::get_id(); });
  EXPECT_EQ(first[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(first.begin(), first.end()).size(), 4);
  for (int round = 0; round < 50; ++round) {
    team.OnWorkers(4, [&](int i) { now[i] = std::this_thread::get_id(); });
    EXPECT_EQ(now, first);
  }
}

// The second call of the shared work waits for the first, so both threads must take part.
TEST(Team, AWorkerWithNothingToDoTakesSharedWork) {
  Team team(2);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> started{0};
    team.Share(2, [&](int) {
      ++started;
      while (started != 2) std::this_thread::yield();
    });
    EXPECT_EQ(started, 2);
  }
}

TEST(Team, WorkersShareWorkInsideARoundAndInsideSharedWork) {
  Team team(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> sums(3);
    team.OnWorkers(3, [&](int worker) {
      for (int step = 0; step < 5; ++step) {
        int parts[4] = {};
        team.Share(2, [&](int i) { team.Share(2, [&](int j) { parts[2 * i + j] = step + i + j; }); });
        for (const int part : parts) sums[worker] += part;
      }
    });
    EXPECT_EQ(sums, (std::vector<int>{60, 60, 60}));  // 4 * (0 + .. + 4) + 5 * (0 + 1 + 1 + 2)
  }
}

TEST(Team, OtherThreadsShareTheirWorkDuringARound) {
  Team team(3);
  std::atomic<int> outside{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      for (int round = 0; round < 200; ++round) team.Share(7, [&](int) { ++outside; });
    });
  }
  int inside[3] = {};
  for (int round = 0; round < 200; ++round) team.OnWorkers(3, [&](int i) { ++inside[i]; });
  for (std::thread& other : others) other.join();
  EXPECT_EQ(outside, 2 * 200 * 7);
  for (const int count : inside) EXPECT_EQ(count, 200);
}

TEST(Team, ThrowsAnExceptionOfTheWorkAfterAllOfItIsDone) {
  Team team(3);
  for (const int bad : {0, 2}) {
    std::atomic<int> calls{0};
    const auto work = [&](int i) {
      ++calls;
      if (i == bad) throw std::runtime_error("work " + std::to_string(i));
    };
    EXPECT_THROW(team.OnWorkers(3, work), std::runtime_error);
    EXPECT_EQ(calls, 3);
    EXPECT_THROW(team.Share(3, work), std::runtime_error);
    EXPECT_EQ(calls, 6);
    team.OnWorkers(3, [&](int) { ++calls; });
    team.Share(3, [&](int) { ++calls; });
    EXPECT_EQ(calls, 12) << "the team works again";
  }
}

TEST(Team, MeasuresTheTimeOfRoundsAndOfItsWorkers) {
  Team team(2);
  team.OnWorkers(2, [&](int i) { Spend(std::chrono::milliseconds(i == 0 ? 4 : 8)); });
  const Team::Times times = team.times();
  EXPECT_GE(times.rounds, 0.008);
  EXPECT_GE(times.busy, 0.012);
  EXPECT_LE(times.busy, 2 * times.rounds);
  team.Share(2, [&](int) { Spend(std::chrono::milliseconds(30)); });
  EXPECT_EQ(team.times().busy, times.busy) << "work outside of rounds does not count";
}

TEST(Team, AllSleepingWorkersWakeForWorkOfManyParts) {
  Team team(3);
  for (int round = 0; round < 20; ++round) {
    Spend(4 * Team::kSpin);
    std::atomic<int> started{0};
    team.Share(3, [&](int) {  // each part waits for the others
      ++started;
      while (started != 3) std::this_thread::yield();
    });
    EXPECT_EQ(started, 3);
  }
}

TEST(Team, AWorkerWakesWhileAnotherHelpsSomeoneElse) {
  Team team(3);
  std::atomic<int> outside{0}, inside{0};
  std::atomic<bool> done{false};
  std::thread other([&] {  // keeps itself and one worker busy
    team.Share(2, [&](int) {
      ++outside;
      while (!done) std::this_thread::yield();
    });
  });
  while (outside != 2) std::this_thread::yield();
  Spend(4 * Team::kSpin);  // the third worker falls asleep
  team.OnWorkers(1, [&](int) {
    team.Share(2, [&](int) {
      ++inside;
      while (inside != 2) std::this_thread::yield();
    });
  });
  EXPECT_EQ(inside, 2);
  done = true;
  other.join();
}

TEST(Team, AThreadOutsideSharesWorkInsideOfItsSharedWork) {
  Team team(2);
  std::atomic<int> sum{0};
  team.Share(3, [&](int i) { team.Share(3, [&](int j) { sum += 3 * i + j; }); });
  EXPECT_EQ(sum, 36);
}

// In a child process, because its address space is limited.
#ifndef DATACOM_SANITIZED
TEST(TeamDeathTest, AThreadThatCannotStartIsAnException) {
  const auto start = [] {
    const rlimit limit{256 << 20, 256 << 20};
    setrlimit(RLIMIT_AS, &limit);
    try {
      Team team(1024);
    } catch (const std::system_error&) {
      std::_Exit(7);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(start(), ::testing::ExitedWithCode(7), "");
}
#endif

TEST(Share, WithoutATeamGoesInOrderOnThisThread) {
  std::vector<int> order;
  Share(nullptr, 3, [&](int i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
