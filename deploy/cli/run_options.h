// The command-line options of a run, declared once: every verb that has one of them has it with the same name, help and
// check. `train` and `sweep` take all of them, `config` those that change the experiment.
//
// The options write to `options`, which must live as long as the verb.
#ifndef DATACOM_DEPLOY_CLI_RUN_OPTIONS_H_
#define DATACOM_DEPLOY_CLI_RUN_OPTIONS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "deploy/cli/batch.h"
#include "deploy/cli/train_plan.h"

namespace datacom::cli {

// --seeds, --steps, --set, --lockstep and --device.
void AddExperimentOptions(CLI::App* verb, TrainOptions* options);

// --algorithm.
void AddAlgorithmOption(CLI::App* verb, TrainOptions* options);

// --actors, --envs, --run-dir, --max-hours, --stall-minutes, --tls and --quiet.
void AddProcessOptions(CLI::App* verb, TrainOptions* options);

// Options of the backends slurm, list and kubernetes.
void AddBatchOptions(CLI::App* verb, BatchOptions* options);

// Refuses options that only other verbs have: wrong usage, with a reason that says what to type instead. The verb's
// help does not list them.
void RefuseOptions(CLI::App* verb, const std::vector<std::string>& flags, const std::string& reason);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_RUN_OPTIONS_H_
// SPDX-License-Identifier: Apache-2.0
