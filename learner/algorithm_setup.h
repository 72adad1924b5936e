// From a resolved experiment to what the learner's parts are made of. Pure functions.
#ifndef DATACOM_LEARNER_ALGORITHM_SETUP_H_
#define DATACOM_LEARNER_ALGORITHM_SETUP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/safety/known_rows.h"
#include "common/tasks/task.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/learner.pb.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

// INVALID_ARGUMENT naming a known constraint that the task has not.
absl::StatusOr<AlgorithmConfig> MakeAlgorithmConfig(const v1::Experiment& resolved, const TaskModel& task);
absl::StatusOr<KnownRows> MakeKnownRows(const v1::Experiment& resolved, const TaskModel& task);  // as config.known
std::vector<uint64_t> DeltaWarmups(const v1::Experiment& resolved);                              // [M] rows
// Draws asked for and not yet trained on: one in lockstep, where the next batch's rows do not exist yet; else as many
// as keep the learner busy over a network's round trip, while their answers fit into 16 MiB. schema: of the run's rows.
int DrawsAhead(const v1::Experiment& resolved, const RowSchema& schema);
// What Info says before anything happened.
v1::LearnerInfo InitialInfo(const v1::Experiment& resolved, const std::string& run_id, uint32_t incarnation);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHM_SETUP_H_
