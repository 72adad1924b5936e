// Tests which episodes the acting loop gives to a hand-written controller.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "actor/rollout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actor/rollout_fixture.h"
#include "tests/testing/is_ok.h"

namespace datacom::actor {
namespace {

using ::datacom::testing::IsOk;
using testing::Actor;
using testing::DemonstratedRule;
using testing::FakeSnapshot;
using testing::Lockstep;
using testing::OpenAfter;
using testing::ReceivedRow;

// The fake controller commands the position that it sees, times 10.
TEST(Demonstrations, AControllerPlaysAShareOfTheEpisodesUntilAPolicyActsAlone) {
  const auto run = [](uint64_t policy, double share) {
    Actor actor(2, 8);
    actor.parts.make_rule = DemonstratedRule::Make;
    actor.parts.demonstrations = {[](const double* seen, double* action) { *action = 10 * seen[0]; }, share, 50};
    for (const uint32_t member : {0, 1}) actor.subscriber.latest[member] = FakeSnapshot(member, policy);
    EXPECT_THAT(actor.RunFor(8000), IsOk());
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, bool> episodes;
    for (const ReceivedRow& row : actor.session.rows) {
      const bool demonstrated = row.action[0] == static_cast<float>(10 * double{row.observation[0]});
      const auto [at, fresh] = episodes.try_emplace({row.member, row.environment, row.episode}, demonstrated);
      EXPECT_EQ(at->second, demonstrated) << "a whole episode has one player";
      if (!demonstrated) {
        EXPECT_EQ(row.action[0], DemonstratedRule::kOwn);
      }
    }
    EXPECT_GT(episodes.size(), 100u);
    const auto count = std::count_if(episodes.begin(), episodes.end(), [](const auto& each) { return each.second; });
    return static_cast<double>(count) / episodes.size();
  };
  EXPECT_EQ(run(49, 1), 1);
  EXPECT_NEAR(run(49, 0.3), 0.3, 0.12) << "binomial: 2.6 standard deviations of 100 episodes";
  EXPECT_EQ(run(50, 1), 0);
  EXPECT_EQ(run(49, 0), 0);
}

TEST(Demonstrations, AnEpisodeThatContinuesKeepsItsPlayer) {
  const auto prepare = [](Actor* actor) {
    actor->parts.make_rule = DemonstratedRule::Make;
    actor->parts.demonstrations = {[](const double* seen, double* action) { *action = 10 * seen[0]; }, 0.5, 1000};
  };
  Actor straight(1, 1, /*lockstep=*/true);
  prepare(&straight);
  const std::vector<ReceivedRow> rows = Lockstep(&straight, 0, 300);
  ASSERT_EQ(rows.size(), 300u);
  for (const size_t stopped : {5, 57, 131}) {
    Actor again(1, 1, /*lockstep=*/true, {OpenAfter(rows, stopped)});
    prepare(&again);
    const std::vector<ReceivedRow> more = Lockstep(&again, stopped, 60);
    ASSERT_EQ(more.size(), 60u);
    for (size_t i = 0; i < more.size(); ++i) ASSERT_EQ(more[i], rows[stopped + i]) << stopped << ", row " << i;
  }
}

}  // namespace
}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
