// Kills the real replay process repeatedly while a client inserts. Every acknowledged row must be kept, no row may be
// stored twice, and the order must be kept.
#include <atomic>
#include <cstring>

#include "common/base/random.h"
#include "common/rpc/replay_client.h"
#include "grpcpp/grpcpp.h"
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

constexpr int kRounds = 20;
constexpr uint64_t kRowsARound = 400;

v1::Experiment KillExperiment(bool sync) {
  v1::Experiment experiment;
  experiment.set_name("kill");
  experiment.set_task("cartpole");
  experiment.set_algorithm("datacom");
  experiment.mutable_run()->set_env_steps(100000);
  experiment.mutable_replay()->set_min_size(50000);  // no learner in this test
  experiment.mutable_replay()->set_sync(sync);
  experiment.add_members()->set_seed(1);
  return experiment;
}

// Appends as fast as credit allows, up to `goal`; observation[0] of a row is its sequence.
void Act(InsertSession* session, const RowSchema& schema, const std::atomic<uint64_t>& goal,
         const std::atomic<bool>& stop) {
  while (!stop && session->status().ok()) {
    const auto allowance = session->allowance(0);
    const uint32_t rows = allowance.next_sequence < goal ? std::min<uint32_t>(allowance.rows, 16) : 0;
    if (rows == 0) {
      session->changes().Wait(milliseconds(50));
      continue;
    }
    std::string columns = testing::WireRows(schema, allowance.next_sequence, rows);
    for (uint32_t i = 0; i < rows; ++i) {
      const float value = static_cast<float>(allowance.next_sequence + i);
      std::memcpy(columns.data() + i * schema.wire()[0].bytes(), &value, sizeof value);
    }
    if (!session->Append(0, rows, std::move(columns), "").ok()) break;
    session->Send();
  }
}

void ExpectRowsInOrder(const std::shared_ptr<grpc::Channel>& channel, const RowSchema& schema, uint64_t rows) {
  v1::ReadRangeRequest request;
  *request.mutable_hello() = MakeHello("run", 0);
  request.set_to(rows);
  uint64_t next = 0;
  const absl::Status read = ReadRange(channel, request, kPatience, [&](const v1::RowRange& range) {
    for (uint32_t i = 0; i < range.row_count(); ++i, ++next) {
      float value = 0;
      std::memcpy(&value, range.columns().data() + i * schema.wire()[0].bytes(), sizeof value);
      if (value != static_cast<float>(next))
        return absl::DataLossError("row " + std::to_string(next) + " holds sequence " + std::to_string(value));
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(read, IsOk());
  EXPECT_EQ(next, rows);
}

class ReplayKillTest : public ::testing::TestWithParam<bool> {};

TEST_P(ReplayKillTest, EveryAcknowledgedRowIsKeptOnceOverTwentyKills) {
  testing::TemporaryFolder folder;
  testing::ReplayProcess replay(folder.path(), KillExperiment(/*sync=*/GetParam()));
  ASSERT_NO_FATAL_FAILURE(replay.Start());
  const auto channel = MakeChannel(replay.address());
  const auto info = GetReplayInfo(channel, kPatience);
  ASSERT_THAT(info, IsOk());
  const RowSchema schema = testing::CartPoleSchema();
  ASSERT_EQ(schema.fingerprint(), info->schema_fingerprint());
  const auto session = testing::JoinReplay(channel, 1, schema.fingerprint());
  ASSERT_NE(session, nullptr);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> goal{0};  // more than a round's rows, so that some are in flight at a kill
  std::thread actor([&] { Act(session.get(), schema, goal, stop); });
  RandomStream random(StreamKey("test.kill", {1}));
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t until = session->acknowledged(0) + kRowsARound + random.Below(kRowsARound);
    goal = until + kRowsARound;
    EXPECT_TRUE(
        testing::WaitUntil([&] { return session->acknowledged(0) >= until; }, [] { std::this_thread::yield(); }))
        << "round " << round;
    const uint64_t acknowledged = session->acknowledged(0);
    EXPECT_TRUE(WIFSIGNALED(replay.End(SIGKILL)));
    replay.Start();
    const auto again = MakeChannel(replay.address());
    EXPECT_TRUE(again->WaitForConnected(std::chrono::system_clock::now() + kPatience)) << "it may still be backing off";
    const auto after = GetReplayInfo(again, kPatience);
    EXPECT_TRUE(after.ok() && after->members(0).inserted() >= acknowledged)
        << "round " << round << ": " << after.status();
  }
  stop = true;
  actor.join();
  const absl::Status flushed = session->Flush(kPatience);
  EXPECT_THAT(flushed, IsOk());
  const uint64_t rows = session->acknowledged(0);
  ExpectRowsInOrder(channel, schema, rows);
  EXPECT_EQ(GetReplayInfo(channel, kPatience)->members(0).inserted(), rows) << "no row is stored twice";
}

INSTANTIATE_TEST_SUITE_P(Sync, ReplayKillTest, ::testing::Bool());

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
