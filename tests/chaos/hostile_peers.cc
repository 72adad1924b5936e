// Peers that try to use up the memory of a run's replay and learner, as one process of their own, until they are
// killed.
//
// usage: hostile_peers REPLAY LEARNER RUN_ID
//
// 600 deaf subscribers, each on a connection of its own, never read. When the learner has sent each of them something,
// "ready" is printed. From then on a round comes whenever the learner has published a policy 2,000 updates newer:
// twenty streams of three large messages each at the replay, sixty leases with names of 2 MiB at the learner, and each
// of sixteen slow readers reads one message. Rounds follow the run's updates, so the number of hostile messages per
// update does not depend on the machine's load.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/channel.h"
#include "common/rpc/learner_client.h"
#include "datacom/v1/learner.grpc.pb.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace datacom {
namespace {

constexpr int kDeaf = 600, kSlow = 16, kStreams = 20, kMessages = 3, kLeases = 60;
constexpr uint64_t kUpdatesPerRound = 2000;
constexpr size_t kMegabyte = 1 << 20;

// gRPC shares connections between equal channels, but not between these.
std::shared_ptr<grpc::Channel> OwnConnection(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

class Subscriber {
 public:
  Subscriber(const std::string& learner, const std::string& run_id)
      : stub_(v1::Learner::NewStub(OwnConnection(learner))) {
    v1::SubscribeRequest request;
    *request.mutable_hello() = MakeHello(run_id, 0);
    request.add_members();  // member 0
    reader_ = stub_->Subscribe(&context_, request);
  }
  void WaitUntilServed() { reader_->WaitForInitialMetadata(); }
  void ReadOne() {
    v1::SnapshotChunk chunk;
    reader_->Read(&chunk);
  }

 private:
  const std::unique_ptr<v1::Learner::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::SnapshotChunk>> reader_;
};

void SendLargeMessages(const std::string& replay, size_t bytes) {
  using Call = grpc::ClientReaderWriter<v1::InsertRequest, v1::InsertReply>;
  v1::InsertRequest message;
  message.mutable_chunk()->set_columns(std::string(bytes, 'x'));
  std::vector<std::unique_ptr<v1::Replay::Stub>> stubs;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kStreams; ++i) {
    stubs.push_back(v1::Replay::NewStub(OwnConnection(replay)));
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    calls.push_back(stubs.back()->Insert(contexts.back().get()));
  }
  for (int message_of_all = 0; message_of_all < kMessages; ++message_of_all) {
    for (const auto& call : calls) call->Write(message);
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    contexts[i]->TryCancel();
    calls[i]->Finish();
  }
}

void LeaseUnderLongNames(v1::Learner::Stub* learner, const std::string& run_id) {
  for (int i = 0; i < kLeases; ++i) {
    grpc::ClientContext context;
    v1::LeaseRequest request;
    *request.mutable_hello() = MakeHello(run_id, 0);
    request.set_evaluator(std::to_string(i) + std::string(2 * kMegabyte, 'n'));
    v1::LeaseReply reply;
    learner->Lease(&context, request, &reply);
  }
}

[[noreturn]] void Attack(const std::string& replay, const std::string& learner, const std::string& run_id) {
  std::vector<std::unique_ptr<Subscriber>> deaf, slow;
  for (int i = 0; i < kDeaf; ++i) deaf.push_back(std::make_unique<Subscriber>(learner, run_id));
  for (int i = 0; i < kSlow; ++i) slow.push_back(std::make_unique<Subscriber>(learner, run_id));
  for (const auto& subscriber : deaf) subscriber->WaitUntilServed();
  std::puts("ready");
  std::fflush(stdout);
  const auto evaluations = v1::Learner::NewStub(OwnConnection(learner));
  const auto attentive = SnapshotSubscriber::Start({.channel = OwnConnection(learner), .run_id = run_id});
  attentive->SetMembers({0});
  uint64_t next = 0;
  for (int round = 0;; ++round) {
    for (std::shared_ptr<const Snapshot> latest; latest == nullptr || latest->version.update < next;) {
      attentive->changes().Wait(std::chrono::seconds(1));
      latest = attentive->Latest(0);
    }
    next = attentive->Latest(0)->version.update + kUpdatesPerRound;
    const size_t sizes[] = {15 * kMegabyte, 4 * kMegabyte, kMegabyte};
    SendLargeMessages(replay, sizes[round % 3]);
    LeaseUnderLongNames(evaluations.get(), run_id);
    for (const auto& subscriber : slow) subscriber->ReadOne();
  }
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: hostile_peers REPLAY LEARNER RUN_ID\n");
    return 2;
  }
  datacom::Attack(argv[1], argv[2], argv[3]);
}
// SPDX-License-Identifier: Apache-2.0
