// Copies the rows that the rings of a run still hold into a dataset (common/records/dataset.h). Reads the ring files
// directly, so no replay may serve them at the same time. Changes nothing in the run. Blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_EXPORT_DATASET_H_
#define DATACOM_DEPLOY_TOOLS_EXPORT_DATASET_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/dataset.pb.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom::tools {

struct ExportOptions {
  std::string rings;              // folder of the rings
  std::string out;                // the dataset; must not exist yet
  std::vector<uint64_t> members;  // empty: all
  // Rows [first, end) of each member, counted from 0 at the start of the run; rows that a ring lost are left out.
  uint64_t first = 0, end = std::numeric_limits<uint64_t>::max();
};

// Returns the manifest that was written. FAILED_PRECONDITION when a replay uses the rings; INVALID_ARGUMENT when the
// folder or a member does not exist or a member has no row in the range; else as replay::Ring::OpenReadOnly and
// WriteDataset.
absl::StatusOr<v1::DatasetManifest> ExportDataset(const ExportOptions& options, const v1::Experiment& resolved,
                                                  const RowSchema& schema);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_EXPORT_DATASET_H_
// SPDX-License-Identifier: Apache-2.0
