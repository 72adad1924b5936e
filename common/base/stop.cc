#include "common/base/stop.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>

#include "common/base/status.h"

namespace datacom {
namespace {

std::atomic<bool> stop_requested{false};
// Readable once a stop was requested; created on first use, never closed, written by the signal handler.
int EventFd() {
  static const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return fd;
}

void RequestStop() {
  if (stop_requested.exchange(true)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(EventFd(), &one, sizeof one);
}

void OnSignal(int number) {
  static std::atomic<bool> interrupted{false};
  if (number == SIGINT && interrupted.exchange(true)) ::_exit(kExitInterrupted);
  RequestStop();
}

}  // namespace

Stop& Stop::Process() {
  static Stop stop;
  return stop;
}

void Stop::InstallSignalHandlers() {
  EventFd();
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

bool Stop::requested() const { return stop_requested.load(std::memory_order_relaxed); }

void Stop::Request() { RequestStop(); }

bool Stop::WaitFor(std::chrono::milliseconds timeout) const {
  pollfd entry = {EventFd(), POLLIN, 0};
  ::poll(&entry, 1, static_cast<int>(timeout.count()));
  return requested();
}

void DieWithParent(int signal) {
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, signal);
  if (::getppid() != parent) ::raise(signal);  // the parent died before the request took effect
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
