// Tests the replay process from outside: exit codes, health, memory, a failing disk.
#include <fstream>
#include <optional>

#include "common/rpc/replay_client.h"
#include "tests/chaos/replay_process.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"
#include "tests/testing/temporary_folder.h"
#include "tests/testing/wire_rows.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using std::chrono::milliseconds;
using testing::kPatience;

v1::Experiment ProcessExperiment(int members) {
  v1::Experiment experiment;
  experiment.set_name("process");
  experiment.set_task("cartpole");
  experiment.set_algorithm("datacom");
  for (int i = 0; i < members; ++i) experiment.add_members()->set_seed(static_cast<uint64_t>(i));
  return experiment;
}

using testing::CartPoleSchema;

// Appends until the member has `rows` rows; false when the session ended or made no progress for long.
bool Produce(InsertSession* session, uint32_t member, uint64_t rows) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline && session->status().ok()) {
    const auto allowance = session->allowance(member);
    if (allowance.next_sequence >= rows) return true;
    const auto count = static_cast<uint32_t>(std::min<uint64_t>({allowance.rows, rows - allowance.next_sequence, 64}));
    if (count == 0) {
      session->changes().Wait(milliseconds(50));
    } else if (!session->Append(member, count, testing::WireRows(CartPoleSchema(), allowance.next_sequence, count), "")
                    .ok()) {
      return false;
    }
    session->Send();
  }
  return false;
}

TEST(ReplayProcessTest, ExitsWith0WhenTheRunIsCompleteAndWith75Before) {
  testing::TemporaryFolder folder;
  v1::Experiment experiment = ProcessExperiment(1);
  experiment.mutable_run()->set_env_steps(60);
  experiment.mutable_run()->set_steps_per_epoch(20);
  experiment.mutable_replay()->set_min_size(50);
  testing::ReplayProcess replay(folder.path(), experiment);
  ASSERT_NO_FATAL_FAILURE(replay.Start());
  EXPECT_EQ(replay.HealthCheck(), 0);
  const auto channel = MakeChannel(replay.address());
  const auto session = testing::JoinReplay(channel, 1, CartPoleSchema().fingerprint());
  ASSERT_TRUE(session != nullptr && Produce(session.get(), 0, 20));
  ASSERT_THAT(session->Flush(kPatience), IsOk());
  const int early = replay.End(SIGTERM);
  EXPECT_TRUE(WIFEXITED(early) && WEXITSTATUS(early) == 75) << "the run is not complete";
  EXPECT_NE(replay.HealthCheck(), 0) << "no process serves";
  ASSERT_NO_FATAL_FAILURE(replay.Start());
  {
    const auto learner = DrawStream::Open({channel, "run", CartPoleSchema().fingerprint()});
    ASSERT_TRUE(Produce(session.get(), 0, 60));
    ASSERT_THAT(session->Flush(kPatience), IsOk());
    for (uint64_t update = 1; update <= 10; ++update) {
      learner->Request(update);
      ASSERT_THAT(learner->Next(kPatience), IsOk());
      learner->Announce(update);
    }
  }  // closing delivers the last announcement
  const int complete = replay.End(SIGTERM);
  EXPECT_TRUE(WIFEXITED(complete) && WEXITSTATUS(complete) == 0) << "status " << complete;
}

#ifndef DATACOM_SANITIZED
TEST(ReplayProcessTest, FiveMembersOfDefaultCapacityTakeLessThan50MegabytesOfPrivateMemory) {
  testing::TemporaryFolder folder;
  testing::ReplayProcess replay(folder.path(), ProcessExperiment(5));
  ASSERT_NO_FATAL_FAILURE(replay.Start());
  const auto session = testing::JoinReplay(MakeChannel(replay.address()), 5, CartPoleSchema().fingerprint());
  ASSERT_NE(session, nullptr);
  for (uint32_t member = 0; member < 5; ++member) ASSERT_TRUE(Produce(session.get(), member, 2000));
  ASSERT_THAT(session->Flush(kPatience), IsOk());
  const int64_t kilobytes = testing::MemoryKilobytes(replay.pid(), "RssAnon");
  RecordProperty("rss_anon_kilobytes", std::to_string(kilobytes));
  std::printf("RssAnon %lld kB\n", static_cast<long long>(kilobytes));
  EXPECT_GT(kilobytes, 0);
  EXPECT_LT(kilobytes, 50 * 1024);
}
#endif

TEST(ReplayProcessTest, AFailedDiskEndsItWith1AndItsSuccessorHasTheAcknowledgedRows) {
  testing::TemporaryFolder folder;
  v1::Experiment experiment = ProcessExperiment(1);
  experiment.mutable_replay()->set_sync(true);
  testing::ReplayProcess replay(
      folder.path(), experiment,
      {"LD_PRELOAD=" DATACOM_FAILING_DISK, "DATACOM_TEST_DISK_FAILS=" + folder.path() + "/fail"});
  ASSERT_NO_FATAL_FAILURE(replay.Start());
  const auto session = testing::JoinReplay(MakeChannel(replay.address()), 1, CartPoleSchema().fingerprint());
  ASSERT_TRUE(session != nullptr && Produce(session.get(), 0, 16));
  ASSERT_THAT(session->Flush(kPatience), IsOk());
  EXPECT_EQ(replay.HealthCheck(), 0);
  ASSERT_THAT(WriteFileAtomically(folder.path() + "/fail", ""), IsOk());
  ASSERT_TRUE(Produce(session.get(), 0, 17));
  EXPECT_FALSE(session->Flush(milliseconds(1000)).ok());
  EXPECT_EQ(session->acknowledged(0), 16u);
  const std::optional<int> status = replay.AwaitEnd();
  ASSERT_TRUE(status.has_value()) << "it still runs";
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 1) << "status " << *status;
  EXPECT_NE(replay.HealthCheck(), 0);
  std::filesystem::remove(folder.path() + "/fail");
  ASSERT_NO_FATAL_FAILURE(replay.Start());
  ASSERT_THAT(session->Flush(kPatience), IsOk()) << "the actor sends the rows again that were not acknowledged";
  const auto info = GetReplayInfo(MakeChannel(replay.address()), kPatience);
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->members(0).inserted(), session->allowance(0).next_sequence);
}

// The exit code of a replay whose disk hangs while it commits rows, and which then gets `signal`.
std::optional<int> ExitCodeOnAHangingDisk(std::optional<int> signal) {
  testing::TemporaryFolder folder;
  v1::Experiment experiment = ProcessExperiment(1);
  experiment.mutable_replay()->set_sync(true);
  testing::ReplayProcess replay(
      folder.path(), experiment,
      {"LD_PRELOAD=" DATACOM_FAILING_DISK, "DATACOM_TEST_DISK_HANGS=" + folder.path() + "/hang"});
  replay.set_stall_minutes("0.05");
  replay.Start();
  const auto session = testing::JoinReplay(MakeChannel(replay.address()), 1, CartPoleSchema().fingerprint());
  EXPECT_TRUE(session != nullptr && Produce(session.get(), 0, 16) && session->Flush(kPatience).ok());
  EXPECT_THAT(WriteFileAtomically(folder.path() + "/hang", ""), IsOk());
  EXPECT_TRUE(session != nullptr && Produce(session.get(), 0, 17));
  EXPECT_TRUE(testing::WaitUntil([&] { return FileExists(folder.path() + "/hang.reached"); },
                                 [] { std::this_thread::yield(); }));
  if (signal.has_value()) ::kill(replay.pid(), *signal);
  const std::optional<int> status = replay.AwaitEnd();
  return status.has_value() && WIFEXITED(*status) ? std::optional(WEXITSTATUS(*status)) : std::nullopt;
}

TEST(ReplayProcessTest, ADiskThatHangsEndsItWith1AfterTheStallTime) {
  EXPECT_EQ(ExitCodeOnAHangingDisk(/*signal=*/std::nullopt), 1);
}

TEST(ReplayProcessTest, ADiskThatHangsWhileItStopsEndsItWith1AfterTheStallTime) {
  EXPECT_EQ(ExitCodeOnAHangingDisk(SIGTERM), 1);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
