// The feasibility map of a run, made by datacom-render: this command links neither MuJoCo nor what draws.
#ifndef DATACOM_DEPLOY_CLI_MAP_H_
#define DATACOM_DEPLOY_CLI_MAP_H_

#include <string>

#include "absl/status/statusor.h"

namespace datacom::cli {

// Writes RUN_DIR/feasibility_map.json (member 0, a few epochs) and returns its content. Blocks until the child is done;
// its words when it fails, CANCELLED when this process is to stop.
absl::StatusOr<std::string> MakeMap(const std::string& run_dir);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_MAP_H_
