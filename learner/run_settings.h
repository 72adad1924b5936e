// The settings of a run's experiment that the learner's parts read, apart from what the algorithm computes with
// (AlgorithmConfig). setup.h makes it. Plain data.
#ifndef DATACOM_LEARNER_RUN_SETTINGS_H_
#define DATACOM_LEARNER_RUN_SETTINGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datacom/v1/task_options.pb.h"
#include "learner/epoch_schedule.h"

namespace datacom::learner {

struct RunSettings {
  struct Member {
    uint64_t seed = 0;
    std::string label;       // names its setting in a sweep
    double cost_budget = 0;  // NaN: the algorithm has none
  };
  std::string task, algorithm, acting_rule, device;
  bool needs_dynamics = false;  // the algorithm reads control-affine features
  bool on_policy = false;       // its critics are not judged (CriticWatch)
  uint64_t seed = 0;
  std::vector<Member> members;
  EpochSchedule schedule;
  uint64_t publish_period = 1, checkpoint_updates = 1;                                        // updates
  uint32_t eval_episodes = 0;                                                                 // per evaluation
  uint32_t eval_period = 1;                                                                   // epochs
  uint64_t pretrain_updates = 0;                                                              // 0: no pre-training
  std::string pretrain_dataset;                                                               // a folder
  std::shared_ptr<const v1::TaskOptions> task_options = std::make_shared<v1::TaskOptions>();  // with large files
  uint64_t rows_per_draw = 1;                                                                 // for each member
  // The rows of the next draw do not exist before the policy of this update acts (lockstep, on-policy algorithms).
  bool draws_wait = false;
  std::string experiment;  // resolved, text format
  std::string fixed;       // the settings that a resumed run may not change (FixedSettings), text format

  int member_count() const { return static_cast<int>(members.size()); }
};

struct RunIdentity {
  std::string run_id;
  uint32_t incarnation = 1;  // grows by one with every start of the learner
  RunSettings settings;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RUN_SETTINGS_H_
// SPDX-License-Identifier: Apache-2.0
