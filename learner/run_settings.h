// The settings of a run's experiment that the learner's parts read, apart from what the algorithm computes with
// (AlgorithmConfig). setup.h makes it. Plain data.
#ifndef DATACOM_LEARNER_RUN_SETTINGS_H_
#define DATACOM_LEARNER_RUN_SETTINGS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/transitions/update_schedule.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom::learner {

// When the epochs of a run end, in rows and in updates. Immutable; thread-safe.
class EpochSchedule {
 public:
  EpochSchedule() = default;
  EpochSchedule(const UpdateSchedule& updates, uint64_t steps_per_epoch)
      : updates_(updates), steps_per_epoch_(steps_per_epoch) {}

  const UpdateSchedule& updates() const { return updates_; }
  uint64_t env_steps() const { return updates_.env_steps; }  // of the whole run
  uint64_t last_update() const { return updates_.LastUpdate(); }
  uint64_t RowsSeen(uint64_t update) const { return updates_.RowsSeen(update); }
  // The run has the epochs 0 .. last_epoch(). The last one ends early if the run ends inside it.
  uint32_t last_epoch() const {
    return static_cast<uint32_t>((updates_.env_steps + steps_per_epoch_ - 1) / steps_per_epoch_);
  }
  // Environment steps at the epoch's end.
  uint64_t EpochSteps(uint32_t epoch) const { return std::min(epoch * steps_per_epoch_, updates_.env_steps); }
  bool EndsEarly(uint32_t epoch) const { return EpochSteps(epoch) < epoch * steps_per_epoch_; }
  uint64_t EpochUpdate(uint32_t epoch) const { return updates_.UpdatesAt(EpochSteps(epoch)); }  // its last
  // Rows count from 1.
  uint32_t EpochOfRow(uint64_t row) const { return static_cast<uint32_t>((row - 1) / steps_per_epoch_ + 1); }

 private:
  UpdateSchedule updates_;
  uint64_t steps_per_epoch_ = 1;
};

struct RunSettings {
  std::shared_ptr<const v1::Experiment> resolved = std::make_shared<v1::Experiment>();
  std::string experiment;  // the same as text
  std::string fixed;       // the settings that a resumed run may not change (FixedSettings), as text
  // Of the algorithm, as in AlgorithmInfo.
  std::string acting_rule;
  bool needs_dynamics = false, on_policy = false;
  std::string environment;           // of a Python environment: a line of build.txt
  std::vector<double> cost_budgets;  // of each member; NaN: the algorithm has none
  EpochSchedule schedule;
  uint64_t rows_per_draw = 1;  // for each member
  // The rows of the next draw do not exist before the policy of this update acts (lockstep, on-policy algorithms).
  bool draws_wait = false;

  int member_count() const { return resolved->members_size(); }
};

struct RunIdentity {
  std::string run_id;
  uint32_t incarnation = 1;  // grows by one with every start of the learner
  RunSettings settings;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RUN_SETTINGS_H_
// SPDX-License-Identifier: Apache-2.0
