#include "tests/bench/learner_scaling.h"

#include <atomic>
#include <cstdio>
#include <ctime>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace datacom::learner {
namespace {

constexpr int kProjected = 64;

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// One population on one number of threads.
struct Case {
  int members = 0, threads = 0;
  std::shared_ptr<Team> team;  // null: one thread
  std::unique_ptr<Algorithm> algorithm;
  std::vector<double> times;  // of updates of all members
  double processor = 0;       // seconds of all threads
  Team::Times team_times;

  double update() const { return Median(times); }
  double wait() const {  // the share of its threads' time
    return team == nullptr ? 0 : std::max(0.0, 1 - team_times.busy / (team_times.rounds * threads));
  }
};

Case MakeCase(AlgorithmConfig config, int threads) {
  Case made;
  made.members = static_cast<int>(config.members.size()), made.threads = threads;
  if (threads > 1) made.team = std::make_shared<Team>(threads);
  config.team = made.team;
  made.algorithm = MakeAlgorithm(config);
  return made;
}

// Some updates in a row, so that the threads do not sleep between them. The first ones wake the threads and warm the
// caches.
void RunTurn(const Batch& batch, Case* measured) {
  for (int i = 0; i < 3; ++i) measured->algorithm->Update(batch);
  const double processor = ProcessorSeconds();
  const Team::Times before = measured->team == nullptr ? Team::Times() : measured->team->times();
  const int updates = std::max(1, 64 / measured->members);
  for (int i = 0; i < updates; ++i) {
    measured->times.push_back(Seconds([&] { measured->algorithm->Update(batch); }));
  }
  measured->processor += ProcessorSeconds() - processor;
  if (measured->team == nullptr) return;
  const Team::Times after = measured->team->times();
  measured->team_times.rounds += after.rounds - before.rounds;
  measured->team_times.busy += after.busy - before.busy;
}

// Seconds of a round in which no worker has anything to do, and what a fork and join of two equal parts takes longer
// than one of them.
struct Overhead {
  double round = 0, fork = 0;
};

void Spend(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

Overhead MeasureOverhead(int threads) {
  Team team(threads);
  std::vector<double> rounds, forks;
  for (int i = 0; i < 2000; ++i) rounds.push_back(Seconds([&] { team.OnWorkers(threads, [](int) {}); }));
  constexpr double kPart = 10e-6;  // long enough for another worker to come
  for (int i = 0; i < 2000; ++i) forks.push_back(Seconds([&] { team.Share(2, [](int) { Spend(kPart); }); }));
  return {Median(rounds), Median(forks) - kPart};
}

// How long a cache line travels from one processor to another: half of the time in which a value goes to another thread
// and back. The median of 20 measurements. Virtual machines may move processors, so that this changes between runs.
double LineSeconds() {
  constexpr int kTurns = 10'000;
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> turn{0};
    std::thread other([&] {
      for (int mine = 1; mine <= 2 * kTurns; mine += 2) {
        while (turn.load(std::memory_order_acquire) != mine) {
        }
        turn.store(mine + 1, std::memory_order_release);
      }
    });
    times.push_back(Seconds([&] {
      for (int mine = 0; mine < 2 * kTurns; mine += 2) {
        turn.store(mine + 1, std::memory_order_release);
        while (turn.load(std::memory_order_acquire) != mine + 2) {
        }
      }
    }));
    other.join();
  }
  return Median(times) / (2 * kTurns);
}

void Forget(Case* measured) {
  measured->times.clear();
  measured->processor = 0;
  measured->team_times = {};
}

void PrintCase(const std::string& algorithm, const Case& measured, double one_thread) {
  const double each = measured.members * 1e-6, speedup = one_thread / measured.update();
  std::fprintf(stderr, "%-16s %7d %7d %11.1f %13.1f %8.2f %10.2f %6.1f %%\n", algorithm.c_str(), measured.members,
               measured.threads, measured.update() / each,
               measured.processor / (each * static_cast<double>(measured.times.size())), speedup,
               speedup / measured.threads, 100 * measured.wait());
}

// A round with as many members for each thread as were measured takes the time of one thread's members, the extra time
// of the slowest thread and the cost of a round. The extra time of the slowest of 64 equal threads is 4.2 times the
// extra time of the slowest of two, if their times are normally distributed. The cost of a round is taken to grow with
// the threads. The threads' common caches and memory are not considered.
void PrintProjection(const Case& measured, double one_thread, const Overhead& overhead) {
  constexpr double kSlowestOf64 = 4.2;
  const double alone = one_thread / measured.threads;
  const double wait = std::max(0.0, measured.wait() * measured.update() - overhead.round);
  const double round = overhead.round * (kProjected - 1) / (measured.threads - 1);
  std::fprintf(
      stderr,
      "projected: M = %d on %d threads: efficiency %.2f (members %.1f us, slowest thread +%.1f us, round +%.1f "
      "us)\n",
      measured.members / measured.threads * kProjected, kProjected, alone / (alone + kSlowestOf64 * wait + round),
      alone * 1e6, kSlowestOf64 * wait * 1e6, round * 1e6);
}

}  // namespace

std::vector<int> ThreadCounts(const std::string& text) {
  std::vector<int> counts{1};
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const int count = std::stoi(word);
    if (count < 1 || count > 1024) throw std::invalid_argument("--threads must lie between 1 and 1024, not " + word);
    if (count > 1) counts.push_back(count);
  }
  return counts;
}

std::vector<Result> MeasureScaling(const std::vector<int>& threads, const std::vector<ScalingCase>& populations,
                                   double seconds) {
  std::vector<Result> results;
  std::fprintf(stderr, "%-16s members threads   us/member us processor  speedup efficiency   wait\n", "algorithm");
  std::vector<Case> two;  // the cases on the second number of threads, and the time of one thread
  std::vector<double> alone;
  for (const auto& [algorithm, members] : populations) {
    const AlgorithmConfig config = TimedConfigOf(algorithm, {"obs16", 16, 3, 6}, members);
    const Batch batch = RandomBatch(config);
    std::vector<Case> cases;
    for (const int count : threads) cases.push_back(MakeCase(config, count));
    const auto run = [&] {
      for (Case& measured : cases) RunTurn(batch, &measured);
    };
    run();
    for (Case& measured : cases) Forget(&measured);
    for (double spent = 0; spent < seconds * static_cast<double>(threads.size());) spent += Seconds(run);
    const double one_thread = cases.front().update();
    for (const Case& measured : cases) {
      PrintCase(algorithm, measured, one_thread);
      const double rate = members / measured.update(), floor = members / one_thread;
      results.push_back({"learner/" + algorithm + "/obs16/M=" + std::to_string(members) +
                             "/threads=" + std::to_string(measured.threads),
                         rate, floor, rate / floor});
    }
    if (cases.size() > 1) two.push_back(std::move(cases[1])), alone.push_back(one_thread);
  }
  if (two.empty()) return results;
  const double line = LineSeconds();
  std::fprintf(stderr, "a cache line from one processor to another: %.0f ns\n", line * 1e9);
  results.push_back({"learner/threads/cache_line", line * 1e9, 0, 0, "ns"});
  const Overhead overhead = MeasureOverhead(two.front().threads);
  std::fprintf(stderr, "an empty round of %d threads: %.2f us; a fork and join: %.2f us\n", two.front().threads,
               overhead.round * 1e6, overhead.fork * 1e6);
  for (size_t i = 0; i < two.size(); ++i) {
    if (two[i].members % two[i].threads == 0) PrintProjection(two[i], alone[i], overhead);
  }
  results.push_back({"learner/threads/round", overhead.round * 1e6, 0, 0, "us"});
  results.push_back({"learner/threads/fork", overhead.fork * 1e6, 0, 0, "us"});
  return results;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
