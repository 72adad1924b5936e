// Decides what to do when a role's process ends: restart it, leave it ended, or end the run.
//
// Only decides: it starts and stops no process. Not thread-safe.
#ifndef DATACOM_DEPLOY_CLI_SUPERVISE_H_
#define DATACOM_DEPLOY_CLI_SUPERVISE_H_

#include <chrono>
#include <deque>
#include <map>
#include <string>

#include "common/base/clock.h"

namespace datacom::cli {

enum class Role { kReplay, kLearner, kActor, kEvaluator };
const char* RoleName(Role role);

class RestartPolicy {
 public:
  enum class Action {
    kRestart,   // start it again, not before Decision::at
    kRest,      // leave it ended: an actor or evaluator that exits with 0 has finished its work
    kComplete,  // the learner exited with 0: the run is complete
    kGiveUp,    // end the run with Decision::exit_code, for Decision::reason
  };
  struct Decision {
    Action action = Action::kRestart;
    Clock::Time at{};
    int exit_code = 0;
    std::string reason;
  };

  static constexpr int kMaxRestarts = 5;
  static constexpr std::chrono::seconds kWindow{60};

  explicit RestartPolicy(const Clock* clock) : clock_(clock) {}

  // `process` ended with `exit_code` (128 + signal when killed). Gives up when one process would need more than
  // kMaxRestarts restarts within kWindow, and at once on exit code 2 (configuration). The first restart is immediate,
  // the second one within the window waits 100 ms, each further one twice as long as the one before.
  Decision OnExit(const std::string& process, Role role, int exit_code);

  int restarts() const { return restarts_; }

 private:
  const Clock* const clock_;
  std::map<std::string, std::deque<Clock::Time>> history_;  // restarts within the window, by process
  int restarts_ = 0;
};

// "exit code 3", "killed by signal 9".
std::string DescribeExit(int exit_code);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SUPERVISE_H_
