#include "deploy/cli/bench_json.h"

#include <sys/utsname.h>

#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/machine.h"
#include "common/base/version.h"

namespace datacom::cli {
namespace {

std::optional<double> Number(const nlohmann::json& entry, const char* key) {
  if (!entry.contains(key) || !entry[key].is_number()) return std::nullopt;
  return entry[key].get<double>();
}

std::string Word(const nlohmann::json& entry, const char* key) {
  return entry.contains(key) && entry[key].is_string() ? entry[key].get<std::string>() : "";
}

BenchEntry ReadEntry(const std::string& area, const nlohmann::json& from) {
  BenchEntry entry;
  entry.name = Word(from, "name");
  if (!absl::StartsWith(entry.name, area + "/")) entry.name = absl::StrCat(area, "/", entry.name);
  entry.unit = Word(from, "unit");
  if (const auto value = Number(from, "value")) {
    entry.value = *value;
  } else {
    entry.value = Number(from, "real_time").value_or(0);
    entry.unit = Word(from, "time_unit");
  }
  if (entry.unit.empty()) entry.unit = Word(from, "label");  // Google Benchmark's counters have no unit: set as label
  entry.floor = Number(from, "floor");
  entry.ratio = Number(from, "ratio");
  entry.peer = Word(from, "peer");
  if (const auto peer = Number(from, "peer"); peer && !entry.floor) entry.floor = peer;
  if (!entry.ratio && entry.floor && *entry.floor > 0) entry.ratio = entry.value / *entry.floor;
  return entry;
}

std::string Significant(double value) { return absl::StrFormat("%.4g", value); }

}  // namespace

absl::StatusOr<std::vector<BenchEntry>> ParseBench(const std::string& area, const std::string& text) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("benchmarks") || !document["benchmarks"].is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat("benchmark ", area, ": its output is not a JSON document with a list \"benchmarks\""));
  }
  std::vector<BenchEntry> entries;
  for (const nlohmann::json& entry : document["benchmarks"]) {
    if (!entry.is_object()) continue;
    if (Word(entry, "run_type") == "aggregate" && Word(entry, "aggregate_name") != "median") continue;
    if (entry.contains("error_occurred") && entry["error_occurred"] == true) {
      return absl::InvalidArgumentError(
          absl::StrCat("benchmark ", Word(entry, "name"), ": ", Word(entry, "error_message")));
    }
    entries.push_back(ReadEntry(area, entry));
  }
  if (entries.empty()) return absl::InvalidArgumentError(absl::StrCat("benchmark ", area, ": no results"));
  return entries;
}

nlohmann::json MergeBench(const std::vector<BenchEntry>& entries, const nlohmann::json& machine) {
  nlohmann::json list = nlohmann::json::array();
  for (const BenchEntry& entry : entries) {
    nlohmann::json one = {{"name", entry.name}, {"value", entry.value}, {"unit", entry.unit}};
    one["floor"] = entry.floor ? nlohmann::json(*entry.floor) : nlohmann::json();
    one["ratio"] = entry.ratio ? nlohmann::json(*entry.ratio) : nlohmann::json();
    if (!entry.peer.empty()) one["peer"] = entry.peer;
    list.push_back(one);
  }
  return {{"machine", machine}, {"benchmarks", list}};
}

std::string BenchTable(const std::vector<BenchEntry>& entries) {
  size_t width = 10;
  for (const BenchEntry& entry : entries) width = std::max(width, entry.name.size());
  std::string table =
      absl::StrFormat("%-*s %12s %-12s %12s %8s\n", width, "benchmark", "value", "unit", "floor", "ratio");
  for (const BenchEntry& entry : entries) {
    absl::StrAppendFormat(&table, "%-*s %12s %-12s %12s %8s%s\n", width, entry.name, Significant(entry.value),
                          entry.unit, entry.floor ? Significant(*entry.floor) : "-",
                          entry.ratio ? absl::StrFormat("%.2f", *entry.ratio) : "-",
                          entry.peer.empty() ? "" : "  of " + entry.peer);
  }
  return table;
}

nlohmann::json DescribeMachine() {
  std::string line;
  uint64_t kilobytes = 0;
  std::ifstream("/proc/meminfo") >> line >> kilobytes;
  utsname system = {};
  ::uname(&system);
  return {{"processor", ProcessorName()},
          {"cores", std::thread::hardware_concurrency()},
          {"memory_bytes", kilobytes * 1024},
          {"system", absl::StrCat(system.sysname, " ", system.release)},
          {"build", BuildName()}};
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
