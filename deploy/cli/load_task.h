// Tasks that are text files or Python environments, for the command: it links no MuJoCo and starts no Python, so
// datacom-tools loads them.
// Functions; they start a process and block until it ends.
#ifndef DATACOM_DEPLOY_CLI_LOAD_TASK_H_
#define DATACOM_DEPLOY_CLI_LOAD_TASK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/cli/train_plan.h"

namespace datacom::v1 {
class Experiment;
class TaskOptions;
}  // namespace datacom::v1

namespace datacom::cli {

// If the experiment's task is a task file or "python:MODULE:CALLABLE": loads it into task_options and replaces it by
// the task's name (common/tasks/task.h). A relative path belongs to the working directory, or else to the folder
// of `experiment_file`. Of a Python environment it does not ask for the control-affine model if `without_model` says
// why. INVALID_ARGUMENT for a wrong task.
absl::Status LoadTask(const std::string& experiment_file, v1::Experiment* experiment,
                      const std::string& without_model = "");

// Asks the Python environment of a run again. INVALID_ARGUMENT if it is another one (common/tasks/python/identity.h).
// Does nothing for other tasks.
absl::Status CheckSameEnvironment(const v1::TaskOptions& options);
// Why nobody asks a Python environment for its model in a training that reads none; empty: it is needed, or may be.
std::string WithoutModel(const std::string& algorithm, const TrainOptions& options);

// The experiment of a task (a name of the register, or one that LoadTask loads) and an algorithm, with their defaults.
// Its name is TASK-ALGORITHM. Without an algorithm: D-ATACOM if the task has a control-affine model, else LagSAC.
// Of `options.overrides` it applies those of task_options, so that the task can be made.
absl::StatusOr<v1::Experiment> ExperimentOf(const TrainOptions& options);
// Whether the options name a task instead of an experiment.
bool NamesTask(const TrainOptions& options);

// If the algorithm reads neither f nor G of its text task: leaves them out of the task's observations, so that actors
// do not compute them and rows do not carry them. Not for a run that pre-trains, whose dataset may have them.
void LeaveOutModel(v1::Experiment* experiment);

// What a verb of datacom-tools prints on standard output. That is the message of the error, too: INVALID_ARGUMENT for
// its exit code 2, INTERNAL for any other. What it says on standard error passes through.
absl::StatusOr<std::string> ToolOutput(std::vector<std::string> words);

// One line that says how well f and G of the run's task predict its simulator, for an algorithm that reads them. Empty
// for other algorithms, or if it cannot be measured.
std::string ModelFitLine(const std::string& experiment_file);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_LOAD_TASK_H_
// SPDX-License-Identifier: Apache-2.0
