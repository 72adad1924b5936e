// Turns a resolved experiment into what the learner's parts take. Only setup.cc, main.cc and dataset_draws.cc know the
// schema of experiments. Pure functions, except that MakeAlgorithmConfig starts threads.
#ifndef DATACOM_LEARNER_SETUP_H_
#define DATACOM_LEARNER_SETUP_H_

#include "absl/status/statusor.h"
#include "common/safety/known_rows.h"
#include "common/tasks/task.h"
#include "common/transitions/row_schema.h"
#include "learner/algorithms/algorithm.h"
#include "learner/run_settings.h"

namespace datacom::learner {

RunSettings MakeRunSettings(const v1::Experiment& resolved);
// INVALID_ARGUMENT naming a known constraint that the task does not have, or why the algorithm's acting rule cannot act
// in the task.
absl::StatusOr<AlgorithmConfig> MakeAlgorithmConfig(const v1::Experiment& resolved, const TaskModel& task);
// The rows of AlgorithmConfig::known.
absl::StatusOr<KnownRows> MakeKnownRows(const v1::Experiment& resolved, const TaskModel& task);

// The number of draws that may be requested before they are trained on. One in lockstep, because the rows of the next
// batch do not exist yet. Otherwise enough to keep the learner busy over a network's round trip, as long as the answers
// fit into 16 MiB. schema: the columns of the run's rows.
int DrawsAhead(const RunSettings& settings, const RowSchema& schema);
// The updates that are announced to the replay together: those of a quarter of the rows that actors may run ahead, but
// no more than a sixteenth of the lag that a policy may have, because the replay judges it by the announced updates.
uint64_t AnnouncedTogether(const RunSettings& settings);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SETUP_H_
// SPDX-License-Identifier: Apache-2.0
