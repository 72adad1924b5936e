// The resolved experiment of a run and the schema of its rows. Thread-safe; ReadExperiment blocks on the disk.
#ifndef DATACOM_REPLAY_RUN_EXPERIMENT_H_
#define DATACOM_REPLAY_RUN_EXPERIMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom::replay {

// Resolved and validated.
absl::StatusOr<v1::Experiment> ReadExperiment(const std::string& path);
absl::StatusOr<RowSchema> SchemaOf(const v1::Experiment& resolved);

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_RUN_EXPERIMENT_H_
