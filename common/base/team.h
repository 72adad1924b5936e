// A team of threads that divides work of microseconds. The thread that calls OnWorkers is worker 0; the team owns the
// threads of the other workers.
//
// A worker that has nothing to do looks for shared work for kSpin, giving its core to any other thread that wants it,
// and then sleeps. Nothing here allocates. OnWorkers may be called by one thread at a time. Share may be called by any
// thread, also inside the work of OnWorkers and of Share. Both block until the work is done and throw its first
// exception; the rest of the work is done nevertheless. Needs only the standard library.
#ifndef DATACOM_COMMON_BASE_TEAM_H_
#define DATACOM_COMMON_BASE_TEAM_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace datacom {

class Team {
 public:
  static constexpr std::chrono::microseconds kSpin{50};

  // pin: worker i stays on the i-th processor that this process may use. Worker 0 is not pinned, because the threads
  // that it starts would stay there, too.
  // Throws std::system_error if the system allows no further thread.
  explicit Team(int threads, bool pin = false);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  int threads() const { return threads_; }

  // Calls body(i) for 0 <= i < count on worker i; count <= threads(). What a worker touches stays in its caches.
  template <class Body>
  void OnWorkers(int count, const Body& body) {
    RunOnWorkers(count, WorkOf(body));
  }
  // Calls body(i) for 0 <= i < count on this thread and on workers that have nothing to do, in any order.
  template <class Body>
  void Share(int count, const Body& body) {
    RunShared(count, WorkOf(body));
  }

  // Seconds since the start. rounds: in OnWorkers; busy: of all workers with work, during rounds.
  struct Times {
    double rounds = 0, busy = 0;
  };
  Times times() const;  // thread-safe

 private:
  struct Work {
    void (*call)(const void* body, int index) = nullptr;
    const void* body = nullptr;
  };
  template <class Body>
  static Work WorkOf(const Body& body) {
    return {[](const void* object, int index) { (*static_cast<const Body*>(object))(index); }, &body};
  }

  // Shared work of one thread. Anyone may claim an index of it.
  struct alignas(64) Offer {
    std::atomic<uint64_t> claim{0};  // generation, count (16 bits), next index (16 bits)
    std::atomic<void (*)(const void*, int)> call{nullptr};
    std::atomic<const void*> body{nullptr};
    std::atomic<int> unfinished{0};
    std::atomic<bool> taken{false};  // by the thread that offers its work here
    std::exception_ptr error;        // guarded by errors_
  };
  struct alignas(64) Worker {
    std::atomic<uint32_t> round{0};  // the newest round that has work for this worker
    std::atomic<int64_t> busy_ns{0};
    int64_t waited_ns = 0;  // within the current work; the worker's own
    Offer offer;
    std::thread thread;
  };
  class Busy;

  void RunOnWorkers(int count, const Work& work);
  void RunShared(int count, const Work& work);
  void Divide(int count, const Work& work, Offer* offer);
  void Loop(int index, int processor);
  void RunRound(int index);
  bool RunClaimed(Offer* offer);  // false: nothing was left to claim
  Offer* OpenOffer(int index);    // that worker `index` may help with; null: there is none
  void Help(int index, Offer* offer);
  void Stop();
  void Sleep(uint32_t seen_round, const Worker& worker);
  void Wake(bool everyone);

  const int threads_;
  std::unique_ptr<Worker[]> workers_;
  Offer outside_;                   // of threads that are not workers
  Work round_work_;                 // written before a worker's `round`
  uint32_t round_ = 0;              // of worker 0
  std::exception_ptr round_error_;  // guarded by errors_
  std::mutex errors_;
  alignas(64) std::atomic<int> round_unfinished_{0};
  std::atomic<int64_t> rounds_ns_{0};
  alignas(64) std::atomic<uint32_t> alarm_{0};
  std::atomic<int> spinning_{0}, sleeping_{0};
  std::atomic<bool> stop_{false};
};

// Without a team it runs in order on this thread.
template <class Body>
void Share(Team* team, int count, const Body& body) {
  if (team != nullptr) return team->Share(count, body);
  for (int i = 0; i < count; ++i) body(i);
}

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_TEAM_H_
// SPDX-License-Identifier: Apache-2.0
