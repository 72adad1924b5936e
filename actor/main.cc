// datacom-actor: acts (run) and evaluates (evaluate) for a run.
#include <unistd.h>

#include <array>
#include <string>

#include "CLI/CLI.hpp"
#include "actor/actor_process.h"
#include "common/base/status.h"
#include "common/rpc/address.h"

namespace datacom::actor {
namespace {

// In a container or pod this is its own name.
std::string HostName() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "actor";
}

void Declare(CLI::App* app, ActorOptions* options, Role* role) {
  AddRoleFlags(app, options);
  app->add_option("--replay", options->replay, "Replay service, host:port")->check(Address(1));
  app->add_option("--learner", options->learner, "Learner service, host:port")->check(Address(1));
  app->add_option("--name", options->name, "Name of this process, stable over restarts; default: the host name");
  app->add_option("--envs", options->environments, "Environments to step")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app->require_subcommand(0, 1);
  app->add_subcommand("run", "Act until the run has all its rows (default)")->fallthrough();
  CLI::App* evaluate = app->add_subcommand("evaluate", "Play evaluations until the run is finished")->fallthrough();
  evaluate->callback([role] { role->name = "evaluator"; });
}

absl::Status Run(const ActorOptions& options, bool evaluate) {
  RETURN_IF_ERROR(RequireFlags({{"--learner", &options.learner}, {"--run-id", &options.run_id}}));
  if (evaluate) return RunEvaluator(options);
  RETURN_IF_ERROR(RequireFlags({{"--replay", &options.replay}}));
  return RunActor(options);
}

int Main(int argc, char** argv) {
  ActorOptions options;
  options.metrics_listen = "127.0.0.1:0";
  options.name = HostName();
  Role role;
  role.program = "datacom-actor";
  role.about = "Acts in environments for a run, evaluates its policies.";
  role.name = "actor";
  role.flags = &options;
  role.health_has_tls = false;
  role.declare = [&](CLI::App* app) { Declare(app, &options, &role); };
  role.run = [&] { return Run(options, role.name == "evaluator"); };
  return RunRole(argc, argv, role);
}

}  // namespace
}  // namespace datacom::actor

int main(int argc, char** argv) { return datacom::actor::Main(argc, argv); }
// SPDX-License-Identifier: Apache-2.0
