// `export`: writes a policy of a run to one file, for the C library or as an ONNX model, or what results keep of a run.
// Thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_EXPORT_COMMAND_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_EXPORT_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace datacom::tools {

struct ExportCommand {
  std::string run_dir;
  std::optional<uint32_t> member;    // absent: the first one, of the format stored all
  std::optional<std::string> epoch;  // number, last or best; default last, of the format stored both
  std::string file;                  // the file to write, of the format violations the folder
  std::string format = "policy";     // or onnx; stored: all members (stored_policies.h); violations (ledger_excerpt.h)
  bool noise = false;                // the ONNX graph takes noise as an input
  uint32_t pairs = 1000;             // recorded inputs and outputs beside an ONNX file
  uint32_t largest = 10;             // violations to keep
};

// Checks that the policy's acting rule can be made, writes the file and prints on `out` what it holds. NOT_FOUND or
// INVALID_ARGUMENT, naming the missing folder, epoch or member.
absl::Status RunExportCommand(const ExportCommand& command, std::ostream* out);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_EXPORT_COMMAND_H_
// SPDX-License-Identifier: Apache-2.0
