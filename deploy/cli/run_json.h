// What programs are told of a run: one JSON object with the same keys for every run, null where something is not known
// (docs/operation.md, For programs). The functions block on the disk. Thread-safe.
#ifndef DATACOM_DEPLOY_CLI_RUN_JSON_H_
#define DATACOM_DEPLOY_CLI_RUN_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "deploy/cli/answers.h"
#include "deploy/cli/progress.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {

// A run of which a process has answered. view: of the answers, with its folder or address as the title.
nlohmann::json AnsweredRunJson(const ProgressView& view, const Answers& answers);

// A run of which no process answers, from its folder. "state" is complete, interrupted or "not started"; "members" are
// the newest rows of progress.csv. Errors of the experiment and of the records.
absl::StatusOr<nlohmann::json> RecordedRunJson(const std::string& run_dir);

// Prints one line on standard output, at once.
void PrintJson(const nlohmann::json& json);

// Prints {"result": ...} of the folder, where `train` or `sweep` ends. A folder that cannot be read is told as
// {"error"}.
void PrintResult(const absl::StatusOr<nlohmann::json>& result);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_RUN_JSON_H_
// SPDX-License-Identifier: Apache-2.0
