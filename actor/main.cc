// datacom-actor: acts (run) and evaluates (evaluate) for a run.
#include <string>

#include "actor/actor_process.h"
#include "common/base/machine.h"
#include "common/base/status.h"

namespace datacom::actor {
namespace {

constexpr char kEvaluate[] = "evaluate";

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
  role.serves = false;
  role.own = {{"--replay", &options.replay, "Replay service, host:port", RoleFlag::Is::kAddress},
              {"--learner", &options.learner, "Learner service, host:port", RoleFlag::Is::kAddress},
              {"--name", &options.name, "Name of this process, stable over restarts; default: the host name"},
              {"--envs", &options.environments, "Environments to step"},
              {"--stay", &options.stay,
               "Acting: when the run has all its rows, wait instead of ending, for a manager that restarts what ends"}};
  role.commands = {{"run", "Act until the run has all its rows (default)"},
                   {kEvaluate, "Play evaluations until the run is finished", "evaluator"}};
  role.plugin_parts = {PluginPart::kSimulator};
  role.run = [&](const std::string& command) { return Run(options, command == kEvaluate); };
  return RunRole(argc, argv, role);
}

}  // namespace
}  // namespace datacom::actor

int main(int argc, char** argv) { return datacom::actor::Main(argc, argv); }
// SPDX-License-Identifier: Apache-2.0
