#include "deploy/cli/answers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/learner_client.h"
#include "common/rpc/replay_client.h"
#include "deploy/cli/run_folder.h"

namespace datacom::cli {
namespace {

absl::Status CheckRunId(const std::string& run_dir, const std::string& process, const std::string& answered) {
  const std::string own = ReadRunId(run_dir);
  if (own.empty() || answered == own) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(run_dir, " is run ", own, ", but the ", process, " at its address ",
                                                    ReadAddress(run_dir, process, "address"), " belongs to run ",
                                                    answered, "; this run does not listen there any more"));
}

}  // namespace

Answers Ask(const std::string& replay, const std::string& learner, const Security& security) {
  Answers answers;
  if (!replay.empty()) {
    if (auto info = GetReplayInfo(MakeChannel(replay, security), kAnswerDeadline); info.ok())
      answers.replay = *std::move(info);
  }
  if (!learner.empty()) {
    if (auto info = GetLearnerInfo(MakeChannel(learner, security), kAnswerDeadline); info.ok())
      answers.learner = *std::move(info);
  }
  return answers;
}

absl::StatusOr<Answers> AskRun(const std::string& run_dir, const Security& security) {
  Answers answers =
      Ask(ReadAddress(run_dir, "replay", "address"), ReadAddress(run_dir, "learner", "address"), security);
  if (answers.replay) RETURN_IF_ERROR(CheckRunId(run_dir, "replay", answers.replay->run_id()));
  if (answers.learner) RETURN_IF_ERROR(CheckRunId(run_dir, "learner", answers.learner->run_id()));
  return answers;
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
