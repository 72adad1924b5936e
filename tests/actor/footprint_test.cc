// Resources of an actor with 16 environments of CartPole, or of an arm that is a text task: allocations per step,
// memory of the process.
#include <fstream>
#include <string>
#include <vector>

#include "actor/actor_setup.h"
#include "actor/rollout.h"
#include "gtest/gtest.h"
#include "tests/testing/counting_allocator.h"
#include "tests/testing/endless_actor_peers.h"

namespace datacom::actor {
namespace {

constexpr uint32_t kEnvironments = 16;

struct Actor {
  explicit Actor(const std::string& task, std::function<bool()> stop) : experiment(testing::ExperimentOf(task)) {
    Rollout::Options options;
    options.stop = std::move(stop);
    rollout = Rollout::Make(MakeParts(experiment).value(), &session, &subscriber, &series, options).value();
  }
  const v1::Experiment experiment;
  testing::EndlessSession session{kEnvironments};
  testing::OneSnapshot subscriber{testing::SnapshotOf(experiment)};
  const std::unique_ptr<Metrics> metrics = Metrics::Start({"actor", "footprint", "cartpole", "datacom", ""}).value();
  ActorMetrics series{metrics.get()};
  std::unique_ptr<Rollout> rollout;
};

// The kilobytes in a line of /proc/self/status.
uint64_t Status(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  uint64_t kilobytes = 0;
  while (status >> word) {
    if (word == name + ":") status >> kilobytes;
  }
  return kilobytes;
}

// 1000 iterations include two or more episode ends per environment, timed iterations, and reads of the gauges.
void ExpectToAllocateOnlyChunks(const std::string& task) {
  int iterations = 0;
  uint64_t allocations = 0, chunks = 0;
  Actor* self = nullptr;
  Actor actor(task, [&] {
    if (++iterations == 10) {
      allocations = testing::thread_allocations;
      chunks = self->session.chunks();
    }
    if (iterations < 1010) return false;
    allocations = testing::thread_allocations - allocations;
    chunks = self->session.chunks() - chunks;
    return true;
  });
  self = &actor;
  EXPECT_TRUE(absl::IsCancelled(actor.rollout->Run()));
  EXPECT_GE(chunks, 1000u * kEnvironments / 64 - 1);
  EXPECT_EQ(allocations, chunks) << "one string per chunk, which the session keeps until it is acknowledged";
}

TEST(ActorFootprint, ASteadyStepAllocatesOnlyTheChunksItHandsOver) { ExpectToAllocateOnlyChunks("cartpole"); }

TEST(ActorFootprint, SixteenEnvironmentsFitIn60Megabytes) {
  int iterations = 0;
  Actor actor("cartpole", [&] { return ++iterations > 200; });
  EXPECT_TRUE(absl::IsCancelled(actor.rollout->Run()));
  RecordProperty("resident_kB", std::to_string(Status("VmRSS")));
  RecordProperty("anonymous_kB", std::to_string(Status("RssAnon")));
  EXPECT_GT(Status("RssAnon"), 0u);
  EXPECT_LT(Status("VmRSS"), 60000u) << "of which anonymous: " << Status("RssAnon") << " kB";
}

TEST(ActorFootprint, AStepOfATorqueControlledArmAllocatesOnlyTheChunksItHandsOver) {
  ExpectToAllocateOnlyChunks("deploy/examples/arm_reach/task.textproto");
}

}  // namespace
}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
