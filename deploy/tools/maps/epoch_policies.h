// Whether the policies in policies/epoch_NNNN.snapshot are those that the run ended this epoch with. Plain data and
// functions; thread-safe; ReadRunOfPolicies and NewestCheckpoint block on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_MAPS_EPOCH_POLICIES_H_
#define DATACOM_DEPLOY_TOOLS_MAPS_EPOCH_POLICIES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/nn/snapshot.h"
#include "common/transitions/update_schedule.h"
#include "datacom/v1/checkpoint.pb.h"

namespace datacom::v1 {
class Experiment;
}

namespace datacom::tools {

// What a run's policies name.
struct RunOfPolicies {
  std::string run_id;  // empty: unknown, any
  std::string task;
  std::vector<uint64_t> seeds;  // of the members
  UpdateSchedule updates;
  uint64_t steps_per_epoch = 1;
};
// Of a run folder and its resolved experiment. The id is that of the file run_id, or of the newest checkpoint.
RunOfPolicies ReadRunOfPolicies(const std::string& run_dir, const v1::Experiment& resolved);

// The newest sound checkpoint of a run folder; changes nothing in it.
std::optional<v1::LearnerCheckpoint> NewestCheckpoint(const std::string& run_dir);

// DATA_LOSS, naming the snapshot and what differs, unless there is one for each member, of this run, and of the update
// that ends the epoch. `newest` is only asked when the epoch has another end: the file of an epoch that an earlier end
// of the run cut short stays until a longer run has ended the epoch again.
absl::Status CheckEpoch(const RunOfPolicies& run, uint64_t epoch, const std::vector<Snapshot>& snapshots,
                        const std::function<std::optional<v1::LearnerCheckpoint>()>& newest);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_MAPS_EPOCH_POLICIES_H_
// SPDX-License-Identifier: Apache-2.0
