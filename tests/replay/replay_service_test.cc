// The replay's service over real streams, also on a disk that fails.
#include <atomic>
#include <filesystem>

#include "common/rpc/replay_client.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "tests/replay/served_replay.h"
#include "tests/replay/test_disk.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"

namespace datacom::replay::testing {
namespace {

using ::datacom::testing::IsOk;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReplayServiceTest : public ServedReplay {
 protected:
  std::unique_ptr<DrawStream> Learner(uint32_t incarnation = 1) {
    return DrawStream::Open({channel_, "run", SmallSchema().fingerprint(), incarnation});
  }
  // An insert stream of a session, opened.
  auto OpenInsert(grpc::ClientContext* context, uint32_t session, uint64_t incarnation) {
    stub_ = v1::Replay::NewStub(channel_);
    auto stream = stub_->Insert(context);
    v1::InsertRequest request;
    *request.mutable_open()->mutable_hello() = MakeHello("run", SmallSchema().fingerprint());
    request.mutable_open()->set_session(session);
    request.mutable_open()->set_incarnation(incarnation);
    EXPECT_TRUE(stream->Write(request));
    return stream;
  }

 private:
  std::unique_ptr<v1::Replay::Stub> stub_;
};

TEST_F(ReplayServiceTest, ARunCompletesOverRealStreams) {
  Options options = SmallOptions(1);
  options.limits.schedule.env_steps = 200;
  Serve(options);
  auto session = Join("actor-0");
  {
    auto learner = Learner();
    std::thread actor([&] { Produce(session.get(), 200); });
    uint64_t episodes = 0;
    for (uint64_t update = 1; update <= 2; ++update) learner->Request(update);
    for (uint64_t update = 1; update <= 190; ++update) {
      if (update + 2 <= 190) learner->Request(update + 2);
      auto reply = learner->Next(kPatience);
      ASSERT_THAT(reply, IsOk());
      ASSERT_EQ(reply->update(), update);
      EXPECT_EQ(reply->batches(0).rows_seen(), 10 + update);
      for (const v1::Episode& episode : reply->batches(0).episodes()) EXPECT_EQ(episode.last_row(), 10 * ++episodes);
      learner->Announce(update);
    }
    actor.join();
    EXPECT_EQ(episodes, 20u);
  }
  WaitUntil([&] { return session->finished() && store_->Complete(); },
            [&] { session->changes().Wait(milliseconds(20)); });
  EXPECT_TRUE(session->finished());
  EXPECT_TRUE(store_->Complete()) << "the last announcement is delivered when the learner disconnects";
  const auto info = GetReplayInfo(channel_, kPatience);
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->members(0).inserted(), 200u);
  EXPECT_EQ(info->members(0).samples_per_insert(), 1.0);
}

TEST_F(ReplayServiceTest, InvalidRowsEndOnlyTheSendersSessionWithTheReason) {
  Serve(SmallOptions(1));
  auto session = Join("actor-0");
  Produce(session.get(), 5);
  auto rows = SimpleRows(5, 2);
  rows[1].reward = std::numeric_limits<float>::infinity();
  ASSERT_THAT(session->Append(0, 2, testing::Columns(rows), ""), IsOk());
  const absl::Status flushed = session->Flush(kPatience);
  EXPECT_EQ(flushed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(flushed.message()), HasSubstr("column reward, row 1: inf is not finite"));
  auto other = Join("actor-1");
  Produce(other.get(), 5);
  EXPECT_EQ(store_->counters().rejected_invalid, 2u);
  EXPECT_EQ(store_->counters().inserted, 10u);
}

TEST_F(ReplayServiceTest, AfterARefusedChunkTheStreamAcceptsTheNext) {
  for (const bool sync : {false, true}) {
    Options options = SmallOptions(1);
    options.sync = sync;
    Serve(options);
    const uint64_t incarnation = sync ? 2 : 1;
    const auto registered = store_->Register("actor-0", incarnation, 1);
    ASSERT_THAT(registered, IsOk());
    grpc::ClientContext context;
    auto stream = OpenInsert(&context, registered->session(), incarnation);
    v1::InsertRequest request;
    *request.mutable_chunk() = MakeChunk(0, 3, SimpleRows(3, 2));  // a gap: 0 is expected
    ASSERT_TRUE(stream->Write(request));
    v1::InsertReply reply;
    std::string refusal;
    while (refusal.empty() && stream->Read(&reply)) {
      for (const auto& rejection : reply.rejections()) refusal = rejection.message();
    }
    EXPECT_THAT(refusal, HasSubstr("sequence 0 is expected"));
    *request.mutable_chunk() = MakeChunk(0, 0, SimpleRows(0, 2));
    ASSERT_TRUE(stream->Write(request));
    uint64_t committed = 0;
    while (committed < 2 && stream->Read(&reply)) {
      for (const auto& entry : reply.committed()) committed = entry.next_sequence();
    }
    EXPECT_EQ(committed, 2u);
    stream->WritesDone();
    while (stream->Read(&reply)) {
    }
    EXPECT_THAT(FromGrpc(stream->Finish()), IsOk());
    Stop();
  }
}

TEST_F(ReplayServiceTest, AnswersTheLastOfSeveralChunks) {
  Serve(SmallOptions(1));
  const auto registered = store_->Register("actor-0", 1, 1);
  ASSERT_THAT(registered, IsOk());
  grpc::ClientContext context;
  auto stream = OpenInsert(&context, registered->session(), 1);
  v1::InsertRequest request;
  v1::InsertReply reply;
  ASSERT_TRUE(stream->Read(&reply));
  for (const uint64_t first : {0, 2, 4}) {
    *request.mutable_chunk() = MakeChunk(0, first, SimpleRows(first, 2));
    request.mutable_chunk()->set_more(first < 4);
    ASSERT_TRUE(stream->Write(request));
  }
  std::vector<uint64_t> committed;
  while ((committed.empty() || committed.back() < 6) && stream->Read(&reply)) {
    for (const auto& entry : reply.committed()) committed.push_back(entry.next_sequence());
  }
  EXPECT_THAT(committed, ElementsAre(6));
  context.TryCancel();
}

// The texts of most refusals may be dropped, but a sender that gets none would never resend those rows.
TEST_F(ReplayServiceTest, ALateReaderStillGetsARefusalForEveryMember) {
  Serve(SmallOptions(2));
  const auto registered = store_->Register("actor-0", 1, 2);
  ASSERT_THAT(registered, IsOk());
  ASSERT_EQ(registered->assignment().members_size(), 2);
  grpc::ClientContext context;
  auto stream = OpenInsert(&context, registered->session(), 1);
  v1::InsertRequest request;
  *request.mutable_chunk() = MakeChunk(0, 3, SimpleRows(3, 2));        // a gap
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(stream->Write(request));  // more answers than the connection buffers
  *request.mutable_chunk() = MakeChunk(1, 3, SimpleRows(3, 2));
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  v1::InsertReply reply;
  bool told = false;
  while (stream->Read(&reply)) {
    for (const auto& rejection : reply.rejections()) told = told || rejection.member() == 1;
  }
  EXPECT_TRUE(told);
}

TEST_F(ReplayServiceTest, AWaitingDrawNamesTheMissingRowsAndDrainEndsIt) {
  Serve(SmallOptions(2));
  channel_ = MakeChannel(server_->address());  // gRPC's in-process channel must not outlive its server
  auto session = Join("actor-0");
  auto learner = Learner();
  learner->Request(1);
  std::string words;
  int ticks = 0;
  WaitUntil([&] { return words.find("actor-0 connected") != std::string::npos; },
            [&] {
              // Less than a lease, however long the stream takes to connect.
              if (ticks++ < 5) clock_.Advance(std::chrono::seconds(3));
              service_->Tick();
              words = std::string(learner->Next(milliseconds(20)).status().message());
            });
  EXPECT_THAT(words, HasSubstr("member 0 has 0 of 11 rows (sessions: actor-0 connected"));
  Stop();
  EXPECT_EQ(learner->Next(milliseconds(200)).status().code(), absl::StatusCode::kDeadlineExceeded);
  learner->Cancel();
  EXPECT_EQ(learner->Next(kPatience).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ReplayServiceTest, PeersOfAnotherRunAreRefusedWithoutRetry) {
  Serve(SmallOptions(1));
  InsertSession::Options options;
  options.channel = channel_;
  options.run_id = "other";
  options.actor = "actor-0";
  const auto session = InsertSession::Register(options);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("other"));
}

// SmallOptions that waits for the disk, so that the next insert notices when it fails.
Options SyncOptions() {
  Options options = SmallOptions(1);
  options.sync = true;
  return options;
}

TEST_F(ReplayServiceTest, AfterTheDiskFailedALearnerIsToldThatReason) {
  Serve(SyncOptions());
  channel_ = MakeChannel(server_->address());
  auto session = Join("actor-0");
  Produce(session.get(), 5);
  auto learner = Learner();
  learner->Request(1);
  disk.fails = true;
  const auto chunk = MakeChunk(0, 0, SimpleRows(5, 2));
  ASSERT_THAT(session->Append(0, 2, chunk.columns(), ""), IsOk());
  session->Send();
  std::string words;
  WaitUntil([&] { return words.find("disk failed") != std::string::npos; },
            [&] {
              clock_.Advance(std::chrono::seconds(3));
              service_->Tick();
              words = std::string(learner->Next(milliseconds(20)).status().message());
            });
  disk.fails = false;
  EXPECT_THAT(words, HasSubstr("the replay's disk failed; no more rows are accepted: msync"));
}

class CountingListener : public StoreListener {
 public:
  void OnChange() override { ++changes; }
  void OnTick() override {}
  void Close(const absl::Status&) override {}
  std::atomic<int> changes{0};
};

TEST_F(ReplayServiceTest, WithSyncACommitNotifiesTheStreamsAndAChunkDoesNot) {
  Serve(SyncOptions());
  auto session = Join("actor-0");
  Produce(session.get(), 1);
  const auto listener = std::make_shared<CountingListener>();
  service_->streams().Add(listener);
  for (uint64_t rows = 2; rows <= 21; ++rows) Produce(session.get(), rows);  // a chunk and a commit each
  service_->streams().Remove(listener.get());
  EXPECT_GE(listener->changes, 19);
  EXPECT_LE(listener->changes, 21);
}

TEST_F(ReplayServiceTest, WithSyncARunCompletesOverRealStreams) {
  Options options = SyncOptions();
  options.limits.schedule.env_steps = 200;
  Serve(options);
  auto session = Join("actor-0");
  {
    auto learner = Learner();
    std::thread actor([&] { Produce(session.get(), 200); });
    for (uint64_t update = 1; update <= 190; ++update) {
      learner->Request(update);
      const auto reply = learner->Next(kPatience);
      ASSERT_THAT(reply, IsOk());
      EXPECT_EQ(reply->batches(0).rows_seen(), 10 + update);
      learner->Announce(update);
    }
    actor.join();
  }
  Stop();
  EXPECT_EQ(session->acknowledged(0), 200u);
}

TEST_F(ReplayServiceTest, AStreamThatIsNotOpenedIsEndedAfterThirtySeconds) {
  Serve(SmallOptions(1));
  auto stub = v1::Replay::NewStub(channel_);
  grpc::ClientContext insert_context, draw_context, late_context;
  const auto insert = stub->Insert(&insert_context);
  const auto draw = stub->Draw(&draw_context);
  const auto late = stub->Draw(&late_context);
  auto session = Join("actor-0");
  Produce(session.get(), 11);
  clock_.Advance(std::chrono::seconds(29));
  service_->Tick();
  v1::DrawRequest request;
  *request.mutable_hello() = MakeHello("run", SmallSchema().fingerprint());
  request.set_draw_update(1);
  ASSERT_TRUE(late->Write(request));
  v1::DrawReply drawn;
  ASSERT_TRUE(late->Read(&drawn)) << "it is opened in time";
  std::atomic<bool> ended{false};
  std::thread silent([&] {
    v1::InsertReply insert_reply;
    v1::DrawReply draw_reply;
    EXPECT_FALSE(insert->Read(&insert_reply));
    EXPECT_FALSE(draw->Read(&draw_reply));
    for (const grpc::Status& status : {insert->Finish(), draw->Finish()}) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr("no opening message within 30 s"));
    }
    ended = true;
  });
  const auto tick = [&] {
    clock_.Advance(std::chrono::seconds(31));
    service_->Tick();
    std::this_thread::yield();
  };
  EXPECT_TRUE(WaitUntil([&] { return ended.load(); }, tick)) << "the replay keeps them";
  insert_context.TryCancel();
  draw_context.TryCancel();
  silent.join();
  EXPECT_THAT(session->status(), IsOk());
  EXPECT_TRUE(late->Write(request)) << "an open stream may be silent";
  ASSERT_TRUE(late->Read(&drawn));
  late->WritesDone();
}

TEST_F(ReplayServiceTest, AnActorsNameIsShortAndPrintable) {
  Serve(SmallOptions(1));
  auto stub = v1::Replay::NewStub(channel_);
  const std::string longest(255, 'a');
  for (const std::string& name : {std::string("actor-0"), longest}) {
    grpc::ClientContext context;
    v1::RegisterRequest request;
    v1::RegisterReply reply;
    *request.mutable_hello() = MakeHello("run", 0);
    request.set_actor(name);
    request.set_environments(1);
    EXPECT_THAT(FromGrpc(stub->Register(&context, request, &reply)), IsOk()) << name;
  }
  for (const std::string& name : {std::string(), longest + "a", std::string("a b"), std::string("a\nerror forged"),
                                  std::string("\x1b[2J"), std::string("a\0b", 3), std::string("\xc3\xa4")}) {
    grpc::ClientContext context;
    v1::RegisterRequest request;
    v1::RegisterReply reply;
    *request.mutable_hello() = MakeHello("run", 0);
    request.set_actor(name);
    request.set_environments(1);
    const grpc::Status status = stub->Register(&context, request, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
    EXPECT_THAT(status.error_message(), HasSubstr("1 to 255 printable ASCII characters without spaces"));
  }
}

// Each stream may hold one request while it arrives.
TEST_F(ReplayServiceTest, ARequestLargerThanTheLargestChunkIsNotTakenIntoMemory) {
  Serve(SmallOptions(1));
  const auto stub = v1::Replay::NewStub(MakeChannel(server_->address()));
  for (const auto& [bytes, code] : {std::pair(1 << 20, grpc::StatusCode::INVALID_ARGUMENT),
                                    std::pair(2 << 20, grpc::StatusCode::RESOURCE_EXHAUSTED)}) {
    grpc::ClientContext context;
    const auto stream = stub->Insert(&context);
    v1::InsertRequest request;
    request.mutable_chunk()->set_columns(std::string(bytes, 'x'));
    stream->Write(request);
    v1::InsertReply reply;
    EXPECT_FALSE(stream->Read(&reply));
    EXPECT_EQ(stream->Finish().error_code(), code) << bytes;
  }
}

class CountingService : public ReplayService {
 public:
  using ReplayService::ReplayService;
  grpc::ServerBidiReactor<v1::DrawRequest, v1::DrawReply>* Draw(grpc::CallbackServerContext* context) override {
    ++draws;
    return ReplayService::Draw(context);
  }
  std::atomic<int> draws{0};
};

// The refusal of the Hello crosses the draw that the learner writes next. It must not be taken for a broken connection,
// which would be opened again.
TEST_F(ReplayServiceTest, ARefusalThatCrossesAWriteIsReadFromTheFirstStream) {
  constexpr int kRounds = 200;
  Serve(SmallOptions(1));
  CountingService service(store_.get(), metrics_.get(), milliseconds(0));
  const auto server = Server::Start("127.0.0.1:0", {&service});
  ASSERT_THAT(server, IsOk());
  for (const auto& channel : {(*server)->InProcessChannel(), MakeChannel((*server)->address())}) {
    service.draws = 0;
    for (int round = 0; round < kRounds; ++round) {
      auto learner = DrawStream::Open({channel, "run", SmallSchema().fingerprint() + 2});
      learner->Request(1);
      const absl::Status refused = learner->Next(kPatience).status();
      ASSERT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
      EXPECT_THAT(std::string(refused.message()), HasSubstr("row schema"));
    }
    EXPECT_EQ(service.draws, kRounds);
  }
}

TEST_F(ReplayServiceTest, ANewIncarnationIsAnotherSessionOnceTheOldOneHasNoStream) {
  Serve(SmallOptions(1));
  auto old = Join("actor-0", /*incarnation=*/1);
  Produce(old.get(), 4);
  const uint32_t former = old->registration().session();
  old.reset();
  auto fresh = Join("actor-0", /*incarnation=*/2);  // asks again until the stream of the old one has ended
  Produce(fresh.get(), 6);
  EXPECT_NE(fresh->registration().session(), former);
}

TEST_F(ReplayServiceTest, AnOlderStartOfTheLearnerIsRefusedOnceANewerOneDraws) {
  Serve(SmallOptions(1));
  auto actor = Join("actor-0");
  Produce(actor.get(), 20);
  auto old = Learner(/*incarnation=*/4);
  old->Request(1);
  ASSERT_THAT(old->Next(kPatience), IsOk());
  auto fresh = Learner(/*incarnation=*/5);
  fresh->Request(1);
  ASSERT_THAT(fresh->Next(kPatience), IsOk());
  old->Request(2);
  const absl::Status refused = old->Next(kPatience).status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("start 4 of the learner: start 5 draws now"));
  fresh->Request(2);
  EXPECT_THAT(fresh->Next(kPatience), IsOk());
}

TEST_F(ReplayServiceTest, AnAnnouncementThatTheRowsDoNotAllowEndsItsStreamAndChangesNothing) {
  Serve(SmallOptions(1));
  auto actor = Join("actor-0");
  Produce(actor.get(), 20);
  const uint64_t allowed = testing::MemberOf(*store_, 0).allowed();
  for (const uint64_t update : {uint64_t{11}, uint64_t{4000}, uint64_t{1} << 63}) {
    auto hostile = Learner();
    hostile->Announce(update);
    hostile->Request(1);
    EXPECT_FALSE(hostile->Next(kPatience).ok()) << update;
    EXPECT_EQ(testing::MemberOf(*store_, 0).allowed(), allowed);
  }
}

// Without replay.sync a power loss can leave the folder in an earlier state.
TEST_F(ReplayServiceTest, AnActorWhoseAcknowledgedRowsAreLostRegistersAgain) {
  namespace fs = std::filesystem;
  Options options = SmallOptions(1);
  Serve(options);
  const std::string address = server_->address();
  channel_ = MakeChannel(address);
  auto session = Join("actor-0");
  Produce(session.get(), 4);
  TemporaryFolder former;
  fs::copy(folder_.path(), former.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  Produce(session.get(), 8);
  Stop();
  fs::copy(former.path(), folder_.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  Serve(options, address);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (session->status().ok() && std::chrono::steady_clock::now() < deadline)
    session->changes().Wait(milliseconds(50));
  EXPECT_EQ(session->status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(session->status().message()), HasSubstr("member 0 has 4 rows, 8 were acknowledged"));
  Produce(Join("actor-0", /*incarnation=*/2).get(), 3);
  EXPECT_EQ(store_->counters().inserted, 3u);
}

TEST_F(ReplayServiceTest, ClientsSurviveARestartAndNothingIsStoredTwice) {
  Options options = SmallOptions(1);
  Serve(options);
  // On a TCP address, so that the clients' channel outlives the server.
  const std::string address = server_->address();
  channel_ = MakeChannel(address);
  auto session = Join("actor-0");
  Produce(session.get(), 12);
  auto learner = Learner();
  learner->Request(1);
  const auto before = learner->Next(kPatience);
  ASSERT_THAT(before, IsOk());
  Stop();
  Serve(options, address);
  channel_ = MakeChannel(address);
  Produce(session.get(), 20);
  learner->Request(1);
  const auto after = learner->Next(kPatience);
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(testing::PureBytes(*before), testing::PureBytes(*after));
  v1::ReadRangeRequest range;
  *range.mutable_hello() = MakeHello("run", 0);
  range.set_to(20);
  std::string columns;
  ASSERT_THAT(ReadRange(channel_, range, kPatience,
                        [&](const v1::RowRange& rows) {
                          columns += rows.columns();
                          return absl::OkStatus();
                        }),
              IsOk());
  for (int i = 0; i < 20; ++i) {
    float value = 0;
    std::memcpy(&value, columns.data() + 8 * i, sizeof value);
    EXPECT_EQ(value, static_cast<float>(i));
  }
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
