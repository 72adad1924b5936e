// An acting loop with a fake task, whose two peers a test plays. Not thread-safe.
#ifndef DATACOM_TESTS_ACTOR_ROLLOUT_FIXTURE_H_
#define DATACOM_TESTS_ACTOR_ROLLOUT_FIXTURE_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "actor/rollout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_actor_peers.h"
#include "tests/testing/fake_actor_task.h"
#include "tests/testing/is_ok.h"

namespace datacom::testing {

inline actor::Rollout::Parts FakeParts(int members, bool lockstep) {
  actor::Rollout::Parts parts;
  parts.run_seed = 7;
  parts.lockstep = lockstep;
  for (int m = 0; m < members; ++m) parts.member_seeds.push_back(100 + m);
  parts.schema = RowSchema::For(2, 1);
  parts.make_task = []() -> absl::StatusOr<std::unique_ptr<Task>> { return std::make_unique<FakeTask>(); };
  parts.make_rule = FakeRule::Make;
  return parts;
}

// An actor for `members` members, its two peers, and the result of its run.
struct Actor {
  explicit Actor(uint32_t members, uint32_t environments, bool lockstep = false,
                 const std::vector<v1::OpenEpisode>& open = {}, uint32_t first_member = 0,
                 const RowSchema& schema = RowSchema::For(2, 1))
      : session(schema,
                Registration(members, lockstep ? 1 : std::max(1u, environments / members), open, first_member)) {
    options.stop = [this] { return stop; };
    options.wait = [this](std::chrono::nanoseconds) { on_wait(); };
    parts = FakeParts(static_cast<int>(first_member + members), lockstep);
    parts.schema = schema;
  }
  static v1::RegisterReply Registration(uint32_t members, uint32_t lanes, const std::vector<v1::OpenEpisode>& open,
                                        uint32_t first_member) {
    v1::RegisterReply reply;
    reply.set_session(3);
    reply.mutable_assignment()->set_number(1);
    for (uint32_t i = 0; i < members; ++i) {
      v1::MemberLanes* member = reply.mutable_assignment()->add_members();
      member->set_member(first_member + i);
      member->set_lanes(lanes);
    }
    for (const v1::OpenEpisode& episode : open) *reply.add_open_episodes() = episode;
    return reply;
  }
  absl::Status Run() {
    absl::StatusOr<std::unique_ptr<actor::Rollout>> rollout =
        actor::Rollout::Make(parts, &session, &subscriber, &series, options);
    if (!rollout.ok()) return rollout.status();
    return (*rollout)->Run();
  }
  // Grants `rows` to every member and finishes the run when all have arrived.
  absl::Status RunFor(uint64_t rows) {
    for (const v1::MemberLanes& served : session.assignment()->members()) {
      const uint32_t member = served.member();
      session.limit[member] = rows;
      if (subscriber.latest.count(member) == 0) subscriber.latest[member] = FakeSnapshot(member, 0);
    }
    on_wait = [this] { session.run_finished = true; };
    return Run();
  }

  FakeInsertSession session;
  FakeSubscriber subscriber;
  std::unique_ptr<Metrics> metrics = Metrics::Start({"actor", "run", "fake", "fake", ""}).value();
  actor::ActorMetrics series{metrics.get()};
  actor::Rollout::Options options;
  actor::Rollout::Parts parts;
  bool stop = false;
  std::function<void()> on_wait = [] {};  // where the peers answer
};

// First length (1..horizon) of an environment of the member with this seed in session 3 of run 7.
inline uint32_t FirstLengthOf(uint64_t seed, uint32_t environment, uint32_t horizon, uint32_t session = 3) {
  return 1 + static_cast<uint32_t>(
                 RandomStream(StreamKey("actor.first_length", {7, seed, session, environment})).Below(horizon));
}
inline uint32_t FirstLength(uint32_t environment, uint32_t horizon, uint32_t session = 3) {
  return FirstLengthOf(100, environment, horizon, session);
}

// Episodes end only at the horizon.
class SteadyTask : public FakeTask {
 public:
  using FakeTask::FakeTask;
  StepResult Step(const double* action, double* observation) override {
    StepResult result = FakeTask::Step(action, observation);
    result.absorbing = false;
    result.valid = true;
    return result;
  }
};

// Lockstep: one row is granted at a time, for exactly the version of the update before it.
inline std::vector<ReceivedRow> Lockstep(Actor* actor, uint64_t already, uint64_t rows) {
  const auto grant = [actor, already] {
    const uint64_t next = already + actor->session.produced(0);
    actor->session.limit[0] = actor->session.produced(0) + 1;
    actor->session.min_policy_update[0] = next > 50 ? next - 50 : 0;
  };
  actor->on_wait = [actor, grant, rows] {
    if (actor->session.allowance(0).rows == 0) {
      actor->session.run_finished = actor->session.produced(0) >= rows;
      return grant();
    }
    // The learner first publishes an older version; acting with it would be detected.
    const uint64_t wanted = actor->session.min_policy_update[0];
    const auto latest = actor->subscriber.latest[0];
    const bool older = wanted > 0 && (latest == nullptr || latest->version.update + 1 < wanted);
    actor->subscriber.latest[0] = FakeSnapshot(0, older ? wanted - 1 : wanted);
  };
  grant();
  EXPECT_THAT(actor->Run(), IsOk());
  return actor->session.rows;
}

// What the replay tells a session about its open episode after `count` rows.
inline v1::OpenEpisode OpenAfter(const std::vector<ReceivedRow>& rows, size_t count) {
  v1::OpenEpisode open;
  const ReceivedRow& last = rows[count - 1];
  open.set_episode(last.last ? last.episode + 1 : last.episode);
  for (size_t i = 0; i < count; ++i) {
    if (rows[i].episode != open.episode()) continue;
    open.set_steps(open.steps() + 1);
    open.mutable_actions()->append(reinterpret_cast<const char*>(rows[i].executed.data()), sizeof(float));
    open.set_memory(rows[i].memory.data(), rows[i].memory.size() * sizeof(float));
  }
  return open;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_ACTOR_ROLLOUT_FIXTURE_H_
// SPDX-License-Identifier: Apache-2.0
