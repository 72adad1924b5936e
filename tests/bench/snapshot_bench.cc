// What snapshots cost on the network.
//
//   datacom-bench-snapshots bytes            bytes of the messages that one actor receives when every member is
//                                            published once, from a real learner's service over loopback: all members
//                                            for every actor, and the members that the replay's division gives it (mean
//                                            and largest over the actors)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/rpc/channel.h"
#include "datacom/v1/learner.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "learner/learner_service.h"
#include "replay/division.h"
#include "tests/testing/endless_actor_peers.h"

namespace datacom {
namespace {

constexpr double kPublicationsPerSecond = 100.0 / 16;  // 100 updates/s, publish_period 16

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "datacom-bench-snapshots: %s\n", std::string(value.status().message()).c_str());
  std::exit(1);
}

// The members of each of `actors` actors that registered one after the other with as many environments each.
std::vector<std::vector<uint32_t>> Slices(uint32_t members, uint32_t actors) {
  std::vector<replay::SessionShare> shares;
  for (uint32_t a = 0; a < actors; ++a) {
    shares.push_back({members, std::vector<uint32_t>(members)});
    const auto divided = replay::DivideMembers(members, shares);
    for (uint32_t s = 0; s <= a; ++s) shares[s].lanes = divided[s];
  }
  std::vector<std::vector<uint32_t>> slices(actors);
  for (uint32_t a = 0; a < actors; ++a) {
    for (uint32_t m = 0; m < members; ++m) {
      if (shares[a].lanes[m] > 0) slices[a].push_back(m);
    }
  }
  return slices;
}

class Learner {
 public:
  explicit Learner(uint32_t members)
      : run_(MakeRun(members)), served_(run_, "/tmp", Clock::Real()), service_("run", served_, [](int) {}) {
    server_ = Must(Server::Start("127.0.0.1:0", {&service_}));
    channel_ = MakeChannel(server_->address());
  }
  ~Learner() {
    served_.snapshots.Close();
    server_->Shutdown(std::chrono::milliseconds(0));
  }
  // Bytes of the messages that each actor gets for one publication of every member.
  std::vector<uint64_t> Publish(const std::vector<std::vector<uint32_t>>& slices) {
    const auto stub = v1::Learner::NewStub(channel_);
    Snapshot snapshot = testing::SnapshotOf("air_hockey");
    snapshot.run_id = "run";
    for (const auto& slice : slices) {
      for (const uint32_t member : slice) {
        snapshot.member = member;
        snapshot.version = {1, 16};
        served_.snapshots.Publish(snapshot);
      }
    }
    std::vector<uint64_t> bytes;
    for (const auto& slice : slices) {
      v1::SubscribeRequest request;
      *request.mutable_hello() = MakeHello("run", 0);
      for (const uint32_t member : slice) request.add_members()->set_member(member);
      grpc::ClientContext context;
      const auto reader = stub->Subscribe(&context, request);
      v1::SnapshotChunk chunk;
      uint64_t sum = 0;
      for (size_t complete = 0; complete < slice.size() && reader->Read(&chunk); complete += chunk.last())
        sum += chunk.ByteSizeLong();
      bytes.push_back(sum);
      context.TryCancel();
    }
    return bytes;
  }

 private:
  static learner::RunIdentity MakeRun(uint32_t members) {
    learner::RunIdentity run;
    run.run_id = "run";
    const auto resolved = std::make_shared<v1::Experiment>();
    for (uint32_t m = 0; m < members; ++m) resolved->add_members()->set_seed(m);
    run.settings.resolved = resolved;
    return run;
  }
  const learner::RunIdentity run_;
  learner::ServedState served_;
  learner::LearnerService service_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

void Bytes() {
  std::printf(
      "D-ATACOM, air hockey, nets 2 x 128. kB per publication of all members and actor; MB/s and actor at 100\n");
  std::printf("updates/s of every member and publish_period 16 in brackets.\n");
  std::printf("members actors   all members, float32     slice, mean          slice, largest\n");
  for (const uint32_t members : {8u, 64u}) {
    for (const uint32_t actors : {1u, 2u, 4u, 8u}) {
      const std::vector<std::vector<uint32_t>> slices = Slices(members, actors);
      const uint64_t all = Learner(members).Publish(Slices(members, 1)).front();
      const std::vector<uint64_t> own = Learner(members).Publish(slices);
      std::printf("%7u %6u", members, actors);
      const auto print = [](double bytes) {
        std::printf("  %10.1f (%6.2f)", bytes * 1e-3, bytes * 1e-6 * kPublicationsPerSecond);
      };
      const auto mean = [&](const std::vector<uint64_t>& bytes) {
        double sum = 0;
        for (const uint64_t each : bytes) sum += static_cast<double>(each);
        return sum / actors;
      };
      print(static_cast<double>(all));
      print(mean(own));
      print(static_cast<double>(*std::max_element(own.begin(), own.end())));
      std::printf("\n");
    }
  }
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "bytes") {
    Bytes();
    return 0;
  }
  std::fprintf(stderr, "usage: datacom-bench-snapshots bytes\n");
  return 2;
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) { return datacom::Main(argc, argv); }
// SPDX-License-Identifier: Apache-2.0
