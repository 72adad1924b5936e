#include "deploy/cli/supervise.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::cli {

const char* RoleName(Role role) {
  switch (role) {
    case Role::kReplay:
      return "replay";
    case Role::kLearner:
      return "learner";
    case Role::kActor:
      return "actor";
    case Role::kEvaluator:
      return "evaluator";
  }
  return "";
}

std::string DescribeExit(int exit_code) {
  return exit_code > 128 ? absl::StrCat("killed by signal ", exit_code - 128) : absl::StrCat("exit code ", exit_code);
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
    decision.reason = absl::StrCat(process, " refuses its configuration (exit code 2)");
    return decision;
  }
  const Clock::Time now = clock_->Now();
  std::deque<Clock::Time>& recent = history_[process];
  while (!recent.empty() && now - recent.front() > kWindow) recent.pop_front();
  if (static_cast<int>(recent.size()) >= kMaxRestarts) {
    decision.action = Action::kGiveUp;
    decision.exit_code = kExitFailure;
    decision.reason = absl::StrCat(process, " died again (", DescribeExit(exit_code), ") after ", recent.size(),
                                   " restarts within ", kWindow.count(), " s");
    return decision;
  }
  decision.at = now;
  if (!recent.empty()) decision.at += std::chrono::milliseconds(100 << (recent.size() - 1));
  decision.reason = DescribeExit(exit_code);
  recent.push_back(now);
  ++restarts_;
  return decision;
}

}  // namespace datacom::cli
