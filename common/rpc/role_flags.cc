#include "common/rpc/role_flags.h"

#include <csignal>
#include <cstdio>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/flag_checks.h"
#include "common/base/log.h"
#include "common/base/machine.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/base/version.h"
#include "common/rpc/channel.h"

namespace datacom {
namespace {

constexpr std::chrono::milliseconds kHealthDeadline{3000};  // below the 4 s that the manifests give a probe

absl::Status AnswerHealth(const Role& role) {
  ASSIGN_OR_RETURN(const Security security, LoadSecurity(role.serves ? role.flags->tls : ""));
  return CheckHealth(role.flags->healthcheck, kHealthDeadline, security);
}

void AddShared(CLI::App* app, RoleFlags* flags) {
  app->add_option("--run-id", flags->run_id, "Id of the run; all its processes must have the same");
  app->add_option("--tls", flags->tls,
                  "Folder with ca.crt, tls.crt, tls.key and token: use mutual TLS, also for /metrics, and send the "
                  "run's token in each call")
      ->check(NotEmpty);
  app->add_option("--listen", flags->listen, "Address to listen on; port 0 picks one")
      ->capture_default_str()
      ->check(Address(0));
  app->add_option("--address-file", flags->address_file, "File to write the bound address to");
  app->add_option("--metrics-listen", flags->metrics_listen, "Address of /metrics; port 0 picks one; empty: none")
      ->capture_default_str()
      ->check(Address(0));
  app->add_option("--metrics-address-file", flags->metrics_address_file, "File to write the address of /metrics to");
  app->add_option("--stall-minutes", flags->stall_minutes, kStallHelp)->capture_default_str()->check(AboveZero);
  app->add_option("--healthcheck", flags->healthcheck, "Check whether the server at this address serves, then exit")
      ->check(Address(1));
  app->add_flag("--die-with-parent", flags->die_with_parent, "Stop when the process that started this one dies");
}

void AddServed(CLI::App* app, RoleFlags* flags) {
  app->add_option("--experiment", flags->experiment_file, "Resolved experiment, a .textproto file");
  app->add_option("--health-listen", flags->health_listen,
                  "Additional address that answers health checks without TLS, for probes; default: none")
      ->check(Address(0));
}

void Declare(CLI::App* app, const Role& role) {
  if (role.serves) AddServed(app, role.flags);
  AddShared(app, role.flags);
  if (role.own) role.own(app);
  if (!role.commands.empty()) app->require_subcommand(0, 1);
  for (const RoleCommand& command : role.commands) app->add_subcommand(command.name, command.help)->fallthrough();
}

}  // namespace

absl::Status RequireFlags(std::initializer_list<std::pair<const char*, const std::string*>> flags) {
  for (const auto& [name, value] : flags) {
    if (value->empty()) return absl::InvalidArgumentError(absl::StrCat(name, " is missing; --help lists the flags"));
  }
  return absl::OkStatus();
}

int RunRole(int argc, char** argv, const Role& role) {
  PrepareOutput();
  std::string message;
  if (!CheckProcessor(&message)) {
    std::fprintf(stderr, "%s: %s\n", role.program, message.c_str());
    return kExitFailure;
  }
  CLI::App app(role.about, role.program);
  app.set_version_flag("--version", absl::StrCat(role.program, " ", BuildName()));
  Declare(&app, role);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return RunWatched([&] { return app.exit(error) == 0 ? kExitOk : kExitUsage; });
  }
  if (!role.flags->healthcheck.empty()) {
    const absl::Status health = AnswerHealth(role);
    if (!health.ok()) std::fprintf(stderr, "%s: %s\n", role.program, health.ToString().c_str());
    return health.ok() ? kExitOk : kExitFailure;  // Docker gives other codes no meaning
  }
  EndWithoutMemory(kExitFailure);  // a later start may have more
  RaiseOpenFileLimit();
  if (const absl::Status limits = CheckProcessLimits(); !limits.ok()) {
    std::fprintf(stderr, "%s: %s\n", role.program, limits.ToString().c_str());
    return ExitCode(limits);
  }
  const RoleCommand* command = role.commands.empty() ? nullptr : &role.commands.front();
  for (const RoleCommand& one : role.commands) {
    if (app.got_subcommand(one.name)) command = &one;
  }
  InitLog(command == nullptr || command->role.empty() ? role.name : command->role);
  Stop::InstallSignalHandlers();
  if (role.flags->die_with_parent) DieWithParent(SIGTERM);
  absl::Status status = LoadPlugins(role.plugin_parts);
  if (status.ok()) status = role.run(command == nullptr ? "" : command->name);
  if (absl::IsCancelled(status)) {
    spdlog::info("stopped: {}", std::string(status.message()));
  } else if (!status.ok()) {
    spdlog::error("{}", status.ToString());
  }
  return ExitCode(status);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
