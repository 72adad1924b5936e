// Whether a run may continue a checkpoint. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_RECORDS_RESUME_H_
#define DATACOM_COMMON_RECORDS_RESUME_H_

#include <string>

#include "absl/status/status.h"
#include "common/transitions/update_schedule.h"
#include "datacom/v1/checkpoint.pb.h"

namespace datacom {

// FAILED_PRECONDITION or INVALID_ARGUMENT, naming what differs, unless the checkpoint is of this run, of an experiment
// with the same `fixed` settings (FixedSettings, common/config/experiment.h), and of no later update than the run's
// last.
absl::Status CheckResume(const v1::LearnerCheckpoint& checkpoint, const std::string& run_id, const std::string& fixed,
                         const UpdateSchedule& updates);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_RESUME_H_
// SPDX-License-Identifier: Apache-2.0
