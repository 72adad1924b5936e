// datacom bench: merges the outputs of the benchmark programs into one document. Pure functions.
#ifndef DATACOM_DEPLOY_CLI_BENCH_H_
#define DATACOM_DEPLOY_CLI_BENCH_H_

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {

// Reads our own format ({"benchmarks": [{name, value, unit, floor, ratio}]}) or Google Benchmark's, of which it takes
// the counters value, floor, ratio and peer; without a counter `value`, real_time in its time_unit. Returns a list of
// {"name": "learner/datacom/M=1", "value", "unit", "floor", "ratio"}: floor in the unit of value or null; ratio the
// time over floor, or the share of the rate of "peer", then named too, or null. Adds the prefix "<area>/" to names that
// lack it. INVALID_ARGUMENT naming `area` for anything else.
absl::StatusOr<nlohmann::json> ParseBench(const std::string& area, const std::string& text);

std::string BenchTable(const nlohmann::json& entries);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_BENCH_H_
// SPDX-License-Identifier: Apache-2.0
