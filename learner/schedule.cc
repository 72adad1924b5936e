#include "learner/schedule.h"

#include <algorithm>

namespace datacom::learner {

Schedule Schedule::Of(const v1::Experiment& resolved) {
  Options options;
  options.updates.env_steps = resolved.run().env_steps();
  options.updates.min_size = resolved.replay().min_size();
  options.updates.updates_per_step = resolved.schedule().updates_per_step();
  options.steps_per_epoch = resolved.run().steps_per_epoch();
  return Schedule(options);
}

uint32_t Schedule::last_epoch() const {
  return static_cast<uint32_t>((options_.updates.env_steps + options_.steps_per_epoch - 1) / options_.steps_per_epoch);
}

uint64_t Schedule::EpochSteps(uint32_t epoch) const {
  return std::min(epoch * options_.steps_per_epoch, options_.updates.env_steps);
}

uint32_t Schedule::EpochOfRow(uint64_t row) const {
  return static_cast<uint32_t>((row - 1) / options_.steps_per_epoch + 1);
}

}  // namespace datacom::learner
