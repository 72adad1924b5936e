// What is told of a run: tables of its newest records for people, and for programs one JSON object with the same keys
// for every run, null where something is not known (docs/operation.md, For programs). The functions block on the disk.
// Thread-safe.
#ifndef DATACOM_DEPLOY_CLI_SUMMARY_H_
#define DATACOM_DEPLOY_CLI_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/cli/answers.h"
#include "deploy/cli/progress.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {

// One line per member: state, steps, evaluation, cost, delta, seed; then their means. In a terminal narrower than the
// table its columns follow below each other; a width of 0 is none.
absl::StatusOr<std::string> FinalTable(const std::string& run_dir, int width = 0);

// What a run that does not run has repeated (RepeatedWork), and what a resume will repeat from the newest checkpoint.
// Empty for a run that has made no updates twice and will make none, or when its files do not tell.
std::string RepeatedWorkOf(const std::string& run_dir);

// One line per group of the runs in the folders (deploy/report/groups.h): mean and 95 % interval over the newest values
// of its members, from evaluation and over the whole training, and the inter-quartile mean of J.
absl::StatusOr<std::string> GroupTable(const std::vector<std::string>& folders, int width = 0);

// INVALID_ARGUMENT when a member has already made more than `env_steps` steps.
absl::Status CheckStepsLeft(const std::string& run_dir, uint64_t env_steps);

// A run of which a process has answered. view: of the answers, with its folder or address as the title.
nlohmann::json AnsweredRunJson(const ProgressView& view, const Answers& answers);

// A run of which no process answers, from its folder. "state" is complete, interrupted or "not started"; "members" are
// the newest rows of progress.csv. Errors of the experiment and of the records.
absl::StatusOr<nlohmann::json> RecordedRunJson(const std::string& run_dir);

// Prints one line on standard output.
void PrintJson(const nlohmann::json& json);

// Prints {"result": ...} of the folder, where `train` or `sweep` ends. A folder that cannot be read is told as
// {"error"}.
void PrintResult(const absl::StatusOr<nlohmann::json>& result);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SUMMARY_H_
// SPDX-License-Identifier: Apache-2.0
