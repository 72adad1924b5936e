// A clock that moves only in Advance. Not thread-safe against Advance.
#ifndef DATACOM_TESTS_TESTING_MANUAL_CLOCK_H_
#define DATACOM_TESTS_TESTING_MANUAL_CLOCK_H_

#include "common/base/clock.h"

namespace datacom {

class ManualClock : public Clock {
 public:
  Time Now() const override { return now_; }
  void Advance(std::chrono::nanoseconds by) { now_ += std::chrono::duration_cast<Time::duration>(by); }

 private:
  Time now_{};
};

}  // namespace datacom

#endif  // DATACOM_TESTS_TESTING_MANUAL_CLOCK_H_
// SPDX-License-Identifier: Apache-2.0
