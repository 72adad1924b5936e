#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <set>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/rpc/channel.h"
#include "common/rpc/learner_client.h"
#include "datacom/v1/learner.grpc.pb.h"
#include "learner/learner_service.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::learner {
namespace {

using datacom::testing::IsOk;
using std::chrono::milliseconds;

Snapshot MakeSnapshot(uint32_t member, uint64_t update, size_t values = 3) {
  Snapshot snapshot;
  snapshot.run_id = "run";
  snapshot.member = member;
  snapshot.version = {1, update};
  snapshot.acting_rule = "gaussian_policy";
  snapshot.arrays.push_back({"actor.mean.0.bias", {static_cast<uint32_t>(values)}, std::vector<float>(values, update)});
  snapshot.scalars["delta"] = 0.5 * update;
  return snapshot;
}

v1::SubscribeRequest RequestFor(const std::vector<uint32_t>& members) {
  v1::SubscribeRequest request;
  *request.mutable_hello() = MakeHello("run", 0);
  for (const uint32_t member : members) request.add_members()->set_member(member);
  return request;
}

// Threads of this process; -1 where the system does not say.
int Threads() {
  int threads = -1;
  for (absl::string_view line : absl::StrSplit(*ReadFile("/proc/self/status"), '\n')) {
    if (absl::ConsumePrefix(&line, "Threads:") && !absl::SimpleAtoi(line, &threads)) return -1;
  }
  return threads;
}

class LearnerServiceTest : public ::testing::Test {
 protected:
  LearnerServiceTest()
      : served_(MakeRun(), temporary_.path(), Clock::Real()),
        service_("run", served_, [this](int count) { counted_ = count; }) {
    StartServer("127.0.0.1:0");
  }
  ~LearnerServiceTest() override { StopServer(); }
  // Two members; an evaluation has one episode.
  static RunIdentity MakeRun() {
    RunIdentity run;
    run.run_id = "run";
    const auto resolved = std::make_shared<v1::Experiment>();
    resolved->mutable_run()->set_eval_episodes(1);
    resolved->add_members(), resolved->add_members();
    run.settings.resolved = resolved;
    return run;
  }
  void StartServer(const std::string& address) {
    ServerOptions options;
    options.calls_per_second = 5000;  // 600 subscribers begin at once
    auto server = Server::Start(address, {&service_}, options);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    address_ = server_->address();
  }
  void StopServer() {
    if (server_ != nullptr) server_->Shutdown(milliseconds(0));
    server_.reset();
  }
  std::unique_ptr<SnapshotSubscriber> Subscribe(const std::string& run_id = "run", uint32_t members = 2) {
    std::vector<uint32_t> numbers(members);
    std::iota(numbers.begin(), numbers.end(), 0u);
    auto subscriber = SnapshotSubscriber::Start({MakeChannel(address_), run_id});
    subscriber->SetMembers(numbers);
    return subscriber;
  }
  static ::testing::AssertionResult Eventually(SnapshotSubscriber* subscriber, const std::function<bool()>& condition) {
    return Becomes(condition, [&] { subscriber->changes().Wait(milliseconds(100)); });
  }
  static ::testing::AssertionResult Becomes(
      const std::function<bool()>& condition, const std::function<void()>& step = [] { std::this_thread::yield(); }) {
    if (testing::WaitUntil(condition, step)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "did not happen";
  }
  static uint64_t UpdateOf(const SnapshotSubscriber& subscriber, uint32_t member) {
    const auto latest = subscriber.Latest(member);
    return latest == nullptr ? 0 : latest->version.update;
  }

  const datacom::testing::TemporaryFolder temporary_;
  std::atomic<int> counted_ = 0;  // the number of subscribers, as the service reports it
  ServedState served_;
  LearnerService service_;
  std::unique_ptr<Server> server_;
  std::string address_;
};

TEST_F(LearnerServiceTest, SubscribersSeeTheNewestWholeSnapshotOfEachMember) {
  served_.snapshots.Publish(MakeSnapshot(0, 10));
  auto subscriber = Subscribe();
  EXPECT_EQ(subscriber->Latest(1), nullptr);
  EXPECT_TRUE(Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 0) == 10; }));
  served_.snapshots.Publish(MakeSnapshot(1, 12, /*values=*/1'000'000));  // four chunks
  EXPECT_TRUE(Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 1) == 12; }));
  const auto latest = subscriber->Latest(1);
  EXPECT_EQ(latest->arrays[0].values, std::vector<float>(1'000'000, 12.0f));
  EXPECT_EQ(latest->scalars.at("delta"), 6);
  EXPECT_EQ(subscriber->discarded(), 0u);
  EXPECT_THAT(subscriber->status(), IsOk());
}

TEST_F(LearnerServiceTest, VersionsOnlyGrowWhileManyArePublished) {
  auto subscriber = Subscribe();
  std::thread publisher([&] {
    for (uint64_t update = 1; update <= 2000; ++update) served_.snapshots.Publish(MakeSnapshot(0, update));
  });
  uint64_t last = 0;
  EXPECT_TRUE(Eventually(subscriber.get(), [&] {
    const uint64_t now = UpdateOf(*subscriber, 0);
    EXPECT_GE(now, last);
    last = now;
    const auto latest = subscriber->Latest(0);
    if (latest != nullptr) {
      EXPECT_EQ(latest->arrays[0].values[2], static_cast<float>(latest->version.update));
    }
    return now == 2000;
  }));
  publisher.join();
}

TEST_F(LearnerServiceTest, ASubscriberReturnsAfterAnOutageAndIgnoresOlderSnapshots) {
  served_.snapshots.Publish(MakeSnapshot(0, 5));
  auto subscriber = Subscribe();
  ASSERT_TRUE(Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 0) == 5; }));
  const std::string address = address_;
  StopServer();
  served_.snapshots.Publish(MakeSnapshot(0, 3));  // an older one must be ignored
  served_.snapshots.Publish(MakeSnapshot(1, 1));
  StartServer(address);
  ASSERT_TRUE(Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 1) == 1; }));
  EXPECT_EQ(UpdateOf(*subscriber, 0), 5u);
  served_.snapshots.Publish(MakeSnapshot(0, 9));
  EXPECT_TRUE(Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 0) == 9; }));
}

TEST_F(LearnerServiceTest, ASubscriberThatChangesItsMembersGetsOnlyWhatItLacks) {
  served_.snapshots.Publish(MakeSnapshot(0, 5));
  served_.snapshots.Publish(MakeSnapshot(1, 6));
  auto subscriber = SnapshotSubscriber::Start({MakeChannel(address_), "run"});
  EXPECT_EQ(subscriber->Latest(0), nullptr);
  subscriber->SetMembers({0});
  ASSERT_TRUE(Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 0) == 5; }));
  const auto held = subscriber->Latest(0);
  subscriber->SetMembers({0, 1});
  ASSERT_TRUE(Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 1) == 6; }));
  EXPECT_EQ(subscriber->Latest(0), held);
  subscriber->SetMembers({1});
  EXPECT_EQ(subscriber->Latest(0), nullptr);
  served_.snapshots.Publish(MakeSnapshot(0, 7));
  served_.snapshots.Publish(MakeSnapshot(1, 8));
  ASSERT_TRUE(Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 1) == 8; }));
  subscriber->SetMembers({});
  EXPECT_TRUE(Becomes([&] { return counted_ == 0; }));
}

TEST_F(LearnerServiceTest, ASnapshotThatTheSubscriberHasIsNotSentAgain) {
  served_.snapshots.Publish(MakeSnapshot(0, 5));
  served_.snapshots.Publish(MakeSnapshot(1, 5));
  const auto stub = v1::Learner::NewStub(MakeChannel(address_));
  v1::SubscribeRequest request = RequestFor({});
  for (const auto& [member, update] : {std::pair(0, 5), std::pair(1, 4)}) {
    v1::Subscription* subscription = request.add_members();
    subscription->set_member(member);
    subscription->mutable_version()->set_incarnation(1);
    subscription->mutable_version()->set_update(update);
  }
  grpc::ClientContext context;
  const auto reader = stub->Subscribe(&context, request);
  v1::SnapshotChunk chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.manifest().member(), 1u);
  served_.snapshots.Publish(MakeSnapshot(0, 9));
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.manifest().member(), 0u);
  EXPECT_EQ(chunk.manifest().version().update(), 9u);
  served_.snapshots.Close();
}

TEST_F(LearnerServiceTest, ASubscriptionWithoutMembersOrWithAMemberTwiceIsRefused) {
  const auto stub = v1::Learner::NewStub(MakeChannel(address_));
  v1::SubscribeRequest request = RequestFor({});
  grpc::ClientContext first, second;
  EXPECT_EQ(stub->Subscribe(&first, request)->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.add_members()->set_member(1);
  request.add_members()->set_member(1);
  EXPECT_EQ(stub->Subscribe(&second, request)->Finish().error_message(), "member 1 was requested twice");
}

TEST_F(LearnerServiceTest, SubscribersOfAnotherRunAreRefusedPermanently) {
  auto subscriber = Subscribe("another run");
  EXPECT_TRUE(Eventually(subscriber.get(), [&] { return !subscriber->status().ok(); }));
  EXPECT_TRUE(absl::IsFailedPrecondition(subscriber->status()));
  auto too_many = Subscribe("run", /*members=*/3);
  EXPECT_TRUE(Eventually(too_many.get(), [&] { return absl::IsInvalidArgument(too_many->status()); }));
}

TEST_F(LearnerServiceTest, EvaluatorsLeaseFetchAndReport) {
  ASSERT_THAT(served_.policies.Write(0, {MakeSnapshot(0, 0), MakeSnapshot(1, 7)}), IsOk());
  v1::EpochRecord record;
  record.add_members()->set_evaluated(true);
  record.add_members();
  served_.evaluations.Add(record);
  const auto channel = MakeChannel(address_);
  v1::LeaseRequest lease;
  *lease.mutable_hello() = MakeHello("run", 0);
  lease.set_evaluator("e");
  const auto item = LeaseEvaluation(channel, lease);
  ASSERT_THAT(item, IsOk());
  EXPECT_EQ(item->member(), 1u);
  v1::FetchRequest fetch;
  *fetch.mutable_hello() = MakeHello("run", 0);
  fetch.set_member(1);
  const auto snapshot = FetchSnapshot(channel, fetch);
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(snapshot->version.update, 7u);
  fetch.set_member(2);
  EXPECT_TRUE(absl::IsNotFound(FetchSnapshot(channel, fetch).status()));
  fetch.set_epoch(9);
  EXPECT_TRUE(absl::IsNotFound(FetchSnapshot(channel, fetch).status()));
  v1::ReportRequest report;
  *report.mutable_hello() = MakeHello("run", 0);
  report.set_lease(item->lease());
  report.set_member(1);
  report.add_episodes();
  const auto reply = ReportEvaluation(channel, report);
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->accepted());
  const auto info = GetLearnerInfo(channel, testing::kPatience);
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->pending_evaluations(), 0u);
}

// Ends the stream from this side. What had arrived is read and dropped.
void Leave(grpc::ClientContext* context, grpc::ClientReader<v1::SnapshotChunk>* reader) {
  context->TryCancel();
  v1::SnapshotChunk chunk;
  while (reader->Read(&chunk)) {
  }
  reader->Finish();
}

// On a connection of its own, whose windows do not grow: a message of 1 MB has left the server only after it is read.
std::unique_ptr<v1::Learner::Stub> NarrowStub(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return v1::Learner::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

// Open subscriptions that nobody reads.
class SilentSubscribers {
 public:
  SilentSubscribers(const std::string& address, int count) : stub_(v1::Learner::NewStub(MakeChannel(address))) {
    const v1::SubscribeRequest request = RequestFor({0, 1});
    for (int i = 0; i < count; ++i) {
      contexts_.push_back(std::make_unique<grpc::ClientContext>());
      readers_.push_back(stub_->Subscribe(contexts_.back().get(), request));
    }
  }
  // Blocks until the server has ended every stream. What had arrived of a snapshot is read and dropped.
  std::set<grpc::StatusCode> Ends() {
    std::set<grpc::StatusCode> ends;
    v1::SnapshotChunk chunk;
    for (const auto& reader : readers_) {
      while (reader->Read(&chunk)) {
      }
      ends.insert(reader->Finish().error_code());
    }
    return ends;
  }

 private:
  const std::unique_ptr<v1::Learner::Stub> stub_;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::SnapshotChunk>>> readers_;
};

TEST_F(LearnerServiceTest, SixHundredSubscribersThatNeverReadHoldNoThreadsAndDelayNobody) {
  SilentSubscribers silent(address_, 600);
  ASSERT_TRUE(Becomes([&] { return counted_ == 600; }));
  served_.snapshots.Publish(MakeSnapshot(0, 1, /*values=*/30'000));  // more than fits into a stream that nobody reads
  auto subscriber = Subscribe();
  EXPECT_TRUE(Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 0) == 1; }));
  served_.snapshots.Publish(MakeSnapshot(0, 2, /*values=*/30'000));
  served_.snapshots.Publish(MakeSnapshot(1, 3));
  EXPECT_TRUE(
      Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 0) == 2 && UpdateOf(*subscriber, 1) == 3; }));
  EXPECT_EQ(counted_, 601);
  EXPECT_LT(Threads(), 64);
  EXPECT_GT(Threads(), 0);
  subscriber.reset();
  served_.snapshots.Close();
  StopServer();
  EXPECT_EQ(counted_, 0);
  for (const grpc::StatusCode end : silent.Ends()) {
    EXPECT_TRUE(end == grpc::StatusCode::UNAVAILABLE || end == grpc::StatusCode::CANCELLED) << end;
  }
}

TEST_F(LearnerServiceTest, ASlowSubscriberGetsTheNewestSnapshotsOnlyAndItsMembersTakeTurns) {
  const auto stub = v1::Learner::NewStub(MakeChannel(address_));
  const v1::SubscribeRequest request = RequestFor({0, 1});
  grpc::ClientContext context;
  const auto reader = stub->Subscribe(&context, request);
  served_.snapshots.Publish(MakeSnapshot(0, 1, /*values=*/4'000'000));  // 16 MB: more than any buffer takes
  v1::SnapshotChunk chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  for (uint64_t update = 2; update <= 20; ++update) {
    for (const uint32_t member : {0, 1}) served_.snapshots.Publish(MakeSnapshot(member, update));
  }
  std::vector<std::pair<uint32_t, uint64_t>> begun;  // member, update
  for (bool more = true; more; more = begun.size() < 3 && reader->Read(&chunk)) {
    if (chunk.has_manifest()) begun.emplace_back(chunk.manifest().member(), chunk.manifest().version().update());
  }
  EXPECT_EQ(begun, (std::vector<std::pair<uint32_t, uint64_t>>{{0, 1}, {1, 20}, {0, 20}}));
  context.TryCancel();
  EXPECT_TRUE(Becomes([&] { return counted_ == 0; }));
}

TEST_F(LearnerServiceTest, SubscribersThatKeepTooManyOldSnapshotsAliveAreCancelledTheIdlestFirst) {
  constexpr int kSilent = 40;
  const auto stub = v1::Learner::NewStub(MakeChannel(address_));
  const v1::SubscribeRequest request = RequestFor({0, 1});
  grpc::ClientContext diligent;
  const auto diligent_reader = stub->Subscribe(&diligent, request);
  std::atomic<uint64_t> diligent_update{0};
  std::thread reading([&] {
    v1::SnapshotChunk chunk;
    while (diligent_reader->Read(&chunk)) {
      if (chunk.has_manifest()) diligent_update = chunk.manifest().version().update();
    }
  });
  const auto silent = NarrowStub(address_);
  grpc::ClientContext contexts[kSilent];
  std::vector<std::unique_ptr<grpc::ClientReader<v1::SnapshotChunk>>> readers;
  std::vector<std::weak_ptr<const PublishedSnapshot>> published;
  for (int i = 0; i < kSilent; ++i) {  // two streams each keep a snapshot of 1 MB alive, 20 MB together
    if (i % 2 == 0) {
      served_.snapshots.Publish(MakeSnapshot(0, i + 1, /*values=*/250'000));
      published.push_back(served_.snapshots.Latest(0));
    }
    readers.push_back(silent->Subscribe(&contexts[i], request));
    readers.back()->WaitForInitialMetadata();
  }
  uint64_t update = kSilent;
  EXPECT_TRUE(Becomes([&] {  // streams are cancelled when something is published
    served_.snapshots.Publish(MakeSnapshot(0, ++update));
    int64_t alive = 0;
    for (const auto& each : published) {
      if (const PublishedPtr snapshot = each.lock()) alive += snapshot->bytes();
    }
    return alive <= 18 * 1'000'000;  // 16 of the largest and one of each member
  }));
  EXPECT_TRUE(Becomes([&] { return diligent_update == update; })) << "the stream that reads continues";
  v1::SnapshotChunk chunk;
  while (readers.front()->Read(&chunk)) {
  }
  EXPECT_EQ(readers.front()->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(readers.back()->Read(&chunk));
  EXPECT_EQ(chunk.manifest().version().update(), 39u);
  diligent.TryCancel();
  reading.join();
  diligent_reader->Finish();
  for (int i = 1; i < kSilent; ++i) Leave(&contexts[i], readers[i].get());
}

// A slow link: a stream that sends the oldest snapshot of all and completes a chunk now and then.
TEST_F(LearnerServiceTest, AStreamThatReadsSlowlyOutlivesThoseThatDoNotRead) {
  constexpr int kSilent = 18;
  constexpr size_t kValues = 1'300'000;  // five chunks
  const auto stub = NarrowStub(address_), silent = NarrowStub(address_);
  const v1::SubscribeRequest request = RequestFor({0});
  grpc::ClientContext slow, contexts[kSilent];
  const auto slow_reader = stub->Subscribe(&slow, request);
  served_.snapshots.Publish(MakeSnapshot(0, 1, kValues));
  v1::SnapshotChunk chunk;
  ASSERT_TRUE(slow_reader->Read(&chunk));
  std::vector<std::unique_ptr<grpc::ClientReader<v1::SnapshotChunk>>> readers;
  for (int i = 0; i < kSilent; ++i) {
    served_.snapshots.Publish(MakeSnapshot(0, i + 2, kValues));
    readers.push_back(silent->Subscribe(&contexts[i], request));
    readers.back()->WaitForInitialMetadata();
  }
  for (int read = 0; read < 3; ++read) ASSERT_TRUE(slow_reader->Read(&chunk)) << read;
  served_.snapshots.Publish(MakeSnapshot(0, kSilent + 2, kValues));  // one snapshot too many
  ASSERT_TRUE(Becomes([&] { return counted_ == kSilent; })) << "one of all streams is cancelled";
  while (readers.front()->Read(&chunk)) {
  }
  EXPECT_EQ(readers.front()->Finish().error_code(), grpc::StatusCode::CANCELLED) << "it has not read for the longest";
  bool manifest = false;
  while (!manifest && slow_reader->Read(&chunk)) manifest = chunk.has_manifest();
  EXPECT_TRUE(manifest) << "the slow stream has come to the next snapshot";
  EXPECT_EQ(chunk.manifest().version().update(), kSilent + 2u);
  Leave(&slow, slow_reader.get());
  for (int i = 1; i < kSilent; ++i) Leave(&contexts[i], readers[i].get());
}

TEST_F(LearnerServiceTest, SubscribersBeyondTheLimitAreRefusedUntilAnotherLeaves) {
  LearnerService service(
      "run", served_, [this](int count) { counted_ = count; }, /*max_subscribers=*/1);
  const auto server = *Server::Start("127.0.0.1:0", {&service});
  const auto stub = v1::Learner::NewStub(MakeChannel(server->address()));
  served_.snapshots.Publish(MakeSnapshot(0, 1));
  const v1::SubscribeRequest request = RequestFor({0});
  v1::SnapshotChunk chunk;
  grpc::ClientContext first, refused, second;
  const auto admitted = stub->Subscribe(&first, request);
  ASSERT_TRUE(admitted->Read(&chunk));
  EXPECT_EQ(stub->Subscribe(&refused, request)->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  first.TryCancel();
  ASSERT_TRUE(Becomes([&] { return counted_ == 0; }));
  const auto next = stub->Subscribe(&second, request);
  EXPECT_TRUE(next->Read(&chunk));
  served_.snapshots.Close();
  EXPECT_FALSE(next->Read(&chunk));
  EXPECT_EQ(next->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Sends given chunks to every subscriber.
class RawService final : public v1::Learner::Service {
 public:
  explicit RawService(std::vector<v1::SnapshotChunk> chunks) : chunks_(std::move(chunks)) {}
  grpc::Status Subscribe(grpc::ServerContext* context, const v1::SubscribeRequest*,
                         grpc::ServerWriter<v1::SnapshotChunk>* writer) override {
    for (const v1::SnapshotChunk& chunk : chunks_) writer->Write(chunk);
    return grpc::Status::OK;
  }

 private:
  const std::vector<v1::SnapshotChunk> chunks_;
};

TEST_F(LearnerServiceTest, DamagedSnapshotsAreCountedAndIgnored) {
  const auto chunks_of = [](const Snapshot& snapshot) {
    std::vector<v1::SnapshotChunk> chunks;
    const PublishedSnapshot published(snapshot);
    for (grpc::ByteBuffer bytes : published.chunks())
      EXPECT_TRUE(grpc::SerializationTraits<v1::SnapshotChunk>::Deserialize(&bytes, &chunks.emplace_back()).ok());
    return chunks;
  };
  std::vector<v1::SnapshotChunk> sent;
  v1::SnapshotChunk flipped = chunks_of(MakeSnapshot(0, 50)).front();
  (*flipped.mutable_data())[1] ^= 4;
  sent.push_back(flipped);  // wrong checksum
  v1::SnapshotChunk headless = chunks_of(MakeSnapshot(0, 60)).front();
  headless.clear_manifest();
  sent.push_back(headless);                                            // no manifest
  sent.push_back(chunks_of(MakeSnapshot(0, 70, 1'000'000)).front());   // cut short: the next one begins before it ends
  sent.push_back(chunks_of(MakeSnapshot(0, 4)).front());               // sound
  v1::SnapshotChunk foreign = chunks_of(MakeSnapshot(7, 90)).front();  // not requested
  sent.push_back(foreign);
  RawService raw(sent);
  auto server = *Server::Start("127.0.0.1:0", {&raw});
  auto subscriber = SnapshotSubscriber::Start({MakeChannel(server->address()), "run"});
  subscriber->SetMembers({0});
  EXPECT_TRUE(
      Eventually(subscriber.get(), [&] { return UpdateOf(*subscriber, 0) == 4 && subscriber->discarded() >= 3; }));
  EXPECT_EQ(UpdateOf(*subscriber, 0), 4u);
  subscriber.reset();
  server->Shutdown(milliseconds(0));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
