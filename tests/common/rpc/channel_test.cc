#include "common/rpc/channel.h"

#include <set>
#include <thread>

#include "common/base/version.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;
using testing::kPatience;

// Answers only Info.
class FakeReplay : public v1::Replay::Service {
 public:
  grpc::Status Info(grpc::ServerContext*, const v1::ReplayInfoRequest* request, v1::ReplayInfo* reply) override {
    if (request->hello().run_id() == "refuse") return ToGrpc(absl::FailedPreconditionError("wrong run"));
    reply->set_run_id(request->hello().run_id());
    return grpc::Status::OK;
  }
};

std::unique_ptr<Server> StartServer(FakeReplay* service, const std::string& address = "127.0.0.1:0") {
  return Server::Start(address, {service}).value();
}

grpc::Status CallInfo(const std::shared_ptr<grpc::Channel>& channel, const std::string& run, v1::ReplayInfo* reply) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::ReplayInfoRequest request;
  *request.mutable_hello() = MakeHello(run, 0);
  return v1::Replay::NewStub(channel)->Info(&context, request, reply);
}

TEST(Server, AnswersOnItsPortAndInProcess) {
  FakeReplay service;
  const auto server = StartServer(&service);
  EXPECT_THAT(server->address(), ::testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  for (const auto& channel : {MakeChannel(server->address()), server->InProcessChannel()}) {
    v1::ReplayInfo reply;
    const grpc::Status status = CallInfo(channel, "r", &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(reply.run_id(), "r");
  }
}

TEST(Server, RefusesAPortInUseNamingIt) {
  FakeReplay service, other;
  const auto server = StartServer(&service);
  const absl::Status status = Server::Start(server->address(), {&other}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(server->address()));
}

TEST(Server, RefusesAnInvalidAddressNamingIt) {
  FakeReplay service;
  const absl::Status status = Server::Start("nonsense", {&service}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("nonsense"));
}

TEST(Server, ThePortIsFreeAgainAfterShutdown) {
  FakeReplay service;
  auto server = StartServer(&service);
  const std::string address = server->address();
  server->Shutdown(kPatience);
  server->Shutdown(kPatience);  // a second call is harmless
  server.reset();
  EXPECT_EQ(StartServer(&service, address)->address(), address);
}

TEST(Server, AClientReconnectsToARestartedServer) {
  FakeReplay service;
  auto server = StartServer(&service);
  const std::string address = server->address();
  const auto channel = MakeChannel(address);
  v1::ReplayInfo reply;
  ASSERT_THAT(FromGrpc(CallInfo(channel, "r", &reply)), IsOk());
  server.reset();
  EXPECT_TRUE(IsTransient(FromGrpc(CallInfo(channel, "r", &reply))));
  server = StartServer(&service, address);
  ASSERT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + kPatience));
  EXPECT_THAT(FromGrpc(CallInfo(channel, "r", &reply)), IsOk());
}

TEST(CheckHealth, FollowsTheServersState) {
  FakeReplay service;
  auto server = StartServer(&service);
  EXPECT_THAT(CheckHealth(server->address(), kPatience), IsOk());
  server->SetServing(false);
  const absl::Status down = CheckHealth(server->address(), kPatience);
  EXPECT_THAT(std::string(down.message()), HasSubstr("not serving"));
  server->SetServing(true);
  EXPECT_THAT(CheckHealth(server->address(), kPatience), IsOk());
  const std::string address = server->address();
  server.reset();
  const absl::Status gone = CheckHealth(address, kPatience);
  EXPECT_FALSE(gone.ok());
  EXPECT_THAT(std::string(gone.message()), HasSubstr(address));
}

TEST(Hello, AcceptsItsOwnBuildAndRun) {
  EXPECT_THAT(CheckHello(MakeHello("run", 5), "run", 5), IsOk());
  EXPECT_THAT(CheckHello(MakeHello("run", 0), "run", 0), IsOk());
  EXPECT_THAT(CheckHello(MakeHello("run", 9), "run", 0), IsOk()) << "0: the service has no schema";
}

TEST(Hello, RefusalsNameBothValues) {
  const absl::Status run = CheckHello(MakeHello("theirs", 5), "ours", 5);
  EXPECT_EQ(run.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(run.message()), ::testing::AllOf(HasSubstr("theirs"), HasSubstr("ours")));

  const absl::Status schema = CheckHello(MakeHello("run", 0xabc), "run", 0xdef);
  EXPECT_EQ(schema.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(schema.message()),
              ::testing::AllOf(HasSubstr("0000000000000abc"), HasSubstr("0000000000000def")));

  v1::Hello old = MakeHello("run", 5);
  old.set_protocol(kProtocolVersion + 41);
  const absl::Status protocol = CheckHello(old, "run", 5);
  EXPECT_EQ(protocol.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(protocol.message()),
              ::testing::AllOf(HasSubstr(std::to_string(kProtocolVersion + 41)),
                               HasSubstr("speaks " + std::to_string(kProtocolVersion))));
  EXPECT_FALSE(IsTransient(run) || IsTransient(schema) || IsTransient(protocol)) << "never retried";
}

TEST(Status, CrossesTheWireWithCodeAndMessage) {
  FakeReplay service;
  const auto server = StartServer(&service);
  v1::ReplayInfo reply;
  EXPECT_EQ(FromGrpc(CallInfo(server->InProcessChannel(), "refuse", &reply)),
            absl::FailedPreconditionError("wrong run"));
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "text");
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
}

TEST(Status, ACallThatAServerShortOfMemoryResetIsTriedAgain) {
  const auto exhausted = [](const char* message) {
    return FromGrpc(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, message));
  };
  EXPECT_TRUE(IsTransient(exhausted("Received RST_STREAM with error code 11")));
  EXPECT_EQ(exhausted("there are already 600 snapshot subscribers").code(), absl::StatusCode::kResourceExhausted);
}

TEST(Backoff, DoublesUpToTwoSecondsWithJitterAndCanBeReset) {
  Backoff backoff(1);
  double plain = 50;
  for (int i = 0; i < 40; ++i) {
    const double wait = static_cast<double>(backoff.Next().count());
    EXPECT_GE(wait, 0.8 * plain - 1) << i;
    EXPECT_LE(wait, 1.2 * plain) << i;
    plain = std::min(2000.0, 2 * plain);
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next().count(), 60);
  std::set<int64_t> firsts;
  for (uint64_t seed = 0; seed < 100; ++seed) firsts.insert(Backoff(seed).Next().count());
  EXPECT_GT(firsts.size(), 10u) << "clients do not retry in step";
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
