#include "deploy/cli/bench.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom::cli {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

TEST(BenchJson, ReadsGoogleBenchmarkWithAndWithoutCounters) {
  const auto entries = ParseBench("safety", R"({"context": {}, "benchmarks": [
      {"name": "map/K=1", "run_type": "iteration", "real_time": 350.5, "time_unit": "ns"},
      {"name": "replay", "run_type": "iteration", "real_time": 1, "time_unit": "ns", "value": 600, "peer": 1000, "label": "MB/s"},
      {"name": "mean", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 1, "time_unit": "ns"}]})");
  ASSERT_THAT(entries, IsOk());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ(
      (*entries)[0],
      nlohmann::json(
          {{"name", "safety/map/K=1"}, {"value", 350.5}, {"unit", "ns"}, {"floor", nullptr}, {"ratio", nullptr}}));
  EXPECT_EQ((*entries)[1]["unit"], "MB/s");
  EXPECT_DOUBLE_EQ((*entries)[1]["ratio"].get<double>(), 0.6);
}

TEST(BenchJson, ReadsOurOwnDocument) {
  const auto entries = ParseBench(
      "learner",
      R"({"benchmarks": [{"name": "learner/datacom/M=1", "value": 480, "unit": "updates/s", "floor": 970, "ratio": 2.02}]})");
  ASSERT_THAT(entries, IsOk());
  EXPECT_EQ((*entries)[0], nlohmann::json({{"name", "learner/datacom/M=1"},
                                           {"value", 480.0},
                                           {"unit", "updates/s"},
                                           {"floor", 970.0},
                                           {"ratio", 2.02}}));
  EXPECT_THAT(BenchTable(*entries), HasSubstr("learner/datacom/M=1"));
}

TEST(BenchJson, RefusesAnInvalidDocument) {
  EXPECT_FALSE(ParseBench("actor", "Segmentation fault").ok());
  EXPECT_FALSE(ParseBench("actor", "[]").ok());
  EXPECT_FALSE(ParseBench("actor", R"({"benchmarks": []})").ok());
  const auto failed =
      ParseBench("actor", R"({"benchmarks": [{"name": "x", "error_occurred": true, "error_message": "no model"}]})");
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("no model"));
}

}  // namespace
}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
