#include "tests/golden/formats/format_files.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "common/acting/policy_file.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/records/checkpoint.h"
#include "common/records/ledger.h"
#include "learner/run_records.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/datasets.h"
#include "tests/testing/manual_clock.h"

namespace datacom::golden {
namespace {

namespace fs = std::filesystem;

// Sizes of the files that are packed.
const std::map<std::string, size_t>& MappedFiles() {
  static const auto* const kSizes = new std::map<std::string, size_t>{{"replay/member_0.rows", 13344},
                                                                      {"replay/member_0.failures", 14368},
                                                                      {"replay/credit", 20480},
                                                                      {"wrapped.ring", 5680}};
  return *kSizes;
}

// Registers an actor and inserts `rows` rows.
absl::Status Act(replay::Store* store, const std::string& actor, uint64_t incarnation, uint32_t rows) {
  ASSIGN_OR_RETURN(const v1::RegisterReply registered, store->Register(actor, incarnation, 1));
  ASSIGN_OR_RETURN(const uint64_t stream, store->Connect(registered.session(), incarnation));
  v1::InsertReply reply;
  RETURN_IF_ERROR(store->Insert(registered.session(), stream,
                                replay::testing::MakeChunk(0, 0, replay::testing::SimpleRows(0, rows)), &reply));
  if (reply.rejections().empty()) return absl::OkStatus();
  return absl::InternalError(reply.rejections(0).message());
}

absl::Status WriteReplay(const std::string& folder) {
  ManualClock clock;
  {
    ASSIGN_OR_RETURN(const auto store,
                     replay::Store::Open(replay::testing::SmallSchema(), GoldenStore(folder, &clock)));
    RETURN_IF_ERROR(Act(store.get(), "actor-0", 7, 6));
    RETURN_IF_ERROR(Act(store.get(), "actor-1", 8, 3));
  }
  fs::remove(folder + "/lock");
  return absl::OkStatus();
}

// 200 records, of which the last 64 are kept.
absl::Status WriteRing(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto ring, replay::Ring::Open(GoldenRing(folder)));
  for (uint64_t number = 0; number < 200; ++number) {
    std::memcpy(ring->writable(number), &number, sizeof number);
    if (number % 8 == 7) RETURN_IF_ERROR(ring->Commit(number + 1));
  }
  ring->set_counter(0, 5);
  return absl::OkStatus();
}

Snapshot MakeSnapshot(uint32_t member) {
  Snapshot snapshot;
  snapshot.run_id = "run";
  snapshot.run_seed = 3;
  snapshot.member = member;
  snapshot.member_seed = 11 + member;
  snapshot.version = {2, 40};
  snapshot.task = "cartpole";
  snapshot.acting_rule = "safe_map";
  snapshot.arrays = {{"actor.mean.0.weight", {2, 1}, {0.5f, -1.25f}}, {"actor.mean.0.bias", {1}, {0.125f}}};
  snapshot.scalars = {{"atacom_gain", 60}, {"delta", 0.75}, {"risk_margin", 0.195}};
  return snapshot;
}

absl::Status WritePolicies(const std::string& folder) {
  RETURN_IF_ERROR(WriteSnapshotFile(folder + "/policies.snapshot", {MakeSnapshot(0), MakeSnapshot(1)}));
  Policy policy;
  policy.about.set_experiment("cartpole/datacom");
  policy.about.set_algorithm("datacom");
  policy.about.mutable_task_options()->set_horizon(250);
  policy.about.set_epoch(4);
  policy.about.set_build("1.0.0 golden");
  policy.snapshot = MakeSnapshot(1);
  return WritePolicyFile(folder + "/exported.policy", policy);
}

v1::EpochRecord MakeEpoch() {
  v1::EpochRecord epoch;
  epoch.set_epoch(1);
  epoch.set_env_steps(20);
  epoch.set_updates(10);
  epoch.set_wall_seconds(1.5);
  v1::MemberEpoch* member = epoch.add_members();
  member->set_train_episodes(2);
  member->set_train_return(20);
  member->set_train_max_violation(0.5);
  member->set_train_sum_cost(1.5);
  member->set_delta(0.75);
  member->set_alpha(0.25);
  member->set_critic_loss(0.0625);
  member->set_inserted(20);
  member->set_lanes(2);
  member->set_q_gap(std::nan(""));
  return epoch;
}

absl::Status WriteCheckpoint(const std::string& folder) {
  RETURN_IF_ERROR(MakeFolders(folder));
  Checkpoint checkpoint;
  checkpoint.learner.set_experiment("name: \"test\"\n");
  checkpoint.learner.set_run_id("run");
  checkpoint.learner.set_update(kCheckpointUpdate);
  checkpoint.learner.set_next_epoch(2);
  checkpoint.learner.set_last_epoch_update(10);
  checkpoint.learner.set_last_epoch_steps(20);
  checkpoint.learner.set_wall_seconds(1.5);
  v1::FileEnd* file = checkpoint.learner.add_files();
  file->set_path("progress.csv");
  file->set_bytes(512);
  file->set_sha256(std::string(64, '7'));
  *checkpoint.learner.add_pending() = MakeEpoch();
  v1::MemberTotals* totals = checkpoint.learner.add_totals();
  totals->set_episodes(2);
  totals->add_critic_losses(0.0625);
  checkpoint.algorithm = {{"delta", std::string("\0\0\x40\x3f", 4)}, {"policy.0.weight", "01234567"}};
  return CheckpointStore(folder).Save(checkpoint);
}

absl::Status WriteLedger(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto ledger, LedgerWriter::Open({folder, 1, 2, "run"}, {}));
  const float observation[] = {1, 2}, next[] = {3, 4};
  for (uint32_t step = 0; step < 2; ++step) {
    LedgerStep record{1, 0, 3, step, step == 0 ? -0.5f : 0.25f, 0, {0.5f, -0.125f}};
    record.check = StepCheck(observation, next, 2, 1, false);
    RETURN_IF_ERROR(ledger->AppendStep(0, record));
  }
  LedgerViolation violation{0,     0,  11, "actor-0", 1, 0, 3, 1, 2, 40, LedgerJudgement{0.75f, 0.5f, 0.0625f},
                            0.25f, {}, {}};
  violation.raw_action = {1, -1};
  violation.executed_action = {0.5f, -0.125f};
  RETURN_IF_ERROR(ledger->AppendViolation(violation));
  violation.judgement.reset();
  RETURN_IF_ERROR(ledger->AppendViolation(violation));
  return ledger->Flush(/*sync=*/false);
}

// progress.csv and episodes.csv, without the events of TensorBoard, which have times.
absl::Status WriteRecords(const std::string& folder) {
  {
    ASSIGN_OR_RETURN(const auto records, learner::RunRecords::Open({folder, "datacom", {0}, 10, {}, {}, {}}, {}));
    RETURN_IF_ERROR(records->AppendEpoch(MakeEpoch()));
    v1::Episode episode;
    episode.set_session(1);
    episode.set_episode(3);
    episode.set_last_row(10);
    episode.set_length(10);
    episode.set_discounted_return(9.5);
    episode.set_return_(10);
    episode.set_max_violation(0.25);
    episode.set_sum_cost(0.75);
    episode.set_violating_steps(3);
    episode.set_policy_update(4);
    RETURN_IF_ERROR(records->AppendEpisode(0, episode));
    RETURN_IF_ERROR(records->Flush(/*sync=*/true));
  }
  fs::remove_all(folder + "/tensorboard");
  fs::remove(folder + "/build.txt");
  return absl::OkStatus();
}

}  // namespace

const std::vector<std::string>& FormatFiles() {
  static const auto* const kFiles = new std::vector<std::string>{"checkpoints/40/algorithm.state",
                                                                 "checkpoints/40/learner.state",
                                                                 "checkpoints/40/state.sha256",
                                                                 "dataset/manifest.textproto",
                                                                 "dataset/member_0.rows",
                                                                 "dataset/member_1.rows",
                                                                 "episodes.csv",
                                                                 "exported.policy",
                                                                 "ledger/member_0.steps",
                                                                 "ledger/violations.csv",
                                                                 "policies.snapshot",
                                                                 "progress.csv",
                                                                 "replay/credit",
                                                                 "replay/member_0.failures",
                                                                 "replay/member_0.rows",
                                                                 "replay/sessions",
                                                                 "wrapped.ring"};
  return *kFiles;
}

absl::Status WriteFormats(const std::string& folder) {
  if (fs::exists(folder)) return absl::AlreadyExistsError(folder + " exists");
  RETURN_IF_ERROR(WriteRecords(folder));
  RETURN_IF_ERROR(WriteReplay(folder + "/replay"));
  RETURN_IF_ERROR(WriteRing(folder));
  RETURN_IF_ERROR(WritePolicies(folder));
  RETURN_IF_ERROR(WriteCheckpoint(folder + "/checkpoints"));
  RETURN_IF_ERROR(WriteLedger(folder));
  return testing::MakeDataset(folder + "/dataset", replay::testing::SmallSchema(), {4, 2});
}

absl::Status Pack(const std::string& folder) {
  for (const auto& [file, size] : MappedFiles()) {
    const fs::path path = fs::path(folder) / file;
    ASSIGN_OR_RETURN(const std::string content, ReadFile(path.string()));
    if (content.size() != size) return absl::InternalError(path.string() + " has another size than MappedFiles states");
    fs::resize_file(path, content.find_last_not_of('\0') + 1);
  }
  return absl::OkStatus();
}

absl::Status Unpack(const std::string& golden, const std::string& to) {
  fs::copy(golden, to, fs::copy_options::recursive);
  for (const auto& [file, size] : MappedFiles()) fs::resize_file(fs::path(to) / file, size);
  return absl::OkStatus();
}

v1::Experiment GoldenExperiment() {
  v1::Experiment experiment;
  experiment.set_name("test");
  experiment.set_task("cartpole");
  experiment.set_algorithm("datacom");
  experiment.mutable_run()->set_env_steps(1000);
  experiment.mutable_run()->set_steps_per_epoch(20);
  experiment.mutable_run()->set_checkpoint_updates(20);
  experiment.mutable_replay()->set_capacity(100);
  experiment.mutable_replay()->set_failure_capacity(20);
  experiment.mutable_replay()->set_min_size(10);
  experiment.mutable_schedule()->set_tolerance_steps(16);
  experiment.mutable_learner()->set_batch_size(8);
  experiment.mutable_learner()->set_failure_batch_size(3);
  experiment.mutable_hyper()->set_delta_warmup(15);
  experiment.add_members()->set_seed(0);
  return experiment;
}

replay::Options GoldenStore(const std::string& folder, const Clock* clock) {
  replay::Options options = replay::testing::StoreOptions(replay::testing::SmallOptions(1), folder, clock);
  options.limits.schedule.env_steps = 40;
  return options;
}

replay::Ring::Options GoldenRing(const std::string& folder) {
  replay::Ring::Options options;
  options.path = folder + "/wrapped.ring";
  options.run_id = "run";
  options.schema_fingerprint = 7;
  options.record_bytes = 8;
  options.kept = 64;
  options.guard = 8;
  return options;
}

}  // namespace datacom::golden
// SPDX-License-Identifier: Apache-2.0
