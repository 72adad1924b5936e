// datacom bench: merges the outputs of the benchmark programs into one document. Pure functions.
#ifndef DATACOM_DEPLOY_CLI_BENCH_H_
#define DATACOM_DEPLOY_CLI_BENCH_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {

struct BenchEntry {
  std::string name;  // "learner/datacom/M=1"
  double value = 0;
  std::string unit;
  std::optional<double> floor;  // the same unit as value
  std::optional<double> ratio;  // time over floor, or share of `peer`'s rate
  std::string peer;
};

// Reads our own format ({"benchmarks": [{name, value, unit, floor, ratio}]}) or Google Benchmark's, of which it takes
// the counters value, floor, ratio and peer; without a counter `value`, real_time in its time_unit. Adds the prefix
// "<area>/" to names that lack it. INVALID_ARGUMENT naming `area` for anything else.
absl::StatusOr<std::vector<BenchEntry>> ParseBench(const std::string& area, const std::string& text);

nlohmann::json MergeBench(const std::vector<BenchEntry>& entries, const nlohmann::json& machine);
std::string BenchTable(const std::vector<BenchEntry>& entries);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_BENCH_H_
// SPDX-License-Identifier: Apache-2.0
