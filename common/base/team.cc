#include "common/base/team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace datacom {
namespace {

constexpr int kMostShared = 0xffff;  // the bits of a claim's count

using Time = std::chrono::steady_clock::time_point;

Time Now() { return std::chrono::steady_clock::now(); }
int64_t Nanoseconds(Time begin) { return std::chrono::nanoseconds(Now() - begin).count(); }

// The worker whose work this thread does.
thread_local const Team* current_team = nullptr;
thread_local int current_index = -1;

// Short waits read nothing but memory. Longer ones let other threads have the processor.
class Spin {
 public:
  bool Again() {  // false: the time is over
    if (++turns_ < kPauses) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      return true;
    }
    if (turns_ == kPauses) begin_ = Now();
    std::this_thread::yield();
    return Now() - begin_ < Team::kSpin;
  }

 private:
  static constexpr int kPauses = 200;  // some microseconds
  int turns_ = 0;
  Time begin_;
};

void WaitForZero(const std::atomic<int>& count) {
  Spin spin;
  for (int left = count.load(std::memory_order_acquire); left != 0; left = count.load(std::memory_order_acquire)) {
    if (!spin.Again()) count.wait(left, std::memory_order_acquire);
  }
}

void CountDown(std::atomic<int>* count) {
  if (count->fetch_sub(1, std::memory_order_acq_rel) == 1) count->notify_all();
}

void Pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

std::vector<int> Processors() {
  cpu_set_t set;
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

}  // namespace

// Adds the time of its life to the worker's busy time, less what the worker waited for others.
class Team::Busy {
 public:
  explicit Busy(Worker* worker) : worker_(worker), begin_(Now()) { worker_->waited_ns = 0; }
  ~Busy() { worker_->busy_ns.fetch_add(Nanoseconds(begin_) - worker_->waited_ns, std::memory_order_relaxed); }

 private:
  Worker* const worker_;
  const Time begin_;
};

Team::Team(int threads, bool pin) : threads_(std::max(threads, 1)), workers_(new Worker[threads_]) {
  const std::vector<int> processors = pin ? Processors() : std::vector<int>();
  try {
    for (int i = 1; i < threads_; ++i) {
      const int processor = processors.empty() ? -1 : processors[i % processors.size()];
      workers_[i].thread = std::thread([this, i, processor] { Loop(i, processor); });
    }
  } catch (...) {
    Stop();
    throw;
  }
}

Team::~Team() { Stop(); }

void Team::Stop() {
  stop_ = true;
  Wake(/*everyone=*/true);
  for (int i = 1; i < threads_; ++i) {
    if (workers_[i].thread.joinable()) workers_[i].thread.join();
  }
}

Team::Times Team::times() const {
  Times times;
  times.rounds = static_cast<double>(rounds_ns_.load(std::memory_order_relaxed)) * 1e-9;
  for (int i = 0; i < threads_; ++i)
    times.busy += static_cast<double>(workers_[i].busy_ns.load(std::memory_order_relaxed)) * 1e-9;
  return times;
}

void Team::Wake(bool everyone) {
  if (sleeping_.load() == 0 && !stop_) return;
  ++alarm_;
  if (everyone) {
    alarm_.notify_all();
  } else {
    alarm_.notify_one();
  }
}

void Team::RunOnWorkers(int count, const Work& work) {
  const Time begin = Now();
  const Team* const team_before = std::exchange(current_team, this);
  const int index_before = std::exchange(current_index, 0);
  round_work_ = work;
  round_unfinished_.store(count, std::memory_order_relaxed);
  ++round_;
  for (int i = 1; i < count; ++i) workers_[i].round.store(round_);
  if (count > 1) Wake(/*everyone=*/true);
  RunRound(0);
  for (Spin spin; round_unfinished_.load(std::memory_order_acquire) != 0;) {
    if (Offer* const offer = OpenOffer(0); offer != nullptr) {
      Help(0, offer);
      spin = Spin();
    } else if (!spin.Again()) {
      WaitForZero(round_unfinished_);
    }
  }
  current_team = team_before;
  current_index = index_before;
  rounds_ns_.fetch_add(Nanoseconds(begin), std::memory_order_relaxed);
  if (round_error_ != nullptr) std::rethrow_exception(std::exchange(round_error_, nullptr));
}

void Team::RunRound(int index) {
  {
    const Busy busy(&workers_[index]);
    try {
      round_work_.call(round_work_.body, index);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(errors_);
      if (round_error_ == nullptr) round_error_ = std::current_exception();
    }
  }
  CountDown(&round_unfinished_);
}

void Team::RunShared(int count, const Work& work) {
  // A thread has one offer at a time. What it shares inside of that, it does itself.
  Offer* const offer = current_team == this ? &workers_[current_index].offer : &outside_;
  if (threads_ == 1 || count <= 1 || count > kMostShared || offer->taken.exchange(true, std::memory_order_acquire)) {
    for (int i = 0; i < count; ++i) work.call(work.body, i);
    return;
  }
  Divide(count, work, offer);
}

void Team::Divide(int count, const Work& work, Offer* offer) {
  offer->call.store(work.call, std::memory_order_relaxed);
  offer->body.store(work.body, std::memory_order_relaxed);
  offer->unfinished.store(count, std::memory_order_relaxed);
  const uint64_t generation = (offer->claim.load(std::memory_order_relaxed) >> 32) + 1;
  offer->claim.store(generation << 32 | static_cast<uint64_t>(count) << 16);
  if (spinning_.load() < count - 1) Wake(/*everyone=*/count > 2);
  while (RunClaimed(offer)) {
  }
  if (offer->unfinished.load(std::memory_order_acquire) != 0) {
    const Time begin = Now();
    WaitForZero(offer->unfinished);
    if (current_team == this) workers_[current_index].waited_ns += Nanoseconds(begin);
  }
  const std::exception_ptr error = std::exchange(offer->error, nullptr);
  offer->taken.store(false, std::memory_order_release);
  if (error != nullptr) std::rethrow_exception(error);
}

bool Team::RunClaimed(Offer* offer) {
  uint64_t claim = offer->claim.load();
  for (;;) {
    const int count = static_cast<int>(claim >> 16 & 0xffff), next = static_cast<int>(claim & 0xffff);
    if (next >= count) return false;
    const auto call = offer->call.load(std::memory_order_relaxed);
    const void* const body = offer->body.load(std::memory_order_relaxed);
    // If it succeeds, the offer is still the one of this generation, so call and body belong to it.
    if (!offer->claim.compare_exchange_weak(claim, claim + 1)) continue;
    try {
      call(body, next);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(errors_);
      if (offer->error == nullptr) offer->error = std::current_exception();
    }
    CountDown(&offer->unfinished);
    return true;
  }
}

Team::Offer* Team::OpenOffer(int index) {
  for (int i = 0; i <= threads_; ++i) {
    Offer* const offer = i == 0 ? &outside_ : &workers_[(index + i) % threads_].offer;
    const uint64_t claim = offer->claim.load(std::memory_order_relaxed);
    if ((claim & 0xffff) < (claim >> 16 & 0xffff)) return offer;
  }
  return nullptr;
}

void Team::Help(int index, Offer* offer) {
  if (round_unfinished_.load(std::memory_order_relaxed) == 0) {  // busy_ns counts only rounds
    RunClaimed(offer);
    return;
  }
  const Busy busy(&workers_[index]);
  RunClaimed(offer);
}

void Team::Sleep(uint32_t seen_round, const Worker& worker) {
  const uint32_t alarm = alarm_.load();
  ++sleeping_;
  // Whoever offers work now sees that someone sleeps. Work that was offered before is seen here.
  bool work = stop_ || worker.round.load() != seen_round;
  for (int i = 0; i <= threads_ && !work; ++i) {
    const uint64_t claim = (i == 0 ? outside_ : workers_[i - 1].offer).claim.load();
    work = (claim & 0xffff) < (claim >> 16 & 0xffff);
  }
  if (!work) alarm_.wait(alarm);
  --sleeping_;
}

void Team::Loop(int index, int processor) {
  if (processor >= 0) Pin(processor);
  pthread_setname_np(pthread_self(), "team");
  current_team = this;
  current_index = index;
  Worker& worker = workers_[index];
  uint32_t seen_round = 0;
  while (!stop_) {
    ++spinning_;
    for (Spin spin; !stop_;) {
      const uint32_t round = worker.round.load(std::memory_order_acquire);
      if (round != seen_round) {
        seen_round = round;
        --spinning_;
        RunRound(index);
        ++spinning_;
        spin = Spin();
      } else if (Offer* const offer = OpenOffer(index); offer != nullptr) {
        --spinning_;
        Help(index, offer);
        ++spinning_;
        spin = Spin();
      } else if (!spin.Again()) {
        break;
      }
    }
    --spinning_;
    if (!stop_) Sleep(seen_round, worker);
  }
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
