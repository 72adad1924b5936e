// The feasibility map of a run. datacom-tools makes it: `datacom` links neither MuJoCo nor the drawing libraries.
#ifndef DATACOM_DEPLOY_CLI_MAP_H_
#define DATACOM_DEPLOY_CLI_MAP_H_

#include <string>

#include "absl/status/statusor.h"

namespace datacom::cli {

// Writes RUN_DIR/feasibility_map.json (member 0, a few epochs) and returns its content. Blocks until the child ends.
// UNAVAILABLE with the child's message when it fails, CANCELLED when this process is asked to stop.
absl::StatusOr<std::string> MakeMap(const std::string& run_dir);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_MAP_H_
