// Growth of a counter per second over a sliding window. Not thread-safe; owns its samples; never blocks.
#ifndef DATACOM_COMMON_BASE_RATE_METER_H_
#define DATACOM_COMMON_BASE_RATE_METER_H_

#include <deque>
#include <utility>

#include "common/base/clock.h"

namespace datacom {

class RateMeter {
 public:
  RateMeter(const Clock* clock, double window_seconds) : clock_(clock), window_(window_seconds) {}

  void Add(double value) {
    if (!samples_.empty() && value < samples_.back().second) samples_.clear();  // the counter was reset
    const Clock::Time now = clock_->Now();
    samples_.emplace_back(now, value);
    while (samples_.size() > 2 && Seconds(now - samples_[1].first) >= window_) samples_.pop_front();
  }

  double rate() const {  // 0 before two samples
    if (samples_.size() < 2) return 0;
    const double seconds = Seconds(samples_.back().first - samples_.front().first);
    return seconds > 0 ? (samples_.back().second - samples_.front().second) / seconds : 0;
  }

 private:
  const Clock* const clock_;
  const double window_;
  std::deque<std::pair<Clock::Time, double>> samples_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_RATE_METER_H_
// SPDX-License-Identifier: Apache-2.0
