// Whether a run may be continued from a checkpoint. A pure function; thread-safe.
#ifndef DATACOM_LEARNER_RESUME_H_
#define DATACOM_LEARNER_RESUME_H_

#include <string>

#include "absl/status/status.h"
#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom::learner {

// FAILED_PRECONDITION naming both runs: the checkpoint is of another run. INVALID_ARGUMENT naming the setting: the
// experiment does not continue the one of the checkpoint; only run.env_steps and learner.device may differ.
absl::Status CheckResume(const v1::LearnerCheckpoint& checkpoint, const std::string& run_id,
                         const v1::Experiment& resolved);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RESUME_H_
