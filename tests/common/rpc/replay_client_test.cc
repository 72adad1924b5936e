#include "common/rpc/replay_client.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/channel.h"
#include "common/rpc/insert_session.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Pair;

using testing::kPatience;

// A message, then the status of a stream that was reset.
class CutRange : public v1::Replay::Service {
 public:
  grpc::Status ReadRange(grpc::ServerContext*, const v1::ReadRangeRequest*,
                         grpc::ServerWriter<v1::RowRange>* writer) override {
    writer->Write(v1::RowRange());
    return grpc::Status::CANCELLED;
  }
};

// The caller would take CANCELLED for a request to stop.
TEST(ReadRange, ACallCancelledByThePeerIsTransient) {
  CutRange service;
  const auto server = Server::Start("127.0.0.1:0", {&service}).value();
  int messages = 0;
  const absl::Status status = ReadRange(server->InProcessChannel(), {}, kPatience, [&](const v1::RowRange&) {
    ++messages;
    return absl::OkStatus();
  });
  EXPECT_EQ(messages, 1);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(ReadRange, ReturnsTheConsumersErrorUnchanged) {
  CutRange service;
  const auto server = Server::Start("127.0.0.1:0", {&service}).value();
  const absl::Status status = ReadRange(server->InProcessChannel(), {}, kPatience,
                                        [](const v1::RowRange&) { return absl::DataLossError("a row too many"); });
  EXPECT_EQ(status, absl::DataLossError("a row too many"));
}

// Keeps the releases, and for each chunk whether another one follows. Acknowledges no row; or it does, and gives credit
// with all acknowledgements but a member's first one.
class DeafReplay : public v1::Replay::Service {
 public:
  explicit DeafReplay(bool acknowledges = false) : acknowledges_(acknowledges) {}

  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest*, v1::RegisterReply* reply) override {
    reply->set_session(1);
    Assign(reply->mutable_assignment());
    return grpc::Status::OK;
  }

  grpc::Status Insert(grpc::ServerContext*,
                      grpc::ServerReaderWriter<v1::InsertReply, v1::InsertRequest>* stream) override {
    v1::InsertRequest request;
    stream->Read(&request);
    v1::InsertReply reply;
    Assign(reply.mutable_assignment());
    for (const uint32_t member : {0, 1, 2}) {
      reply.add_committed()->set_member(member);
      v1::Credit* credit = reply.add_credit();
      credit->set_member(member);
      credit->set_limit(8);
    }
    stream->Write(reply);
    while (stream->Read(&request)) {
      if (acknowledges_ && request.has_chunk()) stream->Write(Acknowledge(request.chunk()));
      MutexLock lock(&mutex_);
      for (const uint32_t member : request.release().members()) released_.push_back(member);
      if (request.has_chunk()) more_.push_back(request.chunk().more());
      changed_.NotifyAll();
    }
    return grpc::Status::OK;
  }

  // Waits until `member` is released. Returns all releases so far, in order.
  std::vector<uint32_t> ReleasesUntil(uint32_t member) {
    MutexLock lock(&mutex_);
    while (std::find(released_.begin(), released_.end(), member) == released_.end()) changed_.Wait(&mutex_);
    return released_;
  }

  // Waits for so many chunks.
  std::vector<bool> More(size_t chunks) {
    MutexLock lock(&mutex_);
    while (more_.size() < chunks) changed_.Wait(&mutex_);
    return more_;
  }

 private:
  static void Assign(v1::Assignment* assignment) {
    assignment->set_number(1);
    for (const uint32_t member : {0, 1, 2}) assignment->add_members()->set_member(member);
  }

  static v1::InsertReply Acknowledge(const v1::Chunk& chunk) {
    v1::InsertReply reply;
    v1::Committed* const committed = reply.add_committed();
    committed->set_member(chunk.member());
    committed->set_next_sequence(chunk.first_sequence() + chunk.row_count());
    if (chunk.first_sequence() == 0) return reply;
    v1::Credit* const credit = reply.add_credit();
    credit->set_member(chunk.member());
    credit->set_limit(16);
    return reply;
  }

  const bool acknowledges_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<uint32_t> released_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> more_ ABSL_GUARDED_BY(mutex_);
};

// A session with credit.
std::unique_ptr<InsertSession> Join(Server* server) {
  InsertSession::Options options;
  options.channel = server->InProcessChannel();
  options.run_id = "run";
  options.actor = "actor";
  options.incarnation = 1;
  auto session = InsertSession::Register(options).value();
  EXPECT_THAT(session->Start(7), IsOk());
  while (session->allowance(1).rows == 0) session->changes().Wait(kPatience);
  return session;
}

TEST(InsertSession, ChunksThatAreSentTogetherSayThatAnotherFollows) {
  DeafReplay service;
  const auto server = Server::Start("127.0.0.1:0", {&service}).value();
  auto session = Join(server.get());
  for (const uint32_t member : {0, 1, 2}) ASSERT_THAT(session->Append(member, 1, "columns", ""), IsOk());
  session->Send();
  EXPECT_THAT(service.More(3), ElementsAre(true, true, false));
  ASSERT_THAT(session->Append(1, 1, "columns", ""), IsOk());
  session->Send();
  EXPECT_THAT(service.More(4), ElementsAre(true, true, false, false));
  session.reset();
}

TEST(InsertSession, AReleaseThatWaitsForItsRowsDoesNotRepeatTheOneBefore) {
  DeafReplay service;
  const auto server = Server::Start("127.0.0.1:0", {&service}).value();
  auto session = Join(server.get());
  ASSERT_THAT(session->Append(1, 1, "columns", ""), IsOk());  // never acknowledged
  session->Send();
  session->Release(0, 1);
  EXPECT_THAT(service.ReleasesUntil(0), ElementsAre(0));
  session->Release(1, 1);
  session->Release(2, 1);
  EXPECT_THAT(service.ReleasesUntil(2), ElementsAre(0, 2));
  session.reset();
}

TEST(InsertSession, AnAcknowledgementWithoutCreditIsNoChangeForTheCaller) {
  constexpr std::chrono::nanoseconds kNow{0};
  DeafReplay service(/*acknowledges=*/true);
  const auto server = Server::Start("127.0.0.1:0", {&service}).value();
  auto session = Join(server.get());
  session->changes().Wait(kNow);  // the reply that Join has seen
  ASSERT_THAT(session->Append(1, 1, "columns", ""), IsOk());
  ASSERT_THAT(session->Flush(kPatience), IsOk());
  EXPECT_FALSE(session->changes().Wait(kNow));
  ASSERT_THAT(session->Append(1, 1, "columns", ""), IsOk());
  ASSERT_THAT(session->Flush(kPatience), IsOk());
  EXPECT_TRUE(session->changes().Wait(kNow)) << "this one comes with credit";
  session.reset();
}

// Answers no draw but the one of update 1, when it has read the request of update `answer_at` (0: not even this one).
// Keeps (draw_update, completed_update) of each request after the first.
class SlowReplay : public v1::Replay::Service {
 public:
  explicit SlowReplay(uint64_t answer_at = 0) : answer_at_(answer_at) {}

  grpc::Status Draw(grpc::ServerContext*, grpc::ServerReaderWriter<v1::DrawReply, v1::DrawRequest>* stream) override {
    v1::DrawRequest request;
    stream->Read(&request);
    while (stream->Read(&request)) {
      if (answer_at_ > 0 && request.draw_update() == answer_at_) {
        v1::DrawReply reply;
        reply.set_update(1);
        reply.add_batches();
        stream->Write(reply);
      }
      MutexLock lock(&mutex_);
      requests_.emplace_back(request.draw_update(), request.completed_update());
      changed_.NotifyAll();
    }
    return grpc::Status::OK;
  }

  std::vector<std::pair<uint64_t, uint64_t>> Requests(size_t count) {
    MutexLock lock(&mutex_);
    while (requests_.size() < count) changed_.Wait(&mutex_);
    return requests_;
  }

 private:
  const uint64_t answer_at_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::pair<uint64_t, uint64_t>> requests_ ABSL_GUARDED_BY(mutex_);
};

TEST(DrawStream, RequestsBeyondTheFirst24TravelWithAnAnnouncement) {
  SlowReplay service;
  const auto server = Server::Start("127.0.0.1:0", {&service}).value();
  auto draws = DrawStream::Open({.channel = server->InProcessChannel(), .run_id = "run"});
  for (uint64_t update = 1; update <= 30; ++update) draws->Request(update);
  std::vector<std::pair<uint64_t, uint64_t>> expected;
  for (uint64_t update = 1; update <= 24; ++update) expected.emplace_back(update, 0);
  EXPECT_THAT(service.Requests(24), ElementsAreArray(expected));
  draws->Announce(3);
  for (uint64_t update = 25; update <= 30; ++update) expected.emplace_back(update, 3);
  EXPECT_THAT(service.Requests(30), ElementsAreArray(expected));
  draws.reset();
}

TEST(DrawStream, ADrawThatHasComeMakesRoomForTheNextRequest) {
  SlowReplay service(/*answer_at=*/24);
  const auto server = Server::Start("127.0.0.1:0", {&service}).value();
  auto draws = DrawStream::Open({.channel = server->InProcessChannel(), .run_id = "run"});
  for (uint64_t update = 1; update <= 30; ++update) draws->Request(update);
  EXPECT_THAT(service.Requests(25).back(), Pair(25, 0));
  EXPECT_EQ(draws->Next(kPatience).value().update(), 1u);
  draws.reset();
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
