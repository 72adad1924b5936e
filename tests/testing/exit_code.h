// Runs a part of a test in a process of its own. Blocks until that process ends.
#ifndef DATACOM_TESTS_TESTING_EXIT_CODE_H_
#define DATACOM_TESTS_TESTING_EXIT_CODE_H_

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace datacom::testing {

// Runs `child` in a fork and returns its exit code, or minus the signal that ended it.
inline int ExitCodeOf(const std::function<void()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    child();
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_EXIT_CODE_H_
// SPDX-License-Identifier: Apache-2.0
