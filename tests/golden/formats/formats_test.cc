// Today's readers read the golden files, and today's writers write the same bytes. A format that changes fails here
// until its version grows and a new golden folder is added (docs/formats.md).
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/acting/policy_file.h"
#include "common/base/files.h"
#include "common/records/checkpoint.h"
#include "common/records/csv.h"
#include "common/records/dataset.h"
#include "common/records/ledger.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "replay/credit_file.h"
#include "tests/golden/formats/format_files.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::golden {
namespace {

using ::datacom::replay::testing::SmallSchema;
using ::datacom::testing::IsOk;
using ::datacom::testing::TemporaryFolder;
using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::Pair;

// The newest golden files, unpacked.
class FormatsTest : public ::testing::Test {
 protected:
  FormatsTest() : folder_(temporary_.path() + "/golden") {
    EXPECT_THAT(Unpack(std::string(kGoldenFolder) + "/" + kNewest, folder_), IsOk());
  }
  const TemporaryFolder temporary_;
  const std::string folder_;
  ManualClock clock_;
};

TEST_F(FormatsTest, AWrappedRingHoldsItsNewestRecords) {
  const auto ring = replay::Ring::OpenReadOnly(GoldenRing(folder_));
  ASSERT_THAT(ring, IsOk());
  EXPECT_EQ((*ring)->run_id(), "run");
  EXPECT_EQ((*ring)->cursor(), 200u);
  EXPECT_EQ((*ring)->first(), 136u);
  EXPECT_EQ((*ring)->kept(), 64u);
  EXPECT_EQ((*ring)->guard(), 8u);
  EXPECT_EQ((*ring)->counter(0), 5u);
  EXPECT_EQ((*ring)->counter(1), 0u);
  for (uint64_t number = 136; number < 200; ++number) EXPECT_EQ(At<uint64_t>((*ring)->record(number), 0), number);
  EXPECT_THAT(replay::Ring::Open(GoldenRing(folder_)), IsOk());
}

TEST_F(FormatsTest, AReplayContinuesWithItsRowsFailuresAndSessions) {
  const auto store = replay::Store::Open(SmallSchema(), GoldenStore(folder_ + "/replay", &clock_));
  ASSERT_THAT(store, IsOk());
  v1::ReplayInfo info;
  (*store)->Info(&info);
  EXPECT_EQ(info.members(0).inserted(), 9u);
  EXPECT_EQ(info.members(0).failures(), 3u);
  ASSERT_EQ(info.sessions_size(), 2);
  EXPECT_EQ(info.sessions(1).actor(), "actor-1");
  v1::RowRange range;
  ASSERT_THAT((*store)->ReadRange(0, 4, 8, &range), IsOk());
  EXPECT_EQ(range.row_count(), 4u);
  float observations[8];
  ASSERT_GE(range.columns().size(), sizeof observations);
  std::memcpy(observations, range.columns().data(), sizeof observations);
  EXPECT_THAT(observations, ElementsAre(4, -4, 5, -5, 0, 0, 1, -1))
      << "rows 4 and 5 of one session, 0 and 1 of another";
}

TEST_F(FormatsTest, AFailureIsKeptWithItsRowsNumber) {
  replay::Ring::Options options;
  options.path = folder_ + "/replay/member_0.failures";
  options.schema_fingerprint = SmallSchema().fingerprint();
  options.record_bytes = 8 + SmallSchema().stored_row_bytes();
  const auto ring = replay::Ring::OpenReadOnly(options);
  ASSERT_THAT(ring, IsOk());
  ASSERT_EQ((*ring)->cursor(), 3u);
  const char* newest = (*ring)->record(2);
  EXPECT_EQ(At<uint64_t>(newest, 0), 6u);
  EXPECT_EQ(At<float>(newest + 8, SmallSchema().offset("cost")), 0.25f);
  EXPECT_EQ(At<uint32_t>(newest + 8, SmallSchema().offset("session")), 2u);
  EXPECT_EQ(At<uint64_t>(newest + 8, SmallSchema().offset("sequence")), 0u);
}

TEST_F(FormatsTest, CreditAndSessionsHaveTheirNumbers) {
  const auto credit = replay::CreditFile::Read(folder_ + "/replay/credit");
  ASSERT_THAT(credit, IsOk());
  EXPECT_EQ(credit->run_id, "run");
  EXPECT_EQ(credit->slots, 1024u);
  EXPECT_EQ(credit->members, 1u);
  EXPECT_THAT(std::vector(credit->words.begin(), credit->words.begin() + 5),
              ElementsAre(14u, 6u, 7u, 3u, std::nullopt));
  const auto sessions = replay::SessionTable::Read(folder_ + "/replay");
  ASSERT_THAT(sessions, IsOk());
  EXPECT_EQ(sessions->run_id(), "run");
  EXPECT_EQ(sessions->next_session(), 3u);
  EXPECT_THAT((std::map<uint32_t, std::string>(sessions->actors().begin(), sessions->actors().end())),
              ElementsAre(Pair(1u, "actor-0"), Pair(2u, "actor-1")));
  ASSERT_EQ(sessions->living_size(), 2);
  EXPECT_EQ(sessions->living(1).session(), 2u);
  EXPECT_EQ(sessions->living(1).incarnation(), 8u);
  EXPECT_EQ(sessions->living(1).environments(), 1u);
  EXPECT_EQ(sessions->living(1).assignment().number(), 2u);
  ASSERT_EQ(sessions->living(1).assignment().members_size(), 1);
  EXPECT_EQ(sessions->living(1).assignment().members(0).lanes(), 1u);
  EXPECT_EQ(sessions->living(1).slot(), 1u);
}

void ExpectSnapshot(const Snapshot& snapshot, uint32_t member) {
  EXPECT_EQ(snapshot.run_id, "run");
  EXPECT_EQ(snapshot.run_seed, 3u);
  EXPECT_EQ(snapshot.member, member);
  EXPECT_EQ(snapshot.member_seed, 11 + member);
  EXPECT_EQ(snapshot.version, (SnapshotVersion{2, 40}));
  EXPECT_EQ(snapshot.task, "cartpole");
  EXPECT_EQ(snapshot.acting_rule, "safe_map");
  ASSERT_EQ(snapshot.arrays.size(), 2u);
  EXPECT_EQ(snapshot.arrays[0].name, "actor.mean.0.weight");
  EXPECT_THAT(snapshot.arrays[0].shape, ElementsAre(2u, 1u));
  EXPECT_THAT(snapshot.arrays[0].values, ElementsAre(0.5f, -1.25f));
  EXPECT_THAT(snapshot.arrays[1].values, ElementsAre(0.125f));
  EXPECT_THAT(snapshot.scalars, ElementsAre(Pair("atacom_gain", 60), Pair("delta", 0.75), Pair("risk_margin", 0.195)));
}

TEST_F(FormatsTest, SnapshotsHaveTheirArraysAndScalars) {
  const auto snapshots = ReadSnapshotFile(folder_ + "/policies.snapshot");
  ASSERT_THAT(snapshots, IsOk());
  ASSERT_EQ(snapshots->size(), 2u);
  ExpectSnapshot((*snapshots)[0], 0);
  ExpectSnapshot((*snapshots)[1], 1);
}

TEST_F(FormatsTest, APolicyFileNamesItsRun) {
  const auto policy = ReadPolicyFile(folder_ + "/exported.policy");
  ASSERT_THAT(policy, IsOk());
  EXPECT_EQ(policy->about.experiment(), "cartpole/datacom");
  EXPECT_EQ(policy->about.algorithm(), "datacom");
  EXPECT_EQ(policy->about.task_options().horizon(), 250u);
  EXPECT_EQ(policy->about.epoch(), 4u);
  EXPECT_EQ(policy->about.build(), "1.0.0 golden");
  ExpectSnapshot(policy->snapshot, 1);
}

TEST_F(FormatsTest, ACheckpointHasItsCountersAndTensors) {
  std::vector<std::string> notes;
  const auto checkpoint = CheckpointStore(folder_ + "/checkpoints").LoadNewest(&notes);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(notes, ElementsAre());
  EXPECT_EQ(checkpoint->learner.run_id(), "run");
  EXPECT_EQ(checkpoint->learner.update(), 40u);
  EXPECT_EQ(checkpoint->learner.next_epoch(), 2u);
  EXPECT_EQ(checkpoint->learner.last_epoch_steps(), 20u);
  EXPECT_EQ(checkpoint->learner.wall_seconds(), 1.5);
  EXPECT_EQ(checkpoint->learner.files(0).path(), "progress.csv");
  EXPECT_EQ(checkpoint->learner.files(0).bytes(), 512u);
  EXPECT_EQ(checkpoint->learner.pending(0).members(0).delta(), 0.75);
  EXPECT_EQ(checkpoint->learner.totals(0).critic_losses(0), 0.0625);
  EXPECT_THAT(checkpoint->algorithm,
              ElementsAre(Pair("delta", std::string("\0\0\x40\x3f", 4)), Pair("policy.0.weight", "01234567")));
  EXPECT_EQ(*ReadFile(folder_ + "/checkpoints/40/state.sha256"),
            "7f51c8b95c85a0a1ace1d18697e77f6f11cf2308a6c72a68fc156868bc5ffae9\n");
}

TEST_F(FormatsTest, TheLedgerHasItsViolationsAndTheirEpisode) {
  const auto violation = ReadViolation(folder_, 1), second = ReadViolation(folder_, 2);
  ASSERT_THAT(violation, IsOk());
  EXPECT_EQ(violation->seed, 11u);
  EXPECT_EQ(violation->actor, "actor-0");
  EXPECT_EQ(violation->env_steps, 2u);
  EXPECT_EQ(violation->policy_version, 40u);
  ASSERT_TRUE(violation->judgement.has_value());
  EXPECT_EQ(violation->judgement->delta, 0.75f);
  EXPECT_EQ(violation->judgement->cvar, 0.5f);
  EXPECT_EQ(violation->judgement->slack, 0.0625f);
  EXPECT_THAT(violation->raw_action, ElementsAre(1, -1));
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(second->judgement.has_value());
  const auto steps = ReadEpisode(folder_, *violation);
  ASSERT_THAT(steps, IsOk());
  ASSERT_EQ(steps->size(), 2u);
  EXPECT_EQ((*steps)[0].cost, -0.5f);
  EXPECT_EQ((*steps)[1].cost, 0.25f);
  EXPECT_EQ((*steps)[1].episode, 3u);
  EXPECT_THAT((*steps)[1].execution, ElementsAre(0.5f, -0.125f));
}

TEST_F(FormatsTest, ADatasetHasItsRows) {
  const auto dataset = Dataset::Read(folder_ + "/dataset", "cartpole", SmallSchema());
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ(dataset->manifest().layout(), 3u);
  EXPECT_EQ(dataset->manifest().run_id(), "recorded");
  EXPECT_EQ(dataset->rows(), 6u);
  EXPECT_THAT(dataset->failures(), ElementsAre(0u, 3u, 4u));
  std::string columns;
  dataset->Gather({5}, &columns);
  float observation[2];
  std::memcpy(observation, columns.data(), sizeof observation);
  EXPECT_THAT(observation, ElementsAre(1001, 1001));
}

TEST_F(FormatsTest, RecordsHaveTheirColumns) {
  const auto progress = ReadRecords(folder_ + "/progress.csv"), episodes = ReadRecords(folder_ + "/episodes.csv");
  ASSERT_THAT(progress, IsOk());
  ASSERT_EQ(progress->rows(), 1u);
  EXPECT_EQ(progress->Number(0, "env_steps"), 20);
  EXPECT_EQ(progress->Number(0, "train_return"), 10);
  EXPECT_EQ(progress->Number(0, "delta"), 0.75);
  EXPECT_EQ(progress->Text(0, "q_gap"), "");
  EXPECT_EQ(progress->Text(0, "status"), "ok");
  ASSERT_THAT(episodes, IsOk());
  EXPECT_EQ(episodes->Number(0, "env_steps"), 10);
  EXPECT_EQ(episodes->Number(0, "discounted_return"), 9.5);
}

TEST_F(FormatsTest, ThisBuildWritesTheSameBytes) {
  const std::string written = temporary_.path() + "/written";
  const absl::Status status = WriteFormats(written);
  ASSERT_THAT(status, IsOk());
  for (const std::string& file : FormatFiles()) {
    if (file == "dataset/manifest.textproto" || file == "replay/sessions") continue;
    const auto wanted = ReadFile(absl::StrCat(folder_, "/", file)), found = ReadFile(absl::StrCat(written, "/", file));
    ASSERT_THAT(wanted, IsOk());
    ASSERT_THAT(found, IsOk());
    EXPECT_TRUE(*wanted == *found) << file << ": its bytes changed. Let its version grow and add a golden folder.";
  }
  const auto wanted = replay::SessionTable::Read(folder_ + "/replay"),
             found = replay::SessionTable::Read(written + "/replay");
  ASSERT_THAT(wanted, IsOk());
  ASSERT_THAT(found, IsOk());
  EXPECT_TRUE(MessageDifferencer::Equals(*wanted, *found));
  EXPECT_EQ(ReadFile(folder_ + "/replay/sessions")->substr(0, 12),
            ReadFile(written + "/replay/sessions")->substr(0, 12))
      << "magic and version";
  auto manifest = ReadManifest(folder_ + "/dataset"), again = ReadManifest(written + "/dataset");
  ASSERT_THAT(manifest, IsOk());
  ASSERT_THAT(again, IsOk());
  for (v1::DatasetManifest* one : {&*manifest, &*again}) {
    one->clear_revision();
    one->clear_crc32c();
  }
  EXPECT_TRUE(MessageDifferencer::Equals(*manifest, *again));
}

TEST_F(FormatsTest, EveryFileThatIsWrittenIsCompared) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    if (entry.is_regular_file() && entry.path().filename() != "conversation")
      files.push_back(std::filesystem::relative(entry.path(), folder_).string());
  }
  EXPECT_THAT(files, ::testing::UnorderedElementsAreArray(FormatFiles()));
}

}  // namespace
}  // namespace datacom::golden
// SPDX-License-Identifier: Apache-2.0
