// Peers that send as much as they can: the memory of the replay's process stays bounded, and others are served.
#include <cstdio>
#include <functional>

#include "common/rpc/insert_session.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "replay/row_order.h"
#include "tests/chaos/replay_process.h"
#include "tests/testing/patience.h"
#include "tests/testing/temporary_folder.h"
#include "tests/testing/wire_rows.h"

namespace datacom {
namespace {

using testing::kPatience;

// Messages in flight have 64 MiB (common/rpc/channel.cc). What is read exists twice for a moment, as bytes and parsed,
// and on a starved processor more of it waits. The attacks send 900 MB.
constexpr int64_t kAllowedKilobytes = 128 << 10;

v1::Experiment HostileExperiment() {
  v1::Experiment experiment;
  experiment.set_name("hostile");
  experiment.set_task("cartpole");
  experiment.set_algorithm("datacom");
  experiment.add_members()->set_seed(0);
  experiment.mutable_run()->set_env_steps(100000);
  experiment.mutable_replay()->set_min_size(50000);
  experiment.mutable_replay()->set_capacity(100000);
  return experiment;
}

using InsertCall = grpc::ClientReaderWriter<v1::InsertRequest, v1::InsertReply>;

class HostilePeersTest : public ::testing::Test {
 protected:
  HostilePeersTest() : replay_(folder_.path(), HostileExperiment()) {}
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(replay_.Start());
    honest_ = testing::JoinReplay(MakeChannel(replay_.address()), 1, CartPole().fingerprint());
    ASSERT_NE(honest_, nullptr);
    ASSERT_TRUE(SendHonestRows(2000));
    before_ = testing::MemoryKilobytes(replay_.pid(), "RssAnon");
  }
  static RowSchema CartPole() { return testing::CartPoleSchema(); }

  bool SendHonestRows(uint64_t rows) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      const auto allowance = honest_->allowance(0);
      if (allowance.next_sequence >= rows) return honest_->Flush(kPatience).ok();
      const auto count =
          static_cast<uint32_t>(std::min<uint64_t>({allowance.rows, rows - allowance.next_sequence, 64}));
      if (count == 0) {
        honest_->changes().Wait(std::chrono::milliseconds(50));
      } else if (!honest_->Append(0, count, testing::WireRows(CartPole(), allowance.next_sequence, count), "").ok()) {
        return false;
      }
      honest_->Send();
    }
    return false;
  }
  // Growth of the memory since the peers came, in kilobytes.
  int64_t Growth() const { return testing::MemoryKilobytes(replay_.pid(), "RssAnon") - before_; }

  testing::TemporaryFolder folder_;
  testing::ReplayProcess replay_;
  std::unique_ptr<InsertSession> honest_;
  int64_t before_ = 0;
};

// Twenty streams of three messages each, on connections of their own. Returns the largest growth seen.
int64_t Attack(const std::string& address, const v1::InsertRequest& message, const std::function<int64_t()>& growth) {
  std::vector<std::unique_ptr<v1::Replay::Stub>> stubs;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<InsertCall>> calls;
  int64_t largest = 0;
  for (int i = 0; i < 20; ++i) {
    stubs.push_back(v1::Replay::NewStub(MakeChannel(address)));
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    calls.push_back(stubs.back()->Insert(contexts.back().get()));
  }
  for (int round = 0; round < 3; ++round) {
    for (const auto& call : calls) call->Write(message);
    largest = std::max(largest, growth());
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    contexts[i]->TryCancel();
    calls[i]->Finish();
  }
  largest = std::max(largest, growth());
  std::printf("[ growth   ] %lld kB\n", static_cast<long long>(largest));
  return largest;
}

#ifndef DATACOM_SANITIZED
TEST_F(HostilePeersTest, MessagesOfAllSizesGrowTheProcessByLessThan128Megabytes) {
  for (const size_t bytes : {size_t{15} << 20, size_t{4} << 20, replay::kMaxChunkBytes}) {
    v1::InsertRequest message;
    message.mutable_chunk()->set_columns(std::string(bytes, 'x'));
    EXPECT_LT(Attack(replay_.address(), message, [this] { return Growth(); }), kAllowedKilobytes) << bytes;
    *message.mutable_open()->mutable_hello() = MakeHello("run", CartPole().fingerprint());
    message.mutable_open()->set_session(honest_->registration().session());
    message.mutable_open()->set_incarnation(99);
    EXPECT_LT(Attack(replay_.address(), message, [this] { return Growth(); }), kAllowedKilobytes) << bytes;
  }
  EXPECT_TRUE(SendHonestRows(4000)) << "the honest actor is served";
}

TEST_F(HostilePeersTest, ActorsThatRegisterAndVanishGrowTheProcessByLessThan128Megabytes) {
  const auto stub = v1::Replay::NewStub(MakeChannel(replay_.address()));
  int accepted = 0;
  for (int i = 0; accepted < 1000; ++i) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);  // the connection is reset after 500 calls within a second
    v1::RegisterRequest request;
    *request.mutable_hello() = MakeHello("run", 0);
    request.set_actor(std::to_string(i) + std::string(240, 'n'));
    request.set_incarnation(1);
    request.set_environments(1);
    v1::RegisterReply reply;
    accepted += stub->Register(&context, request, &reply).ok();  // 1024 sessions may live: StoreTest
  }
  std::printf("[ growth   ] %lld kB\n", static_cast<long long>(Growth()));
  EXPECT_LT(Growth(), kAllowedKilobytes);
  EXPECT_TRUE(SendHonestRows(4000));
}
#endif

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
