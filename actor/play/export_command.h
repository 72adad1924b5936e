// `export`: writes a policy of a run to one file for a robot.
#ifndef DATACOM_ACTOR_PLAY_EXPORT_COMMAND_H_
#define DATACOM_ACTOR_PLAY_EXPORT_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace datacom {

struct ExportCommand {
  std::string run_dir;
  uint32_t member = 0;
  std::string epoch = "last";  // number, or last
  std::string file;            // to be written
};

// Writes the file, once it is known that the policy can be made to act, and says on `out` what it holds. NOT_FOUND or
// INVALID_ARGUMENT naming the folder, epoch or member that is not there.
absl::Status RunExportCommand(const ExportCommand& command, std::ostream* out);

}  // namespace datacom

#endif  // DATACOM_ACTOR_PLAY_EXPORT_COMMAND_H_
