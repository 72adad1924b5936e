// Turns a resolved experiment into the configuration of the learner's parts. Pure functions.
#ifndef DATACOM_LEARNER_ALGORITHM_SETUP_H_
#define DATACOM_LEARNER_ALGORITHM_SETUP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/safety/known_rows.h"
#include "common/tasks/task.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/experiment.pb.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

// Returns INVALID_ARGUMENT naming a known constraint that the task does not have.
absl::StatusOr<AlgorithmConfig> MakeAlgorithmConfig(const v1::Experiment& resolved, const TaskModel& task);
// The rows of AlgorithmConfig::known.
absl::StatusOr<KnownRows> MakeKnownRows(const v1::Experiment& resolved, const TaskModel& task);
std::vector<uint64_t> DeltaWarmups(const v1::Experiment& resolved);  // [M] rows
// The number of draws that may be requested before they are trained on. One in lockstep, because the rows of the next
// batch do not exist yet. Otherwise enough to keep the learner busy over a network's round trip, as long as the answers
// fit into 16 MiB. schema: that of the run's rows.
int DrawsAhead(const v1::Experiment& resolved, const RowSchema& schema);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHM_SETUP_H_
