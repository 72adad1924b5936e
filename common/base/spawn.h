// Another program, started with posix_spawn: how its open files and signals come about is the caller's part.
#ifndef DATACOM_COMMON_BASE_SPAWN_H_
#define DATACOM_COMMON_BASE_SPAWN_H_

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace datacom {

struct Spawn {
  Spawn() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~Spawn() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  // Starts argv[0], found on the PATH, with this process's environment. Returns 0, or the errno of why not.
  int Start(std::vector<std::string> argv, pid_t* child) const {
    std::vector<char*> raw;
    for (std::string& argument : argv) raw.push_back(argument.data());
    raw.push_back(nullptr);
    return posix_spawnp(child, raw[0], &files, &attributes, raw.data(), environ);
  }
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

// Waits for a child's end, also after interruptions. Returns its state (see wait(2)).
inline int StateAtEnd(pid_t child) {
  int state = 0;
  while (::waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return state;
}

// As a shell's $?: 128 + the signal that ended it.
inline int ExitCodeOf(int state) { return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state); }

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_SPAWN_H_
// SPDX-License-Identifier: Apache-2.0
