#include "common/base/stall.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr int kChecks = 20;  // within the limit

void EndProcess(const std::string& reason) {
  spdlog::critical("{}", reason);
  ::_exit(kExitFailure);  // without destructors: they might wait for what hangs
}

}  // namespace

bool StallTimer::Stalled(uint64_t count) {
  const Clock::Time now = clock_->Now();
  idle_ = count == count_ ? idle_ + std::min(now - seen_, limit_ / 4) : Clock::Time::duration::zero();
  count_ = count;
  seen_ = now;
  return idle_ >= limit_;
}

Watchdog::Watchdog(std::string what, Clock::Time::duration limit, std::function<void(const std::string&)> on_stall,
                   const Clock* clock)
    : what_(std::move(what)),
      limit_(limit),
      on_stall_(on_stall != nullptr ? std::move(on_stall) : EndProcess),
      clock_(clock),
      thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void Watchdog::Run() {
  StallTimer timer(clock_, limit_);
  MutexLock lock(&mutex_);
  while (!stop_) {
    changed_.WaitFor(&mutex_, limit_ / kChecks);
    const uint64_t marks = marks_.load(std::memory_order_relaxed);
    if (stop_ || marks == 0 || !timer.Stalled(marks)) continue;
    on_stall_(absl::StrCat(what_, " has made no step for ", Seconds(limit_) / 60, " minutes: it hangs"));
    return;
  }
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
