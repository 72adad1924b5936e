// Tasks that are text files, for the command: it links no MuJoCo, so datacom-tools compiles the model.
// Functions; they start a process and block until it ends.
#ifndef DATACOM_DEPLOY_CLI_TEXT_TASK_H_
#define DATACOM_DEPLOY_CLI_TEXT_TASK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace datacom::v1 {
class Experiment;
}

namespace datacom::cli {

// If the experiment's task is a task file: loads it into the extension text_task of task_options and replaces the path
// by the task's name. A relative path belongs to the working directory, or else to the folder of `experiment_file`.
// INVALID_ARGUMENT for a wrong task.
absl::Status LoadTextTask(const std::string& experiment_file, v1::Experiment* experiment);

// The experiment of a task (a name of the register or a task file) and an algorithm, with their defaults. Its name is
// TASK-ALGORITHM.
absl::StatusOr<v1::Experiment> ExperimentOf(const std::string& task, const std::string& algorithm);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_TEXT_TASK_H_
// SPDX-License-Identifier: Apache-2.0
