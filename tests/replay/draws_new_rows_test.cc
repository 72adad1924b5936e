// Draws that hold every row since the update before, instead of a sample.
#include <algorithm>
#include <atomic>

#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "common/rpc/replay_client.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "gmock/gmock.h"
#include "replay/replay_service.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/patience.h"

namespace datacom::replay::testing {
namespace {

using ::datacom::testing::IsOk;
using ::datacom::testing::kPatience;
using ::testing::HasSubstr;

constexpr uint32_t kRows = 30000;  // of an update: more than one reply holds
constexpr uint32_t kMembers = 2;

// Two updates of kRows rows.
Options NewRowsOptions() {
  Options options = SmallOptions(kMembers);
  options.limits.schedule.env_steps = 2 * kRows;
  options.layout.capacity = kRows;
  options.limits.schedule.min_size = 0;
  options.limits.schedule.updates_per_step = 1.0 / kRows;
  options.limits.tolerance = 256;
  options.layout.slack = 256 + 3 * kRows;
  options.new_rows = true;
  options.layout.guard = 1024;
  for (Options::Member& member : options.members) member.episode_rows = false;
  return options;
}

class NewRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Open(NewRowsOptions());
    client_.Open(store_.get(), "actor-0", 1, kMembers);
  }
  void Open(const Options& options) {
    store_ = MustOpen(options, folder_.path(), &clock_);
    ASSERT_NE(store_, nullptr);
  }
  // Inserts what the credit allows, up to `rows` rows of every member. Episodes have 1000 steps.
  void Fill(uint64_t rows) {
    for (bool more = true; more;) {
      more = false;
      for (uint32_t member = 0; member < kMembers; ++member) {
        const uint64_t next = client_.next[member];
        const uint64_t count = std::min<uint64_t>({client_.limit[member] - next, rows - next, 512});
        if (count == 0) continue;
        const auto made = SimpleRows(next, static_cast<uint32_t>(count), /*length=*/1000);
        ASSERT_EQ(client_.Send(store_.get(), MakeChunk(member, next, made)), absl::StatusCode::kOk);
        client_.Hear(store_.get());
        more = true;
      }
    }
  }
  std::vector<v1::DrawReply> DrawAll(uint64_t update) {
    std::vector<v1::DrawReply> replies;
    DrawPlace place;
    do {
      const absl::Status drawn = store_->Draw(update, &replies.emplace_back(), &place);
      EXPECT_THAT(drawn, IsOk());
    } while (replies.back().more());
    return replies;
  }

  TemporaryFolder folder_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  Client client_;
};

// The rows' values and steps, in the order in which they come, and the last rows of the episodes.
struct Drawn {
  std::vector<float> values;
  std::vector<uint32_t> steps;
  std::vector<uint64_t> ends;
};

Drawn RowsOf(uint32_t member, uint64_t first_row, const google::protobuf::RepeatedPtrField<v1::MemberBatch>& batches) {
  Drawn drawn;
  for (const v1::MemberBatch& batch : batches) {
    if (batch.member() != member) continue;
    const size_t rows = batch.row_count();
    EXPECT_EQ(batch.first_row(), first_row + drawn.values.size());
    EXPECT_EQ(batch.main().size(), rows * SmallSchema().learning_row_bytes());
    EXPECT_EQ(batch.places().size(), rows * 16);
    EXPECT_EQ(batch.failure(), "");
    EXPECT_TRUE(drawn.ends.empty()) << "episodes come with the last rows";
    for (size_t i = 0; i < rows; ++i) {
      drawn.values.push_back(At<float>(batch.main().data(), 8 * i));
      drawn.steps.push_back(At<uint32_t>(batch.places().data(), (3 * rows + i) * 4));
    }
    for (const v1::Episode& episode : batch.episodes()) drawn.ends.push_back(episode.last_row());
  }
  return drawn;
}

void ExpectWhole(const Drawn& drawn, uint64_t first_row) {
  ASSERT_EQ(drawn.values.size(), kRows);
  for (uint32_t i = 0; i < kRows; ++i) {
    ASSERT_EQ(drawn.values[i], static_cast<float>(first_row + i));
    ASSERT_EQ(drawn.steps[i], i % 1000);
  }
  ASSERT_EQ(drawn.ends.size(), kRows / 1000);
  for (uint32_t i = 0; i < kRows / 1000; ++i) EXPECT_EQ(drawn.ends[i], first_row + 1000 * (i + 1));
}

TEST_F(NewRowsTest, ADrawHoldsEveryRowSinceTheUpdateBeforeInOrderInSmallReplies) {
  Fill(2 * kRows);
  EXPECT_FALSE(store_->Ready(2)) << "credit ends with the rows of update 1";
  ASSERT_THAT(store_->Announce(1), IsOk());
  client_.Hear(store_.get());
  Fill(2 * kRows);
  for (const uint64_t update : {1, 2}) {
    google::protobuf::RepeatedPtrField<v1::MemberBatch> batches;
    const std::vector<v1::DrawReply> replies = DrawAll(update);
    EXPECT_EQ(replies.size(), 3u) << "2 x 30,000 rows of 30 + 16 bytes in replies of 1 MiB";
    for (const v1::DrawReply& reply : replies) {
      EXPECT_EQ(reply.update(), update);
      EXPECT_LE(reply.ByteSizeLong(), (1u << 20) + (64u << 10)) << "and episodes";
      batches.MergeFrom(reply.batches());
    }
    for (uint32_t member = 0; member < kMembers; ++member)
      ExpectWhole(RowsOf(member, (update - 1) * kRows, batches), (update - 1) * kRows);
  }
}

TEST_F(NewRowsTest, ADrawIsTheSameAfterReopening) {
  Fill(kRows);
  std::vector<std::string> before, after;
  for (const v1::DrawReply& reply : DrawAll(1)) before.push_back(PureBytes(reply));
  store_.reset();
  Open(NewRowsOptions());
  for (const v1::DrawReply& reply : DrawAll(1)) after.push_back(PureBytes(reply));
  EXPECT_EQ(before, after);
}

TEST_F(NewRowsTest, AMemberWithoutNewRowsStillHasABatch) {
  Options options = NewRowsOptions();
  options.limits.schedule.env_steps = 10;
  options.limits.schedule.updates_per_step = 2;
  client_ = Client();
  store_.reset();
  std::filesystem::remove_all(folder_.path());
  Open(options);
  client_.Open(store_.get(), "actor-0", 1, kMembers);
  Fill(10);
  for (const uint64_t update : {1, 2}) {  // both have seen one row
    const std::vector<v1::DrawReply> replies = DrawAll(update);
    ASSERT_EQ(replies.size(), 1u);
    ASSERT_EQ(replies[0].batches_size(), 2);
    for (const v1::MemberBatch& batch : replies[0].batches()) {
      EXPECT_EQ(batch.row_count(), update == 1 ? 1u : 0u);
      EXPECT_EQ(batch.rows_seen(), 1u);
    }
  }
}

TEST_F(NewRowsTest, OverwrittenRowsAreRefused) {
  Options options = NewRowsOptions();
  options.limits.schedule.env_steps = 100 * 1024;
  options.layout.slack = 256 + 3 * 1024;
  options.limits.schedule.updates_per_step = 1.0 / 1024;
  options.layout.capacity = 1024;
  client_ = Client();
  store_.reset();
  std::filesystem::remove_all(folder_.path());
  Open(options);
  client_.Open(store_.get(), "actor-0", 1, kMembers);
  for (uint64_t update = 0; update < 20; ++update) {
    ASSERT_THAT(store_->Announce(update), IsOk());
    client_.Hear(store_.get());
    Fill(1024 * (update + 1));
  }
  v1::DrawReply reply;
  const absl::Status refused = store_->Draw(2, &reply);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("are overwritten"));
}

void ExpectUpdateOne(DrawStream* learner) {
  learner->Request(1);
  const absl::StatusOr<v1::DrawReply> draw = learner->Next(kPatience);
  ASSERT_THAT(draw, IsOk());
  EXPECT_EQ(draw->update(), 1u);
  for (uint32_t member = 0; member < kMembers; ++member) ExpectWhole(RowsOf(member, 0, draw->batches()), 0);
}

TEST_F(NewRowsTest, TheClientJoinsTheRepliesOfADraw) {
  Fill(kRows);
  const std::unique_ptr<Metrics> metrics = Metrics::Start({"replay", "run", "", "", ""}).value();
  ReplayService service(store_.get(), metrics.get(), std::chrono::milliseconds(0));
  auto server = Server::Start("127.0.0.1:0", {&service});
  ASSERT_THAT(server, IsOk());
  {
    const auto learner = DrawStream::Open({MakeChannel((*server)->address()), "run", SmallSchema().fingerprint(), 1});
    ExpectUpdateOne(learner.get());
    ExpectUpdateOne(learner.get());
  }
  service.Drain();
  (*server)->Shutdown(std::chrono::milliseconds(2000));
}

// The first stream ends after one of the replies.
class BreakingReplay : public v1::Replay::Service {
 public:
  explicit BreakingReplay(std::vector<v1::DrawReply> replies) : replies_(std::move(replies)) {}
  grpc::Status Draw(grpc::ServerContext*, grpc::ServerReaderWriter<v1::DrawReply, v1::DrawRequest>* stream) override {
    const bool breaks = streams_++ == 0;
    v1::DrawRequest request;
    while (stream->Read(&request)) {
      if (request.draw_update() == 0) continue;
      stream->Write(replies_.front());
      if (breaks) return {grpc::StatusCode::UNAVAILABLE, "broken on purpose"};
      for (size_t i = 1; i < replies_.size(); ++i) stream->Write(replies_[i]);
    }
    return grpc::Status::OK;
  }
  int streams() const { return streams_; }

 private:
  const std::vector<v1::DrawReply> replies_;
  std::atomic<int> streams_{0};
};

TEST_F(NewRowsTest, TheClientAsksAgainForADrawWhoseStreamBroke) {
  Fill(kRows);
  BreakingReplay service(DrawAll(1));
  auto server = Server::Start("127.0.0.1:0", {&service});
  ASSERT_THAT(server, IsOk());
  {
    const auto learner = DrawStream::Open({MakeChannel((*server)->address()), "run", SmallSchema().fingerprint(), 1});
    ExpectUpdateOne(learner.get());
  }
  EXPECT_EQ(service.streams(), 2);
  (*server)->Shutdown(std::chrono::milliseconds(2000));
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
