// Lets a thread wait for several sources at once: the first source that reports a change wakes it.
// Thread-safe: any number of threads report, one thread waits. Wait blocks, Report never does.
#ifndef DATACOM_COMMON_BASE_CHANGES_H_
#define DATACOM_COMMON_BASE_CHANGES_H_

#include <chrono>
#include <cstdint>

#include "common/base/mutex.h"

namespace datacom {

class Changes {
 public:
  void Report() {
    MutexLock lock(&mutex_);
    ++reported_;
    changed_.NotifyAll();
  }

  // Blocks until something was reported since the last call, or the timeout; returns whether something was.
  bool Wait(std::chrono::nanoseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(&mutex_);
    while (reported_ == seen_ && changed_.WaitUntil(&mutex_, deadline)) {
    }
    const bool reported = reported_ != seen_;
    seen_ = reported_;
    return reported;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  uint64_t reported_ ABSL_GUARDED_BY(mutex_) = 0, seen_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_CHANGES_H_
// SPDX-License-Identifier: Apache-2.0
