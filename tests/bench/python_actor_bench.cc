// datacom-bench-python-actor ENVIRONMENT [ENVS [SECONDS]]: prints the steps per second of an actor whose environments
// are Python's (MODULE:CALLABLE, with DATACOM_PYTHON), with an untrained policy and without waiting for peers. The rule
// is D-ATACOM's safe map, or the policy alone where the environment has no control-affine model. python_actor.py
// compares it with a bare loop.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "actor/actor_metrics.h"
#include "actor/actor_setup.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "tests/testing/endless_actor_peers.h"

namespace datacom {
namespace {

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: datacom-bench-python-actor MODULE:CALLABLE [ENVS [SECONDS]]\n");
    return 2;
  }
  InitLog("bench");
  const uint32_t environments = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1;
  const double seconds = argc > 3 ? std::atof(argv[3]) : 2;
  v1::Experiment experiment = testing::ExperimentOf(std::string("python:") + argv[1]);
  const bool map = MakeTaskModel(experiment.task(), experiment.task_options())->dynamics->dims().q > 0;
  if (!map) experiment.set_algorithm("sac");
  testing::EndlessSession session(environments);
  testing::OneSnapshot subscriber(testing::SnapshotOf(experiment, map ? "safe_map" : "gaussian_policy"));
  const std::unique_ptr<Metrics> metrics = Metrics::Start({"actor", "bench", experiment.task(), "datacom", ""}).value();
  actor::ActorMetrics series(metrics.get());
  const auto now = [] { return std::chrono::steady_clock::now(); };
  auto begin = now();
  actor::Rollout::Options options;
  options.stop = [&] { return std::chrono::duration<double>(now() - begin).count() > seconds; };
  const auto rollout =
      actor::Rollout::Make(actor::MakeParts(experiment).value(), &session, &subscriber, &series, options).value();
  begin = now();
  const absl::Status status = rollout->Run();
  if (!absl::IsCancelled(status)) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("%.1f\n",
              static_cast<double>(session.acknowledged(0)) / std::chrono::duration<double>(now() - begin).count());
  return 0;
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) { return datacom::Main(argc, argv); }
// SPDX-License-Identifier: Apache-2.0
