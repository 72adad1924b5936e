// Takes a replay's settings from an experiment. Thread-safe; ReadExperiment blocks on the disk.
#ifndef DATACOM_REPLAY_SETUP_H_
#define DATACOM_REPLAY_SETUP_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/transitions/row_schema.h"
#include "replay/options.h"

namespace datacom::v1 {
class Experiment;
}

namespace datacom::replay {

// Resolved and validated.
absl::StatusOr<v1::Experiment> ReadExperiment(const std::string& path);
struct ReplaySetup {
  RowSchema schema;
  Options options;  // all but folder, run id, lease and clock
};
absl::StatusOr<ReplaySetup> SetUp(const v1::Experiment& resolved);

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_SETUP_H_
// SPDX-License-Identifier: Apache-2.0
