// Stopping: SIGINT and SIGTERM request a drain. A second SIGINT ends the process at once with exit code 75. Further
// SIGTERMs change nothing, because a role gets two when its whole process tree is terminated: one from outside and one
// from `datacom train`; whoever has no more patience sends SIGKILL. Thread-safe. Install once, early in main;
// requested() may be polled from anywhere, WaitFor blocks.
#ifndef DATACOM_COMMON_BASE_STOP_H_
#define DATACOM_COMMON_BASE_STOP_H_

#include <chrono>

namespace datacom {

class Stop {
 public:
  // The process-wide instance, fed by signals after InstallSignalHandlers().
  static Stop& Process();
  static void InstallSignalHandlers();

  bool requested() const;
  void Request();
  // Waits up to `timeout`; returns true when a stop was requested. A signal wakes it.
  bool WaitFor(std::chrono::milliseconds timeout) const;
};

// Makes the kernel send `signal` to this process when its parent dies, so that a killed launcher leaves no orphans.
void DieWithParent(int signal);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_STOP_H_
// SPDX-License-Identifier: Apache-2.0
