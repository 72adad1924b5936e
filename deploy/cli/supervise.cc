#include "deploy/cli/supervise.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "deploy/cli/process.h"

namespace datacom::cli {

void RunProgress::Observe(const std::optional<v1::ReplayInfo>& replay, const std::optional<v1::LearnerInfo>& learner) {
  Counts now = newest_;  // a service that does not answer has not moved
  if (replay) {
    now.rows = 0;
    for (const v1::MemberInfo& member : replay->members()) now.rows += member.inserted();
  }
  if (learner) {
    now.updates = learner->update() + learner->pretrain_update();
    now.evaluations_left = learner->pending_evaluations();
    now.signs_of_life = learner->signs_of_life();
  }
  const auto facts = [](const Counts& counts) {
    return std::tie(counts.rows, counts.updates, counts.evaluations_left, counts.signs_of_life);
  };
  if (facts(now) != facts(newest_)) ++changes_;
  newest_ = now;
  const bool later = now.updates > best_.updates;
  const bool evaluated = now.updates == best_.updates && now.evaluations_left < best_.evaluations_left;
  if (later || evaluated) best_.evaluations_left = now.evaluations_left;
  advances_ += later || evaluated || now.rows > best_.rows ? 1 : 0;
  best_.updates = std::max(best_.updates, now.updates);
  best_.rows = std::max(best_.rows, now.rows);
}

RestartPolicy::Decision RestartPolicy::OnExit(const std::string& process, Role role, int exit_code) {
  Decision decision;
  if (exit_code == kExitOk && role == Role::kLearner) {
    decision.action = Action::kComplete;
    return decision;
  }
  if (exit_code == kExitOk && role != Role::kReplay) {
    decision.action = Action::kRest;
    return decision;
  }
  if (exit_code == kExitUsage) {
    decision.action = Action::kGiveUp;
    decision.exit_code = kExitUsage;
    decision.reason = absl::StrCat(process, " refuses to go on (exit code 2)");
    return decision;
  }
  const Clock::Time now = clock_->Now();
  std::deque<Clock::Time>& recent = history_[process];
  while (!recent.empty() && now - recent.front() > kWindow) recent.pop_front();
  int& without_progress = without_progress_[process];
  const bool fast = static_cast<int>(recent.size()) >= kMaxRestarts;
  if (fast || without_progress >= kMaxRestarts) {
    decision.action = Action::kGiveUp;
    decision.exit_code = kExitFailure;
    decision.reason = absl::StrCat(
        process, " died again (", DescribeExit(exit_code), ") after ", kMaxRestarts, " restarts ",
        fast ? absl::StrCat("within ", kWindow.count(), " s") : "without a new row, update or evaluation between them");
    return decision;
  }
  ++without_progress;
  decision.at = now;
  if (!recent.empty()) decision.at += std::chrono::milliseconds(100 << (recent.size() - 1));
  decision.reason = DescribeExit(exit_code);
  recent.push_back(now);
  ++restarts_;
  return decision;
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
