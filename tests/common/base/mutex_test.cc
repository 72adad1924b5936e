#include "common/base/mutex.h"

#include <thread>

#include "gtest/gtest.h"

namespace datacom {
namespace {

TEST(CondVar, WakesTheWaiterAndTimesOutWithoutOne) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::thread other([&] {
    MutexLock lock(&mutex);
    ready = true;
    changed.NotifyAll();
  });
  {
    MutexLock lock(&mutex);
    while (!ready) changed.Wait(&mutex);
    EXPECT_FALSE(changed.WaitFor(&mutex, std::chrono::nanoseconds(1)));
  }
  other.join();
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
