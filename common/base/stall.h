// Noticing that nothing moves any more: StallTimer measures for how long a count has not changed, Watchdog ends a
// process whose main loop hangs, so that whoever supervises the process starts it again.
#ifndef DATACOM_COMMON_BASE_STALL_H_
#define DATACOM_COMMON_BASE_STALL_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace datacom {

inline constexpr double kStallMinutes = 10;  // default of --stall-minutes
inline constexpr char kStallHelp[] =
    "End with exit code 1 when the main loop makes no step for so many minutes; waiting for a peer is a step";

// At most 190 years, which a duration and its sum with any time can hold.
inline Clock::Time::duration Minutes(double minutes) {
  return std::chrono::duration_cast<Clock::Time::duration>(
      std::chrono::duration<double, std::ratio<60>>(std::min(minutes, 1e8)));
}

// Not thread-safe. Call Stalled regularly, several times within the limit.
class StallTimer {
 public:
  StallTimer(const Clock* clock, Clock::Time::duration limit) : clock_(clock), limit_(limit), seen_(clock->Now()) {}
  // True once the count has been the same for the limit. Of the time between two calls at most a quarter of the limit
  // counts, so that a caller that was suspended does not blame what it watches.
  bool Stalled(uint64_t count);

 private:
  const Clock* const clock_;
  const Clock::Time::duration limit_;
  Clock::Time seen_;  // by the newest call
  uint64_t count_ = 0;
  Clock::Time::duration idle_{};
};

// Owns a thread. Mark is thread-safe and takes nanoseconds. What comes before the first Mark is not watched.
class Watchdog {
 public:
  // `what` hangs when it has not called Mark for the limit. `on_stall` gets the reason, on the watchdog's thread;
  // absent: logs the reason and ends the process at once with exit code 1.
  Watchdog(std::string what, Clock::Time::duration limit, std::function<void(const std::string&)> on_stall = nullptr,
           const Clock* clock = &Clock::Real());
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void Mark() const { marks_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void Run();

  const std::string what_;
  const Clock::Time::duration limit_;
  const std::function<void(const std::string&)> on_stall_;
  const Clock* const clock_;
  mutable std::atomic<uint64_t> marks_{0};
  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_STALL_H_
// SPDX-License-Identifier: Apache-2.0
