// A replay that accepts every row at once and keeps none, and a learner with one snapshot, so that an actor never
// waits.
#ifndef DATACOM_TESTS_TESTING_ENDLESS_ACTOR_PEERS_H_
#define DATACOM_TESTS_TESTING_ENDLESS_ACTOR_PEERS_H_

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/config/experiment.h"
#include "common/nn/snapshot.h"
#include "common/rpc/insert_session.h"
#include "common/rpc/learner_client.h"
#include "common/tasks/task.h"
#include "tests/testing/snapshots.h"

namespace datacom::testing {

// Accepts every row and keeps none.
class EndlessSession : public InsertSession {
 public:
  // One member with `lanes` lanes.
  explicit EndlessSession(uint32_t lanes) {
    v1::Assignment* assignment = registration_.mutable_assignment();
    assignment->set_number(1);
    assignment->add_members()->set_lanes(lanes);
    assignment_ = std::make_shared<const v1::Assignment>(*assignment);
  }
  const v1::RegisterReply& registration() const override { return registration_; }
  absl::Status Start(uint64_t) override { return absl::OkStatus(); }
  std::shared_ptr<const v1::Assignment> assignment() const override { return assignment_; }
  void Release(uint32_t, uint64_t) override {}
  Allowance allowance(uint32_t) const override { return {uint64_t{1} << 40, rows_, 0}; }
  absl::Status Append(uint32_t, uint32_t rows, std::string /*columns*/, const std::string& /*fault*/) override {
    ++chunks_;
    rows_ += rows;
    return absl::OkStatus();
  }
  void Send() override {}
  uint64_t acknowledged(uint32_t) const override { return rows_; }
  Changes& changes() override { return changes_; }
  absl::Status Flush(std::chrono::milliseconds) override { return absl::OkStatus(); }
  bool finished() const override { return false; }
  absl::Status status() const override { return absl::OkStatus(); }
  std::string waiting_for() const override { return ""; }
  uint64_t chunks() const { return chunks_; }

 private:
  v1::RegisterReply registration_;
  std::shared_ptr<const v1::Assignment> assignment_;
  uint64_t rows_ = 0, chunks_ = 0;
  Changes changes_;
};

class OneSnapshot : public SnapshotSubscriber {
 public:
  explicit OneSnapshot(Snapshot snapshot) : snapshot_(std::make_shared<const Snapshot>(std::move(snapshot))) {}
  std::shared_ptr<const Snapshot> Latest(uint32_t) const override { return snapshot_; }
  void SetMembers(const std::vector<uint32_t>&) override {}
  Changes& changes() override { return changes_; }
  absl::Status status() const override { return absl::OkStatus(); }
  double age_seconds(uint32_t) const override { return 0; }
  uint64_t discarded() const override { return 0; }

 private:
  const std::shared_ptr<const Snapshot> snapshot_;
  Changes changes_;
};

// An experiment with D-ATACOM of a task of the register or of a task file.
inline v1::Experiment ExperimentOf(const std::string& task) {
  v1::Experiment experiment;
  experiment.set_task(task);
  experiment.set_algorithm("datacom");
  const absl::Status loaded = LoadTaskOf("", experiment.mutable_task(), experiment.mutable_task_options());
  if (!loaded.ok()) throw std::runtime_error(loaded.ToString());
  experiment.set_name(experiment.task());
  return ResolveExperiment(experiment);
}

// A snapshot of the paper's sizes with random weights, for D-ATACOM or another rule.
inline Snapshot SnapshotOf(const v1::Experiment& experiment, const std::string& rule = "safe_map") {
  const TaskModel model = MakeTaskModel(experiment.task(), experiment.task_options()).value();
  const ControlAffineDims dims = model.dynamics->dims();
  Snapshot snapshot = SnapshotForRule(rule, model.spec.seen_dim(), dims.action, dims.q + dims.x, {128, 128}, 1);
  snapshot.task = experiment.task();
  return snapshot;
}
inline Snapshot SnapshotOf(const std::string& task, const std::string& rule = "safe_map") {
  return SnapshotOf(ExperimentOf(task), rule);
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_ENDLESS_ACTOR_PEERS_H_
// SPDX-License-Identifier: Apache-2.0
