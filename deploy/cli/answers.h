// What the replay and the learner of a run answer when they are asked once. The functions block, up to kAnswerDeadline
// for each of the two. Thread-safe.
#ifndef DATACOM_DEPLOY_CLI_ANSWERS_H_
#define DATACOM_DEPLOY_CLI_ANSWERS_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/security.h"
#include "datacom/v1/learner.pb.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::cli {

inline constexpr std::chrono::milliseconds kAnswerDeadline{3000};

struct Answers {
  std::optional<v1::ReplayInfo> replay;  // nothing: no answer
  std::optional<v1::LearnerInfo> learner;
};

// An empty address is not asked.
Answers Ask(const std::string& replay, const std::string& learner, const Security& security);

// Asks at the addresses in the run folder. FAILED_PRECONDITION when another run answers: the port of a run that has
// ended may belong to another one now.
absl::StatusOr<Answers> AskRun(const std::string& run_dir, const Security& security);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_ANSWERS_H_
// SPDX-License-Identifier: Apache-2.0
