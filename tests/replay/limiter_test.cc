// Tests the limiter and its schedule against numbers computed by hand from their formulas:
//   rows of update u: n(u) = min(env_steps, min_size + ceil(u / UTD));  last update: floor(UTD (env_steps - min_size))
//   rows allowed after c updates: max(n(c + 1), min_size + tolerance + floor(c / UTD)), at most env_steps; all rows
//   after the last update; in lockstep n(c + 1)
#include "replay/limiter.h"

#include "gtest/gtest.h"

namespace datacom::replay {
namespace {

struct Case {
  UpdateSchedule schedule;  // env_steps, min_size, UTD
  uint64_t tolerance;
  bool lockstep;
  uint64_t last_update;
  std::vector<std::pair<uint64_t, uint64_t>> allowed;  // (updates, rows)
};

TEST(Limiter, FollowsTheFormulaUpToTheEndOfTheRun) {
  const Case cases[] = {
      // 10 + 16 rows at first, then one row per update; the tolerance does not exceed the run's rows.
      {{200, 10, 1}, 16, false, 190, {{0, 26}, {1, 27}, {100, 126}, {173, 199}, {174, 200}, {189, 200}, {190, 200}}},
      // Four rows per update: 190 / 4 = 47.5, so 47 updates; the last two rows do not wait for a 48th.
      {{200, 10, 0.25}, 16, false, 47, {{0, 26}, {1, 30}, {43, 198}, {44, 200}, {46, 200}, {47, 200}}},
      // A tolerance below the next update's need does not block that update.
      {{200, 10, 0.25}, 1, false, 47, {{0, 14}, {1, 18}, {45, 194}, {46, 198}, {47, 200}}},
      // Four updates per row.
      {{200, 10, 4}, 1, false, 760, {{0, 11}, {3, 11}, {4, 12}, {7, 12}, {8, 13}, {755, 199}, {756, 200}, {760, 200}}},
      {{200, 10, 4}, 7, false, 760, {{0, 17}, {3, 17}, {4, 18}, {731, 199}, {732, 200}}},
      // Ratios that are not binary fractions: 1 / 0.1 is ten rows, 7 / 0.7 is ten rows.
      {{200, 10, 0.1}, 5, false, 19, {{0, 20}, {1, 30}, {17, 190}, {18, 200}, {19, 200}}},
      {{200, 0, 0.7}, 1, false, 140, {{0, 2}, {1, 3}, {6, 10}, {7, 12}, {13, 20}, {14, 22}, {139, 200}}},
      // A tolerance larger than the run, a run that never trains, a run whose first update needs its last row.
      {{200, 10, 1}, 500, false, 190, {{0, 200}, {190, 200}}},
      {{10, 10, 1}, 16, false, 0, {{0, 10}}},
      {{11, 10, 1}, 1, false, 1, {{0, 11}, {1, 11}}},
      // Lockstep has no tolerance.
      {{200, 10, 1}, 16, true, 190, {{0, 11}, {1, 12}, {188, 199}, {189, 200}, {190, 200}}},
      {{200, 10, 0.25}, 16, true, 47, {{0, 14}, {1, 18}, {46, 198}, {47, 200}}},
      {{200, 10, 4}, 16, true, 760, {{0, 11}, {3, 11}, {4, 12}, {756, 200}}},
  };
  for (const Case& c : cases) {
    const Limiter limiter({c.schedule, c.tolerance, 128, c.lockstep});
    EXPECT_EQ(limiter.schedule().LastUpdate(), c.last_update);
    for (const auto& [completed, rows] : c.allowed) {
      EXPECT_EQ(limiter.Allowed(completed), rows)
          << c.schedule.env_steps << " rows, UTD " << c.schedule.updates_per_step << ", tolerance " << c.tolerance
          << ", lockstep " << c.lockstep << ", after " << completed << " updates";
    }
  }
}

TEST(Limiter, GrantsARowOnlyForPoliciesWithinTheLag) {
  const Limiter limiter({{2000, 10, 1}, 16, /*max_policy_lag=*/128, /*lockstep=*/false});
  for (const uint64_t row : {0, 500, 1999}) {
    EXPECT_EQ(limiter.MinPolicyUpdate(row, 0), 0u);
    EXPECT_EQ(limiter.MinPolicyUpdate(row, 128), 0u);
    EXPECT_EQ(limiter.MinPolicyUpdate(row, 129), 1u);
    EXPECT_EQ(limiter.MinPolicyUpdate(row, 1000), 872u);
  }
}

// Three updates of 500 rows, as an on-policy algorithm has them.
TEST(Limiter, WithoutLagAnEpochHasTheRowsAndThePolicyOfTheUpdateBeforeIt) {
  const Limiter limiter({{1500, 0, 1.0 / 500}, /*tolerance=*/1000, /*max_policy_lag=*/0, /*lockstep=*/false});
  EXPECT_EQ(limiter.schedule().LastUpdate(), 3u);
  EXPECT_EQ(limiter.Allowed(0), 500u);
  EXPECT_EQ(limiter.Allowed(1), 1000u);
  EXPECT_EQ(limiter.Allowed(2), 1500u);
  for (const uint64_t completed : {0, 1, 2}) {  // also after a restart, when the replay does not know the newest update
    EXPECT_EQ(limiter.MinPolicyUpdate(0, completed), 0u);
    EXPECT_EQ(limiter.MinPolicyUpdate(499, completed), 0u);
    EXPECT_EQ(limiter.MinPolicyUpdate(500, completed), 1u);
    EXPECT_EQ(limiter.MinPolicyUpdate(999, completed), 1u);
    EXPECT_EQ(limiter.MinPolicyUpdate(1499, completed), 2u);
  }
}

// Row r counts from 0: r rows come before it, and floor(UTD (r - min_size)) updates used them.
TEST(Limiter, InLockstepARowUsesThePolicyOfTheUpdatesBeforeIt) {
  struct Row {
    double updates_per_step;
    uint64_t row, policy, change;
  };
  const Row rows[] = {{1, 0, 0, 11},        {1, 10, 0, 11},       {1, 11, 1, 12},       {1, 12, 2, 13},
                      {1, 198, 188, 199},   {1, 199, 189, 200},   {1, 200, 190, 200},   {0.25, 0, 0, 14},
                      {0.25, 13, 0, 14},    {0.25, 14, 1, 18},    {0.25, 17, 1, 18},    {0.25, 18, 2, 22},
                      {0.25, 197, 46, 198}, {0.25, 198, 47, 200}, {0.25, 199, 47, 200}, {4, 10, 0, 11},
                      {4, 11, 4, 12},       {4, 199, 756, 200},   {4, 200, 760, 200}};
  for (const Row& r : rows) {
    const Limiter limiter({{200, 10, r.updates_per_step}, 16, 128, /*lockstep=*/true});
    for (const uint64_t completed : {0, 5, 100}) {
      EXPECT_EQ(limiter.MinPolicyUpdate(r.row, completed), r.policy)
          << "UTD " << r.updates_per_step << " row " << r.row;
    }
    EXPECT_EQ(limiter.PolicyChange(r.row), r.change) << "UTD " << r.updates_per_step << " row " << r.row;
  }
}

TEST(UpdateSchedule, CountsRowsAndUpdatesByTheFormula) {
  struct Expected {
    UpdateSchedule schedule;
    std::vector<std::pair<uint64_t, uint64_t>> rows_seen;   // by update
    std::vector<std::pair<uint64_t, uint64_t>> updates_at;  // by rows
  };
  const Expected all[] = {
      {{1000000, 2000, 1}, {{1, 2001}, {998000, 1000000}, {2000000, 1000000}}, {{0, 0}, {2000, 0}, {2001, 1}}},
      {{200, 10, 0.25}, {{1, 14}, {2, 18}, {47, 198}, {48, 200}}, {{13, 0}, {14, 1}, {17, 1}, {18, 2}, {200, 47}}},
      {{200, 10, 4}, {{1, 11}, {4, 11}, {5, 12}, {8, 12}, {9, 13}}, {{10, 0}, {11, 4}, {12, 8}}},
      {{200, 10, 0.1}, {{1, 20}, {2, 30}, {3, 40}}, {{19, 0}, {20, 1}, {39, 2}, {40, 3}}},
      {{200, 0, 0.7}, {{1, 2}, {2, 3}, {7, 10}, {14, 20}, {140, 200}}, {{1, 0}, {2, 1}, {10, 7}, {100, 70}}},
      {{200, 10, 0.3}, {{3, 20}, {6, 30}}, {{20, 3}, {29, 5}, {30, 6}}},
  };
  for (const Expected& each : all) {
    const double ratio = each.schedule.updates_per_step;
    for (const auto& [update, rows] : each.rows_seen) {
      EXPECT_EQ(each.schedule.RowsSeen(update), rows) << "UTD " << ratio << " update " << update;
    }
    for (const auto& [rows, updates] : each.updates_at) {
      EXPECT_EQ(each.schedule.UpdatesAt(rows), updates) << "UTD " << ratio << " rows " << rows;
    }
  }
}

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
