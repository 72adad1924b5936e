// Time as an input: everything that waits, expires or measures takes a Clock, so that tests control time.
// Thread-safe. Real() lives for the whole process.
#ifndef DATACOM_COMMON_BASE_CLOCK_H_
#define DATACOM_COMMON_BASE_CLOCK_H_

#include <chrono>

namespace datacom {

class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  virtual ~Clock() = default;
  virtual Time Now() const = 0;

  static const Clock& Real() {
    class RealClock : public Clock {
      Time Now() const override { return std::chrono::steady_clock::now(); }
    };
    static const RealClock clock;
    return clock;
  }
};

// Seconds between two times, as double.
inline double Seconds(Clock::Time::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_CLOCK_H_
// SPDX-License-Identifier: Apache-2.0
