// A child process: its output is appended to a log, and it is reaped without blocking.
//
// Not thread-safe. Call Start from the thread that lives longest: when that thread ends, the kernel kills the child,
// unless the child asked for another signal (--die-with-parent). The child leads its own process group, so a Ctrl-C on
// the terminal reaches only the parent, which then stops its children in order. The child reads /dev/null.
#ifndef DATACOM_DEPLOY_CLI_PROCESS_H_
#define DATACOM_DEPLOY_CLI_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace datacom::cli {

class Process {
 public:
  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // kills and reaps a child that still runs

  // NOT_FOUND naming the program when it does not exist, PERMISSION_DENIED when it is not executable.
  absl::Status Start(const std::vector<std::string>& argv, const std::string& log_path);
  // The exit code once the child has ended (128 + signal when it was killed). Returned once; otherwise nothing.
  std::optional<int> Poll();
  void Signal(int signal);  // does nothing when the child does not run
  void KillGroup();         // SIGKILL to the child and those that it has started
  bool running() const { return pid_ > 0; }

 private:
  pid_t pid_ = -1;
};

// Runs a program to its end and returns its standard output; its standard error passes through. `code` is its exit code
// (128 + signal when it was killed). CANCELLED after a Ctrl-C.
absl::StatusOr<std::string> OutputOf(std::vector<std::string> argv, int* code);
// The standard output of a shell command; nothing when it fails. Blocks until it ends.
std::optional<std::string> OutputOf(const std::string& command);

// The last `lines` lines of a file, each indented by two spaces; empty when it cannot be read.
std::string TailOfFile(const std::string& path, int lines);
// "exit code 3", "killed by signal 9".
std::string DescribeExit(int exit_code);
// For the message of a child that has failed: "Its last lines (LOG):" and a few of them.
std::string LastLines(const std::string& log);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_PROCESS_H_
// SPDX-License-Identifier: Apache-2.0
