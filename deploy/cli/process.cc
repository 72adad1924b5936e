#include "deploy/cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/spawn.h"
#include "common/base/status.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

constexpr int kExecFailed = 127;

// Runs in the forked child: system calls only.
[[noreturn]] void ExecuteInChild(char* const* argv, int log, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExecFailed);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  // This program's handlers would swallow signals meant for the role: restore the defaults before unblocking signals.
  for (const int number : {SIGINT, SIGTERM, SIGPIPE}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(argv[0], argv);
  ::_exit(kExecFailed);
}

}  // namespace

Process::~Process() {
  if (!running()) return;
  KillGroup();
  ::waitpid(pid_, nullptr, 0);
}

absl::Status Process::Start(const std::vector<std::string>& argv, const std::string& log_path) {
  if (::access(argv[0].c_str(), X_OK) != 0) return ErrnoStatus(errno, absl::StrCat("program ", argv[0]));
  // Not through a link, and no pipe is waited for: the run folder may be a stranger's.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int log = ::open(log_path.c_str(), kFlags, 0644);
  if (log < 0) {
    return ErrnoStatus(errno, absl::StrCat("open ", log_path, errno == ELOOP ? ", which may not be a link" : ""));
  }
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);  // no signal may reach the child before it restored the default actions
  const pid_t child = ::fork();
  if (child == 0) ExecuteInChild(arguments.data(), log, parent);
  const int error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::close(log);
  if (child < 0) return ErrnoStatus(error, absl::StrCat("start ", argv[0]));
  pid_ = child;
  ::setpgid(child, child);  // here, too: the child may not have run yet
  return absl::OkStatus();
}

std::optional<int> Process::Poll() {
  if (!running()) return std::nullopt;
  int state = 0;
  if (::waitpid(pid_, &state, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return ExitCodeOf(state);
}

void Process::Signal(int signal) {
  if (running()) ::kill(pid_, signal);
}

void Process::KillGroup() {
  if (running()) ::kill(-pid_, SIGKILL);
}

absl::StatusOr<std::string> OutputOf(std::vector<std::string> argv, int* code) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  Spawn spawn;
  posix_spawn_file_actions_adddup2(&spawn.files, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error = spawn.Start(argv, &child);
  ::close(ends[1]);
  std::string output;
  std::array<char, 1 << 16> block;
  ssize_t count = 0;
  while (error == 0 && ((count = ::read(ends[0], block.data(), block.size())) > 0 || (count < 0 && errno == EINTR))) {
    if (count > 0) output.append(block.data(), static_cast<size_t>(count));
  }
  ::close(ends[0]);
  if (error != 0) return CannotRun(argv[0], error);
  const int state = StateAtEnd(child);
  if (WIFSIGNALED(state) && WTERMSIG(state) == SIGINT) return absl::CancelledError("interrupted");
  *code = ExitCodeOf(state);
  return output;
}

std::optional<std::string> OutputOf(const std::string& command) {
  int code = 0;
  absl::StatusOr<std::string> output = OutputOf({"/bin/sh", "-c", command}, &code);
  return output.ok() && code == 0 ? std::optional<std::string>(*std::move(output)) : std::nullopt;
}

std::string TailOfFile(const std::string& path, int lines) {
  const absl::StatusOr<std::string> content = ReadFile(path);
  if (!content.ok()) return "";
  std::vector<std::string> all = absl::StrSplit(*content, '\n', absl::SkipEmpty());
  const size_t first = all.size() - std::min<size_t>(all.size(), lines);
  std::string tail;
  for (size_t i = first; i < all.size(); ++i) absl::StrAppend(&tail, "  ", all[i], "\n");
  return tail;
}

std::string DescribeExit(int exit_code) {
  return exit_code > 128 ? absl::StrCat("killed by signal ", exit_code - 128) : absl::StrCat("exit code ", exit_code);
}

std::string LastLines(const std::string& log) {
  return absl::StrCat("Its last lines (", log, "):\n", TailOfFile(log, 8));
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
