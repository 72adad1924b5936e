// The flags that replay, actor and learner share, and the body of their main. Main thread only.
#ifndef DATACOM_COMMON_RPC_ROLE_FLAGS_H_
#define DATACOM_COMMON_RPC_ROLE_FLAGS_H_

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/plugins.h"
#include "common/base/stall.h"

namespace CLI {
class App;
}

namespace datacom {

struct RoleFlags {
  std::string experiment_file;  // only roles that serve one run
  std::string run_id;
  std::string tls;  // folder for LoadSecurity and /metrics; empty: no TLS
  std::string listen = "127.0.0.1:0", address_file;
  std::string health_listen;                         // only roles whose own server may use TLS
  std::string metrics_listen, metrics_address_file;  // empty: no /metrics
  double stall_minutes = kStallMinutes;              // ends the process when its loop hangs for so long
  // RunRole reads these two.
  std::string healthcheck;
  bool die_with_parent = false;
};

// A subcommand. Without one on the command line a role does what its first command does.
struct RoleCommand {
  const char* name;
  const char* help;
  std::string role = "";  // replaces the name in log lines
};

// INVALID_ARGUMENT naming the first flag without a value.
absl::Status RequireFlags(std::initializer_list<std::pair<const char*, const std::string*>> flags);

struct Role {
  const char* program;  // "datacom-replay"
  const char* about;    // first line of the help
  std::string name;     // in log lines
  RoleFlags* flags;     // not owned; the values are the defaults
  bool serves = true;   // one run: adds --experiment and --health-listen, and --healthcheck uses --tls
  std::function<void(CLI::App*)> own = {};  // adds the flags that only this role has; empty: none
  std::vector<RoleCommand> commands = {};
  std::vector<PluginPart> plugin_parts = {};
  // Blocks until the role ends. command: empty if the role has none.
  std::function<absl::Status(const std::string& command)> run;
};

// Checks the processor, parses the flags, answers --version and --healthcheck, or else sets up the log and the signals,
// loads the plug-ins, runs the role and logs its error. Returns the exit code.
int RunRole(int argc, char** argv, const Role& role);

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_ROLE_FLAGS_H_
// SPDX-License-Identifier: Apache-2.0
