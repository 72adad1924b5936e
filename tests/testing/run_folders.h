// Makes a learner's run folder with random parameters, for tests of programs that play policies.
#ifndef DATACOM_TESTS_TESTING_RUN_FOLDERS_H_
#define DATACOM_TESTS_TESTING_RUN_FOLDERS_H_

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/config/experiment.h"
#include "common/tasks/task.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/snapshots.h"

namespace datacom::testing {

// A D-ATACOM policy of a task with random parameters.
inline Snapshot SafePolicy(const TaskModel& model, uint32_t member, uint64_t seed) {
  const ControlAffineDims dims = model.dynamics->dims();
  Snapshot snapshot = SafeMapSnapshot(dims.obs, dims.action, dims.q + dims.x, {16, 16}, seed);
  snapshot.task = model.spec.name;
  snapshot.member = member;
  snapshot.member_seed = 40 + member;
  return snapshot;
}

// The last update of an epoch of MakeRunFolder: epochs have 1,000 steps, and an update comes with each row after these
// of the first.
inline uint64_t LastUpdateOf(uint32_t epoch) { return epoch == 0 ? 0 : 1000 * (uint64_t{epoch} - 1); }

// Makes <temporary>/<name>, after removing it, with two members of `task` at each of `epochs`. Its policies are
// D-ATACOM's, whatever the algorithm.
inline std::string MakeRunFolder(const std::string& name, const std::string& task, const std::vector<uint32_t>& epochs,
                                 uint32_t horizon, const std::string& algorithm = "datacom") {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "policies");
  v1::Experiment experiment;
  experiment.set_name(task + "/test");
  experiment.set_task(task);
  experiment.set_algorithm(algorithm);
  experiment.mutable_task_options()->set_horizon(horizon);
  experiment.mutable_run()->set_seed(5);
  experiment.mutable_run()->set_env_steps(20000);
  experiment.mutable_run()->set_steps_per_epoch(1000);
  experiment.mutable_replay()->set_min_size(1000);
  for (const uint64_t seed : {40, 41}) experiment.add_members()->set_seed(seed);
  experiment = ResolveExperiment(experiment);
  std::ofstream((folder / "experiment.textproto").string()) << PrintExperiment(experiment);
  const TaskModel model = MakeTaskModel(task, experiment.task_options()).value();
  for (const uint32_t epoch : epochs) {
    char file[32];
    std::snprintf(file, sizeof file, "epoch_%04u.snapshot", epoch);
    std::vector<Snapshot> policies = {SafePolicy(model, 0, 10 * epoch), SafePolicy(model, 1, 10 * epoch + 1)};
    for (Snapshot& policy : policies) policy.version.update = LastUpdateOf(epoch);
    EXPECT_THAT(WriteSnapshotFile((folder / "policies" / file).string(), policies), IsOk());
  }
  return folder.string();
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_RUN_FOLDERS_H_
// SPDX-License-Identifier: Apache-2.0
