// A child process: started with its output appended to a log, reaped without blocking.
//
// Not thread-safe; Start from the thread that lives longest: the kernel ties "die with the parent" to the starting
// thread. The child is the leader of its own process group (a Ctrl-C on the terminal reaches the parent alone, which
// then stops its children in order), reads /dev/null, and is killed by the kernel when the parent dies before it could
// say otherwise.
#ifndef DATACOM_DEPLOY_CLI_PROCESS_H_
#define DATACOM_DEPLOY_CLI_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace datacom::cli {

class Process {
 public:
  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // kills and reaps a child that still runs

  // NOT_FOUND naming the program when it is no executable file.
  absl::Status Start(const std::vector<std::string>& argv, const std::string& log_path);
  // Exit code once the child ended (128 + signal when it was killed); nothing while it runs or after it was told once.
  std::optional<int> Poll();
  void Signal(int signal);  // nothing when it does not run
  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

// The last `lines` lines of a file, each indented by two spaces; empty when it cannot be read.
std::string TailOfFile(const std::string& path, int lines);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_PROCESS_H_
