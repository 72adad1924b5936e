#include "learner/schedule.h"

#include <algorithm>
#include <cmath>

namespace datacom::learner {
namespace {

// A ratio like 0.7 is not exact in binary: 10 steps x 0.7 must be 7 updates, not 6.
constexpr long double kRounding = 1e-9L;

}  // namespace

Schedule Schedule::Of(const v1::Experiment& resolved) {
  Options options;
  options.updates_per_step = resolved.schedule().updates_per_step();
  options.min_size = resolved.replay().min_size();
  options.steps_per_epoch = resolved.run().steps_per_epoch();
  options.env_steps = resolved.run().env_steps();
  return Schedule(options);
}

uint64_t Schedule::UpdatesAt(uint64_t steps) const {
  if (steps <= options_.min_size) return 0;
  const long double product = static_cast<long double>(options_.updates_per_step) * (steps - options_.min_size);
  return static_cast<uint64_t>(std::floor(product + kRounding));
}

uint64_t Schedule::RowsSeen(uint64_t update) const {
  const long double quotient = update / static_cast<long double>(options_.updates_per_step);
  const uint64_t rows = options_.min_size + static_cast<uint64_t>(std::ceil(quotient - kRounding));
  return std::min(rows, options_.env_steps);
}

uint32_t Schedule::last_epoch() const {
  return static_cast<uint32_t>((options_.env_steps + options_.steps_per_epoch - 1) / options_.steps_per_epoch);
}

uint64_t Schedule::EpochSteps(uint32_t epoch) const {
  return std::min(epoch * options_.steps_per_epoch, options_.env_steps);
}

uint32_t Schedule::EpochOfRow(uint64_t row) const {
  return static_cast<uint32_t>((row - 1) / options_.steps_per_epoch + 1);
}

}  // namespace datacom::learner
