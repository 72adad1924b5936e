// Tests which builds of actors the replay's service registers.
#include "common/base/version.h"
#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "replay/replay_service.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"

namespace datacom::replay::testing {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

// Serves a new run, registers an actor of the given build, and returns the answer.
absl::Status Register(const std::string& build, bool lockstep) {
  const Options options = lockstep ? LockstepOptions(1) : SmallOptions(1);
  const TemporaryFolder folder;
  ManualClock clock;
  auto store = Store::Open(SmallSchema(), StoreOptions(options, folder.path(), &clock));
  if (!store.ok()) return store.status();
  const std::unique_ptr<Metrics> metrics = Metrics::Start({"replay", "run", "", "", ""}).value();
  ReplayService service(store->get(), metrics.get(), std::chrono::milliseconds(0));
  const auto server = Server::Start("127.0.0.1:0", {&service});
  if (!server.ok()) return server.status();
  v1::RegisterRequest request;
  *request.mutable_hello() = MakeHello("run", 0);
  request.mutable_hello()->set_build(build);
  request.set_actor("actor-0");
  request.set_incarnation(1);
  request.set_environments(1);
  grpc::ClientContext context;
  v1::RegisterReply reply;
  return FromGrpc(v1::Replay::NewStub(MakeChannel((*server)->address()))->Register(&context, request, &reply));
}

TEST(Registration, AnActorWithAnotherSimulatorMayJoin) {
  const absl::Status status = Register("0.1.0 abc MuJoCo 0.9.9", /*lockstep=*/false);
  EXPECT_THAT(status, IsOk());
}

TEST(Registration, AnActorWithAnotherSimulatorIsRefusedInLockstep) {
  const absl::Status status = Register("0.1.0 abc MuJoCo 0.9.9", /*lockstep=*/true);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("MuJoCo 0.9.9"));
}

TEST(Registration, AnActorOfTheSameBuildJoinsInLockstep) {
  const absl::Status status = Register(BuildName(), /*lockstep=*/true);
  EXPECT_THAT(status, IsOk());
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
