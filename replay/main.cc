// datacom-replay: serves the replay of one run folder until it is stopped, or until the run is finished.
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/machine.h"
#include "common/base/stall.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "common/rpc/role_flags.h"
#include "datacom/v1/experiment.pb.h"
#include "replay/replay_service.h"
#include "replay/settings.h"
#include "replay/starts.h"

namespace datacom::replay {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::milliseconds kDrainGrace{3000};

struct Flags : RoleFlags {
  std::string folder, checkpoint_start;
  bool end_with_run = false;
};

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const Flags& flags, const v1::Experiment& experiment) {
  ASSIGN_OR_RETURN(ReplaySetup setup, SetUp(experiment));
  setup.options.run_id = flags.run_id;
  setup.options.folder = flags.folder;
  setup.options.start = DrawStart();
  setup.options.end_with_run = flags.end_with_run;
  if (!flags.checkpoint_start.empty() && !absl::SimpleAtoi(flags.checkpoint_start, &setup.options.checkpoint_start)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--checkpoint-start: \"", flags.checkpoint_start, "\" is not a number"));
  }
  return Store::Open(setup.schema, setup.options);
}

// CANCELLED: stopped before the run was complete.
absl::Status Serve(const Flags& flags) {
  RETURN_IF_ERROR(
      RequireFlags({{"--experiment", &flags.experiment_file}, {"--run-id", &flags.run_id}, {"--dir", &flags.folder}}));
  if (!FileExists(flags.experiment_file))
    return absl::InvalidArgumentError(absl::StrCat("--experiment: no such file: ", flags.experiment_file));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadExperiment(flags.experiment_file));
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenStore(flags, experiment));
  if (store->WasFinished()) {
    spdlog::info("the run was finished before; nothing to serve run={} folder={}", flags.run_id, flags.folder);
    return absl::OkStatus();
  }
  ServerOptions server_options;
  ASSIGN_OR_RETURN(server_options.security, LoadSecurity(flags.tls));
  ASSIGN_OR_RETURN(const std::unique_ptr<Metrics> metrics,
                   Metrics::Start({.role = "replay",
                                   .run = flags.run_id,
                                   .task = experiment.task(),
                                   .algorithm = experiment.algorithm(),
                                   .listen = flags.metrics_listen,
                                   .tls = flags.tls,
                                   .address_file = flags.metrics_address_file}));
  const Watchdog watchdog("the replay's store", Minutes(flags.stall_minutes));  // sees a hang of what follows, too
  ReplayService service(store.get(), metrics.get(), kTick);
  server_options.health_listen = flags.health_listen;
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::Start(flags.listen, {&service}, server_options));
  RETURN_IF_ERROR(WriteAddressFile(flags.address_file, server->address()));
  spdlog::info("replay serves address={} run={} folder={} members={}", server->address(), flags.run_id, flags.folder,
               experiment.members_size());
  // A store whose disk has failed accepts nothing more. The next process reads what is durable.
  // A hung commit leaves the mutex free, so health() does not show it.
  uint64_t group = 0;
  while (store->health().ok() && !(flags.end_with_run && service.finished()) && !Stop::Process().WaitFor(kTick)) {
    const uint64_t former = std::exchange(group, store->GroupInProgress());
    if (group == 0 || group != former) watchdog.Mark();
  }
  watchdog.Mark();  // stopping has the whole limit, also when the loop made no step
  server->SetServing(false);
  service.Drain();
  server->Shutdown(kDrainGrace);
  RETURN_IF_ERROR(store->health());
  const bool complete = store->Complete();
  spdlog::info("replay stopped complete={}", complete);
  return complete ? absl::OkStatus() : absl::CancelledError("stopped before the run was complete");
}

int Main(int argc, char** argv) {
  ReturnLargeBlocks(/*threshold_bytes=*/128 << 10);
  Flags flags;
  Role role;
  role.program = "datacom-replay";
  role.about = "The replay service of one run: keeps transitions, grants credit, serves draws.";
  role.name = "replay";
  role.flags = &flags;
  role.own = [&flags](CLI::App* app) {
    app->add_option("--dir", flags.folder, "Folder of the stored rows");
    app->add_option("--checkpoint-start", flags.checkpoint_start,
                    "Start of the replay that the newest checkpoint names. Refuses rows of another copy of the run");
    app->add_flag("--end-with-run", flags.end_with_run, "End, with exit code 0, when the learner has finished the run");
  };
  role.run = [&flags](const std::string&) { return Serve(flags); };
  return RunRole(argc, argv, role);
}

}  // namespace
}  // namespace datacom::replay

int main(int argc, char** argv) { return datacom::replay::Main(argc, argv); }
// SPDX-License-Identifier: Apache-2.0
