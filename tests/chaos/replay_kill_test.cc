// Kills the real replay process again and again while a client inserts. Oracle: what was acknowledged is kept, nothing is
// stored twice, the order holds.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "common/base/files.h"
#include "common/base/random.h"
#include "common/config/experiment.h"
#include "common/rpc/channel.h"
#include "common/rpc/replay_client.h"
#include "gtest/gtest.h"
#include "tests/replay/replay_fixture.h"

extern char** environ;

namespace datacom {
namespace {

using std::chrono::milliseconds;

constexpr int kRounds = 20;
constexpr milliseconds kLong{30000};
constexpr uint64_t kRowsARound = 400;

class ReplayProcess {
 public:
  explicit ReplayProcess(const std::string& folder) : folder_(folder) {}
  ~ReplayProcess() {
    if (pid_ > 0) Kill(SIGKILL);
  }

  void Start() {
    std::filesystem::remove(folder_ + "/address");
    std::vector<std::string> args = {DATACOM_REPLAY_BINARY, "--experiment", folder_ + "/experiment.textproto", "--run-id", "run", "--dir",
                                     folder_ + "/replay", "--address-file", folder_ + "/address", "--listen",
                                     address_.empty() ? "127.0.0.1:0" : address_, "--die-with-parent"};
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    ASSERT_EQ(::posix_spawn(&pid_, DATACOM_REPLAY_BINARY, nullptr, nullptr, argv.data(), environ), 0);
    const auto deadline = std::chrono::steady_clock::now() + kLong;
    while (!std::filesystem::exists(folder_ + "/address")) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the replay does not start";
      ASSERT_EQ(::waitpid(pid_, nullptr, WNOHANG), 0) << "the replay ended";
      std::this_thread::yield();
    }
    address_ = *ReadFile(folder_ + "/address");
    address_.pop_back();
  }
  // The wait status.
  int Kill(int signal) {
    ::kill(pid_, signal);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }
  const std::string& address() const { return address_; }

 private:
  const std::string folder_;
  std::string address_;
  pid_t pid_ = 0;
};

TEST(ReplayKillTest, EveryAcknowledgedRowIsKeptOnceOverTwentyKills) {
  testing::TemporaryFolder folder;
  v1::Experiment experiment;
  experiment.set_name("kill");
  experiment.set_task("cartpole");
  experiment.set_algorithm("datacom");
  experiment.mutable_run()->set_env_steps(100000);
  experiment.mutable_replay()->set_min_size(50000);  // no learner here
  experiment.add_members()->set_seed(1);
  experiment = ResolveExperiment(experiment);
  ASSERT_TRUE(WriteFileAtomically(folder.path() + "/experiment.textproto", PrintExperiment(experiment)).ok());
  ReplayProcess replay(folder.path());
  ASSERT_NO_FATAL_FAILURE(replay.Start());
  const auto channel = MakeChannel(replay.address());
  const auto info = GetReplayInfo(channel, kLong);
  ASSERT_TRUE(info.ok()) << info.status();
  InsertSession::Options options;
  options.channel = channel;
  options.run_id = "run";
  options.actor = "actor-0";
  options.incarnation = 7;
  auto registered = InsertSession::Register(options);
  ASSERT_TRUE(registered.ok()) << registered.status();
  InsertSession& session = **registered;
  ASSERT_TRUE(session.Start(info->schema_fingerprint()).ok());

  const RowSchema schema = RowSchema::For(/*obs_dim=*/5, /*action_dim=*/1);
  ASSERT_EQ(schema.fingerprint(), info->schema_fingerprint());
  std::atomic<bool> stop{false};
  std::thread actor([&] {
    while (!stop && session.status().ok()) {
      const auto allowance = session.allowance(0);
      const uint32_t rows = static_cast<uint32_t>(std::min<uint64_t>(allowance.rows, 16));
      if (rows == 0) {
        session.WaitForChange(milliseconds(50));
        continue;
      }
      std::string columns(rows * schema.wire_row_bytes(), '\0');
      for (uint32_t i = 0; i < rows; ++i) {  // observation[0] tells the sequence
        const float value = static_cast<float>(allowance.next_sequence + i);
        std::memcpy(columns.data() + i * schema.wire()[0].bytes(), &value, sizeof value);
      }
      if (!session.Append(0, rows, std::move(columns)).ok()) break;
    }
  });
  RandomStream random(StreamKey("test.kill", {1}));
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t until = session.acknowledged(0) + kRowsARound + random.Below(kRowsARound);
    const auto deadline = std::chrono::steady_clock::now() + kLong;
    while (session.acknowledged(0) < until && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_GE(session.acknowledged(0), until) << "round " << round;
    const uint64_t acknowledged = session.acknowledged(0);
    EXPECT_TRUE(WIFSIGNALED(replay.Kill(SIGKILL)));
    replay.Start();
    const auto after = GetReplayInfo(MakeChannel(replay.address()), kLong);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_GE(after->members(0).inserted(), acknowledged) << "round " << round;
  }
  stop = true;
  actor.join();
  const absl::Status flushed = session.Flush(kLong);
  EXPECT_TRUE(flushed.ok()) << flushed;
  const uint64_t rows = session.acknowledged(0);
  v1::ReadRangeRequest request;
  *request.mutable_hello() = MakeHello("run", 0);
  request.set_to(rows);
  uint64_t next = 0;
  const absl::Status read = ReadRange(channel, request, [&](const v1::RowRange& range) {
    for (uint32_t i = 0; i < range.row_count(); ++i, ++next) {
      float value = 0;
      std::memcpy(&value, range.columns().data() + i * schema.wire()[0].bytes(), sizeof value);
      if (value != static_cast<float>(next)) return absl::DataLossError("row " + std::to_string(next) + " holds sequence " + std::to_string(value));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(next, rows);
  EXPECT_EQ(GetReplayInfo(channel, kLong)->members(0).inserted(), rows) << "nothing twice";
  const int status = replay.Kill(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 75) << "drained before the run was complete";
}

}  // namespace
}  // namespace datacom
