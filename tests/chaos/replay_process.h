// The real replay process in a test's folder: start, signal, query. Not thread-safe. Start and End block.
#ifndef DATACOM_TESTS_CHAOS_REPLAY_PROCESS_H_
#define DATACOM_TESTS_CHAOS_REPLAY_PROCESS_H_

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/base/files.h"
#include "common/config/experiment.h"
#include "common/rpc/channel.h"
#include "common/rpc/insert_session.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"

namespace datacom::testing {

// The row schema of cartpole with the algorithm datacom.
inline RowSchema CartPoleSchema() {
  return RowSchema::For(/*obs_dim=*/5, /*action_dim=*/1, *ActingRuleColumns("safe_map", /*action_dim=*/1));
}

class ReplayProcess {
 public:
  // Runs the experiment with run id "run"; `variables` ("NAME=value") are added to its environment.
  ReplayProcess(const std::string& folder, const v1::Experiment& experiment, std::vector<std::string> variables = {})
      : folder_(folder), variables_(std::move(variables)) {
    EXPECT_THAT(WriteFileAtomically(folder_ + "/experiment.textproto", PrintExperiment(ResolveExperiment(experiment))),
                IsOk());
  }
  ~ReplayProcess() {
    if (pid_ > 0) End(SIGKILL);
  }

  // Starts on the previous address, if there is one.
  void Start() {
    std::filesystem::remove(folder_ + "/address");
    pid_ = Spawn({"--experiment", folder_ + "/experiment.textproto", "--run-id", "run", "--dir", folder_ + "/replay",
                  "--address-file", folder_ + "/address", "--listen", address_.empty() ? "127.0.0.1:0" : address_,
                  "--die-with-parent", "--stall-minutes", stall_minutes_});
    bool ended = false;
    ASSERT_TRUE(WaitUntil([&] { return ended || std::filesystem::exists(folder_ + "/address"); },
                          [&] {
                            if (!ended) ended = ::waitpid(pid_, nullptr, WNOHANG) != 0;
                            std::this_thread::yield();
                          }))
        << "the replay does not start";
    if (ended) pid_ = 0;
    ASSERT_FALSE(ended) << "the replay ended";
    address_ = *ReadFile(folder_ + "/address");
    address_.pop_back();
  }
  // Sends the signal and returns the wait status.
  int End(int signal) {
    ::kill(pid_, signal);
    return Wait(&pid_);
  }
  // The wait status once it has ended by itself; nothing if patience ends first.
  std::optional<int> AwaitEnd() {
    int status = 0;
    const auto has_ended = [&] {
      if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) != 0) pid_ = 0;
      return pid_ == 0;
    };
    if (!WaitUntil(has_ended, [] { std::this_thread::yield(); })) return std::nullopt;
    return status;
  }
  // The exit code of `datacom-replay --healthcheck`.
  int HealthCheck() {
    pid_t pid = Spawn({"--healthcheck", address_});
    return WEXITSTATUS(Wait(&pid));
  }
  void set_stall_minutes(const std::string& minutes) { stall_minutes_ = minutes; }  // from the next Start on
  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }

 private:
  pid_t Spawn(std::vector<std::string> args) {
    args.insert(args.begin(), DATACOM_REPLAY_BINARY);
    std::vector<char*> argv, environment;
    for (std::string& arg : args) argv.push_back(arg.data());
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    for (std::string& variable : variables_) environment.push_back(variable.data());
    argv.push_back(nullptr);
    environment.push_back(nullptr);
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, DATACOM_REPLAY_BINARY, nullptr, nullptr, argv.data(), environment.data()), 0);
    return pid;
  }
  static int Wait(pid_t* pid) {
    int status = 0;
    ::waitpid(*pid, &status, 0);
    *pid = 0;
    return status;
  }

  const std::string folder_;
  std::vector<std::string> variables_;
  std::string address_, stall_minutes_ = "10";
  pid_t pid_ = 0;
};

// The kilobytes in a line of /proc/PID/status.
inline int64_t MemoryKilobytes(pid_t pid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoll(line.substr(name.size() + 1));
  }
  return -1;
}

// An actor with `environments` environments and an open stream.
inline std::unique_ptr<InsertSession> JoinReplay(const std::shared_ptr<grpc::Channel>& channel, uint32_t environments,
                                                 uint64_t fingerprint) {
  InsertSession::Options options;
  options.channel = channel;
  options.run_id = "run";
  options.actor = "actor-0";
  options.incarnation = 7;
  options.environments = environments;
  auto session = InsertSession::Register(options);
  EXPECT_THAT(session, IsOk());
  if (!session.ok()) return nullptr;
  EXPECT_THAT((*session)->Start(fingerprint), IsOk());
  return std::move(*session);
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_CHAOS_REPLAY_PROCESS_H_
// SPDX-License-Identifier: Apache-2.0
