// `task new`: makes a folder with a copy of a MuJoCo model and a first task.textproto. Blocks on the disk and while the
// model compiles.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_NEW_TASK_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_NEW_TASK_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace datacom::tools {

struct NewTaskCommand {
  std::string folder;      // the folder to make; the task is named after it
  std::string model;       // MJCF file; the files that it needs are copied next to it
  bool no_visual = false;  // without meshes that only draw
};

// Prints what was written. INVALID_ARGUMENT, naming what is wrong with the model; FAILED_PRECONDITION if the folder
// exists and is not empty.
absl::Status RunNewTaskCommand(const NewTaskCommand& command, std::ostream* out);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_NEW_TASK_H_
// SPDX-License-Identifier: Apache-2.0
