// What a run folder's progress.csv says, for people: the newest row of each member.
#ifndef DATACOM_DEPLOY_CLI_SUMMARY_H_
#define DATACOM_DEPLOY_CLI_SUMMARY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace datacom::cli {

// One line a member: seed, steps, evaluation, violation, cost, delta, status; then their means.
absl::StatusOr<std::string> FinalTable(const std::string& run_dir);

// INVALID_ARGUMENT when a member has already made more than `env_steps` steps.
absl::Status CheckStepsLeft(const std::string& run_dir, uint64_t env_steps);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SUMMARY_H_
