// The processes of one run on loopback: replay, learner, actors and one evaluator. Starts each once the addresses it
// needs are known, restarts it as RestartPolicy says, and stops all in the order that loses no data.
//
// Not thread-safe: one thread calls Tick and Drain. Tick never blocks; Drain waits for the processes.
#ifndef DATACOM_DEPLOY_CLI_CLUSTER_H_
#define DATACOM_DEPLOY_CLI_CLUSTER_H_

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/stall.h"
#include "deploy/cli/process.h"
#include "deploy/cli/supervise.h"

namespace datacom::cli {

class Cluster {
 public:
  struct Options {
    std::string bin;  // folder of the role binaries
    std::string run_dir;
    std::string run_id;
    std::string host = "127.0.0.1";  // where every role listens
    std::string tls;                 // passed to every role as --tls; empty: plain text
    uint64_t checkpoint_start = 0;   // start of the replay that the checkpoint of a resumed run names; 0: none
    int actors = 1;
    int environments = 16;                     // per actor
    std::chrono::seconds address_deadline{0};  // a started role must write its address file within this time
    double stall_minutes = kStallMinutes;      // a role ends itself when its loop has hung for this long
  };
  explicit Cluster(const Options& options);

  // NOT_FOUND naming the missing role binary.
  static absl::Status CheckBinaries(const std::string& bin);

  enum class State { kRunning, kComplete, kFailed };
  // Reaps and restarts processes, starts those that can start now, rewrites targets.json when an address changed.
  State Tick();
  // The run got further: earlier restarts were not in vain.
  void OnProgress() { policy_.OnProgress(); }
  const absl::Status& failure() const { return failure_; }  // once kFailed
  int failure_exit_code() const { return failure_exit_code_; }

  // SIGTERM to actors and evaluator, then the learner, then the replay; each group gets `grace` before SIGKILL. Then
  // targets.json is empty: Prometheus would take a run that has ended for one that cannot be reached.
  void Drain(std::chrono::milliseconds grace);

  // host:port, empty while unknown.
  std::string replay_address() const;
  std::string learner_address() const;
  int actors_running() const;
  int restarts() const { return policy_.restarts(); }
  // Returns the events since the last call, one sentence each: "actor-0 ended (killed by signal 9); restarting".
  std::vector<std::string> TakeEvents();

 private:
  struct Child {
    std::string name;
    Role role = Role::kActor;
    Process process;
    enum class Phase { kPending, kRunning, kResting } phase = Phase::kPending;
    Clock::Time start_at{};        // kPending: not before
    Clock::Time started_at{};      // kRunning
    std::string address, metrics;  // as last reported; a restarted process is told to listen there again
  };

  std::vector<std::string> Arguments(const Child& child) const;
  bool CanStart(const Child& child) const;
  absl::Status StartProcess(Child* child);
  State OnExit(Child* child, int exit_code);
  State Fail(const Child& child, const std::string& reason, int exit_code);
  void StopGroup(const std::vector<Role>& roles, std::chrono::milliseconds grace);
  void WriteTargets();
  std::string LogFile(const Child& child) const;

  const Options options_;
  const Clock& clock_ = Clock::Real();
  RestartPolicy policy_;
  std::deque<Child> children_;  // replay, learner, actors, evaluator
  std::vector<std::string> events_;
  std::string targets_;  // content written last
  absl::Status failure_;
  int failure_exit_code_ = 0;
};

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_CLUSTER_H_
// SPDX-License-Identifier: Apache-2.0
