// Tests the division of members over sessions against its promises, under random joins and leaves.
#include "replay/division.h"

#include <algorithm>
#include <numeric>

#include "common/base/random.h"
#include "gmock/gmock.h"

namespace datacom::replay {
namespace {

using ::testing::ElementsAre;
using Lanes = std::vector<std::vector<uint32_t>>;

uint64_t Total(const std::vector<uint32_t>& lanes) { return std::accumulate(lanes.begin(), lanes.end(), uint64_t{0}); }

// Sessions of one run that come and go.
struct Sessions {
  explicit Sessions(uint32_t count) : members(count) {}
  void Join(uint32_t environments) {
    shares.push_back({environments, std::vector<uint32_t>(members)});
    Divide();
  }
  void Leave(size_t index) {
    shares.erase(shares.begin() + static_cast<std::ptrdiff_t>(index));
    Divide();
  }
  void Divide() {
    const Lanes divided = DivideMembers(members, shares);
    for (size_t s = 0; s < shares.size(); ++s) shares[s].lanes = divided[s];
  }
  // Number of members that each session serves.
  std::vector<uint64_t> Served() const {
    std::vector<uint64_t> served;
    for (const SessionShare& share : shares) served.push_back(members - std::ranges::count(share.lanes, 0u));
    return served;
  }
  const uint32_t members;
  std::vector<SessionShare> shares;
};

TEST(Division, OneActorServesAllMembersAndSeveralServeASliceEach) {
  Sessions sessions(8);
  sessions.Join(16);
  EXPECT_THAT(sessions.shares[0].lanes, ElementsAre(2, 2, 2, 2, 2, 2, 2, 2));
  sessions.Join(16);
  EXPECT_THAT(sessions.shares[0].lanes, ElementsAre(4, 4, 4, 4, 0, 0, 0, 0));
  EXPECT_THAT(sessions.shares[1].lanes, ElementsAre(0, 0, 0, 0, 4, 4, 4, 4));
  sessions.Join(16);  // 48 environments: six lanes for each member
  EXPECT_THAT(sessions.shares[0].lanes, ElementsAre(6, 6, 6, 0, 0, 0, 0, 0));
  EXPECT_THAT(sessions.shares[1].lanes, ElementsAre(0, 0, 0, 0, 6, 6, 6, 0));
  EXPECT_THAT(sessions.shares[2].lanes, ElementsAre(0, 0, 0, 6, 0, 0, 0, 6));
  sessions.Leave(0);
  EXPECT_THAT(sessions.shares[0].lanes, ElementsAre(4, 0, 0, 0, 4, 4, 4, 0));
  EXPECT_THAT(sessions.shares[1].lanes, ElementsAre(0, 4, 4, 4, 0, 0, 0, 4));
}

TEST(Division, MoreActorsThanMembersShareThem) {
  Sessions sessions(2);
  for (int i = 0; i < 3; ++i) sessions.Join(2);
  EXPECT_THAT(sessions.shares[0].lanes, ElementsAre(2, 0));
  EXPECT_THAT(sessions.shares[1].lanes, ElementsAre(0, 2));
  EXPECT_THAT(sessions.shares[2].lanes, ElementsAre(1, 1));
}

TEST(Division, FewerEnvironmentsThanMembersStillGiveEveryMemberALane) {
  Sessions sessions(7);
  sessions.Join(2);
  EXPECT_THAT(sessions.shares[0].lanes, ElementsAre(1, 1, 1, 1, 1, 1, 1));
  sessions.Join(1);
  EXPECT_THAT(sessions.shares[0].lanes, ElementsAre(1, 1, 1, 1, 1, 0, 0));
  EXPECT_THAT(sessions.shares[1].lanes, ElementsAre(0, 0, 0, 0, 0, 1, 1));
}

TEST(Division, ASessionWithoutEnvironmentsGetsNoLanesUnlessAllAreWithout) {
  Sessions sessions(4);
  sessions.Join(4);
  sessions.Join(4);
  sessions.shares[0].environments = 0;
  sessions.Divide();
  EXPECT_THAT(sessions.shares[0].lanes, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(sessions.shares[1].lanes, ElementsAre(1, 1, 1, 1));
  sessions.shares[1].environments = 0;
  sessions.Divide();
  EXPECT_THAT(sessions.shares[1].lanes, ElementsAre(1, 1, 1, 1)) << "nothing changes";
}

// Of 64 members 64 / n, rounded, belong to the n-th actor; the others stay where they are.
TEST(Division, OnlyTheNewActorsMembersMove) {
  Sessions sessions(64);
  std::vector<size_t> moved;
  for (int actor = 0; actor < 8; ++actor) {
    const std::vector<SessionShare> before = sessions.shares;
    sessions.Join(64);
    size_t left = 0;
    for (size_t s = 0; s < before.size(); ++s) {
      for (uint32_t m = 0; m < 64; ++m) {
        left += before[s].lanes[m] > 0 && sessions.shares[s].lanes[m] == 0;
        EXPECT_TRUE(before[s].lanes[m] > 0 || sessions.shares[s].lanes[m] == 0) << "an old actor got member " << m;
      }
    }
    moved.push_back(left);
  }
  EXPECT_THAT(moved, ElementsAre(0, 32, 21, 16, 12, 10, 9, 8));
  EXPECT_THAT(sessions.Served(), ElementsAre(8, 8, 8, 8, 8, 8, 8, 8));
  const std::vector<SessionShare> before = sessions.shares;
  sessions.Leave(3);
  for (size_t s = 0; s < 7; ++s) {
    for (uint32_t m = 0; m < 64; ++m) {
      const bool had = before[s < 3 ? s : s + 1].lanes[m] > 0;
      EXPECT_TRUE(!had || sessions.shares[s].lanes[m] > 0) << "member " << m << " moved";
    }
  }
}

TEST(Division, HoldsItsPromisesUnderRandomJoinsAndLeaves) {
  RandomStream random(20261122);
  for (int run = 0; run < 200; ++run) {
    Sessions sessions(1 + static_cast<uint32_t>(random.Below(70)));
    const uint32_t most = run % 2 == 0 ? 20 : 3;
    for (int step = 0; step < 30; ++step) {
      if (!sessions.shares.empty() && random.Below(5) < 2) {
        sessions.Leave(random.Below(sessions.shares.size()));
      } else {
        sessions.Join(1 + static_cast<uint32_t>(random.Below(most)));
      }
      if (sessions.shares.empty()) continue;
      uint64_t environments = 0, pairs = 0;
      for (const SessionShare& share : sessions.shares) environments += share.environments;
      const uint64_t each = std::max<uint64_t>(1, environments / sessions.members), all = each * sessions.members;
      for (uint32_t m = 0; m < sessions.members; ++m) {
        uint64_t lanes = 0;
        for (const SessionShare& share : sessions.shares) lanes += share.lanes[m];
        ASSERT_EQ(lanes, each) << "member " << m;
      }
      const bool shared =
          std::ranges::any_of(sessions.shares, [each](const SessionShare& share) { return share.environments < each; });
      for (const SessionShare& share : sessions.shares) {
        const uint64_t exact = all * share.environments;  // times the environments of all
        const uint64_t unit = environments * (shared ? 1 : each);
        ASSERT_LT(Total(share.lanes) * environments, exact + unit);
        ASSERT_LT(exact, Total(share.lanes) * environments + unit);
        for (const uint32_t lanes : share.lanes) ASSERT_LE(lanes, share.environments) << "numbers are below it";
      }
      for (const uint64_t served : sessions.Served()) pairs += served;
      ASSERT_LE(pairs, sessions.members + (shared ? sessions.shares.size() - 1 : 0));
    }
  }
}

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
