#include "replay/limiter.h"

#include <algorithm>
#include <cmath>

namespace datacom {
namespace {

// Ratios such as 1/0.1 are not exact in binary; an excess this small is rounding, not a row (the learner's schedule
// rounds alike).
constexpr long double kRounding = 1e-9L;

uint64_t Ceil(long double value) { return static_cast<uint64_t>(std::ceil(value - kRounding)); }
uint64_t Floor(long double value) { return static_cast<uint64_t>(std::floor(value + kRounding)); }

}  // namespace

uint64_t Limiter::RowsSeen(uint64_t update) const {
  return options_.min_size + Ceil(update / static_cast<long double>(options_.updates_per_step));
}

uint64_t Limiter::LastUpdate() const {
  if (options_.env_steps <= options_.min_size) return 0;
  return Floor(static_cast<long double>(options_.env_steps - options_.min_size) * options_.updates_per_step);
}

uint64_t Limiter::Allowed(uint64_t completed) const {
  uint64_t rows = RowsSeen(completed + 1);
  if (!options_.lockstep) {
    const uint64_t ahead =
        options_.min_size + options_.tolerance + Floor(static_cast<long double>(completed) / options_.updates_per_step);
    rows = std::max(rows, ahead);
  }
  // After the last update nothing waits for rows any more: the remaining ones are free.
  if (completed >= LastUpdate()) rows = options_.env_steps;
  return std::min(rows, options_.env_steps);
}

uint64_t Limiter::LastUpdateBefore(uint64_t row) const {
  if (row <= options_.min_size) return 0;
  return std::min(LastUpdate(), Floor(static_cast<long double>(row - options_.min_size) * options_.updates_per_step));
}

uint64_t Limiter::MinPolicyUpdate(uint64_t row, uint64_t completed) const {
  if (options_.lockstep) return LastUpdateBefore(row);
  return completed > options_.max_policy_lag ? completed - options_.max_policy_lag : 0;
}

uint64_t Limiter::PolicyChange(uint64_t row) const {
  const uint64_t next = LastUpdateBefore(row) + 1;
  return next > LastUpdate() ? options_.env_steps : RowsSeen(next);
}

}  // namespace datacom
