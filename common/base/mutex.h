// A mutex over std::mutex that clang's thread-safety analysis and the sanitizers understand (Debian's absl::Mutex is
// not instrumented, so a correct program using it reports races under TSan).
#ifndef DATACOM_COMMON_BASE_MUTEX_H_
#define DATACOM_COMMON_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace datacom {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Waits release the mutex; spurious wake-ups happen, so callers loop over their condition.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    WaitFor(mutex, std::chrono::hours(1));  // condition_variable::wait would need GCC 12's library
  }
  // False when the time ran out.
  bool WaitFor(Mutex* mutex, std::chrono::nanoseconds timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    const bool notified = condition_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  // False, without a wait, once the time is over: `while (!done && changed.WaitUntil(&mutex, deadline)) {}`.
  bool WaitUntil(Mutex* mutex, std::chrono::steady_clock::time_point deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    WaitFor(mutex, left);
    return true;
  }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_MUTEX_H_
// SPDX-License-Identifier: Apache-2.0
