// Fixes the rows that an update draws: a resumed run must draw the same rows as without the interruption, also with a
// new build. The rows were computed by other code from the definitions in draw_rows.h and common/base/random.h.
#include "common/transitions/draw_rows.h"

#include <vector>

#include "gmock/gmock.h"

namespace datacom::replay {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kCapacity = 200000;

std::vector<uint64_t> Main(const DrawKey& key, uint64_t available, uint32_t count) {
  std::vector<uint64_t> rows(count);
  DrawMain(key, available, kCapacity, count, rows.data());
  return rows;
}

std::vector<uint64_t> Failures(const DrawKey& key, uint64_t available, uint32_t count) {
  std::vector<uint64_t> rows(count);
  DrawFailures(key, available, kCapacity, count, rows.data());
  return rows;
}

TEST(Sampler, DrawsTheRowsOfRunsOnDisk) {
  EXPECT_THAT(Main({11, 3, 1000}, 2001, 8), ElementsAre(1202, 1199, 522, 432, 804, 331, 1474, 1308));
  EXPECT_THAT(Failures({11, 3, 1000}, 2001, 8), ElementsAre(24, 852, 142, 310, 123, 1002, 681, 83));
  EXPECT_THAT(Main({11, 3, 1001}, 2001, 4), ElementsAre(732, 1603, 303, 1712)) << "the next update";
  EXPECT_THAT(Main({11, 4, 1000}, 2001, 4), ElementsAre(1519, 1775, 1689, 741)) << "another member";
  EXPECT_THAT(Main({12, 3, 1000}, 2001, 4), ElementsAre(913, 1977, 1669, 1097)) << "another run";
}

TEST(Sampler, DrawsFromTheNewestRowsOfAFullRing) {
  EXPECT_THAT(Main({11, 3, 1000}, 1234567, 8),
              ElementsAre(1154759, 1154427, 1086790, 1077832, 1115023, 1067656, 1181940, 1165394));
  EXPECT_THAT(Failures({11, 3, 1000}, 1234567, 8),
              ElementsAre(1037063, 1119823, 1048845, 1065643, 1046930, 1134726, 1102651, 1042867));
  EXPECT_THAT(Main({11, 3, 1000}, 1, 3), ElementsAre(0, 0, 0));
}

TEST(Sampler, UsesFailuresOnceMoreThanABatchAreHeld) {
  EXPECT_FALSE(UseFailures(/*available=*/25, /*capacity=*/1000, /*batch=*/25));
  EXPECT_TRUE(UseFailures(26, 1000, 25));
  EXPECT_FALSE(UseFailures(26, 25, 25)) << "no more than fit";
  EXPECT_FALSE(UseFailures(26, 1000, 0));
}

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
