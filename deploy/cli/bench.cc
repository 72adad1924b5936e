#include "deploy/cli/bench.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/machine.h"
#include "common/base/output_file.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/records/message_json.h"
#include "deploy/cli/process.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

std::optional<double> Number(const nlohmann::json& entry, const char* key) {
  if (!entry.contains(key) || !entry[key].is_number()) return std::nullopt;
  return entry[key].get<double>();
}

std::string Word(const nlohmann::json& entry, const char* key) {
  return entry.contains(key) && entry[key].is_string() ? entry[key].get<std::string>() : "";
}

nlohmann::json ReadEntry(const std::string& area, const nlohmann::json& from) {
  const std::string name = Word(from, "name"), peer = Word(from, "peer");
  const std::optional<double> given = Number(from, "value");
  const double value = given ? *given : Number(from, "real_time").value_or(0);
  std::string unit = Word(from, given ? "unit" : "time_unit");
  if (unit.empty()) unit = Word(from, "label");  // Google Benchmark's counters have no unit: set as label
  std::optional<double> floor = Number(from, "floor"), ratio = Number(from, "ratio");
  if (!floor) floor = Number(from, "peer");
  if (!ratio && floor && *floor > 0) ratio = value / *floor;
  nlohmann::json entry = {{"value", value}, {"unit", unit}, {"floor", nullptr}, {"ratio", nullptr}};
  entry["name"] = absl::StartsWith(name, area + "/") ? name : absl::StrCat(area, "/", name);
  if (floor) entry["floor"] = *floor;
  if (ratio) entry["ratio"] = *ratio;
  if (!peer.empty()) entry["peer"] = peer;
  return entry;
}

std::string Significant(double value) { return absl::StrFormat("%.4g", value); }

// Processor, cores, memory, kernel, build.
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

// Runs a program and returns its standard output.
absl::StatusOr<std::string> RunProgram(const std::string& path, const std::vector<std::string>& arguments) {
  if (::access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat("benchmark program ", path, " is not built; ./datacom bench of a checkout builds and runs it"));
  }
  std::vector<std::string> argv = {path, "--benchmark_format=json"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  int code = 0;
  ASSIGN_OR_RETURN(std::string output, OutputOf(std::move(argv), &code));
  if (code != 0) return absl::InternalError(absl::StrCat(path, " failed (", DescribeExit(code), ")"));
  return output;
}

absl::Status Bench(const std::string& what, const std::string& threads, const std::string& json_file) {
  if (!threads.empty() && what != "learner")
    return absl::InvalidArgumentError("--threads belongs to 'datacom bench learner'");
  std::vector<std::string> arguments;
  if (!threads.empty()) arguments = {"--threads", threads};
  const std::vector<std::string> areas =
      what == "all" ? std::vector<std::string>{"safety", "actor", "replay", "learner"} : std::vector<std::string>{what};
  if (!json_file.empty()) RETURN_IF_ERROR(CheckOutputFile("--json", json_file));
  nlohmann::json entries = nlohmann::json::array();
  for (const std::string& area : areas) {
    std::fprintf(stderr, "benchmark %s ...\n", area.c_str());
    ASSIGN_OR_RETURN(const std::string output,
                     RunProgram(absl::StrCat(BinFolder(), "/datacom-bench-", area), arguments));
    ASSIGN_OR_RETURN(const nlohmann::json measured, ParseBench(area, output));
    entries.insert(entries.end(), measured.begin(), measured.end());
  }
  std::fprintf(IsStandardOutput(json_file) ? stderr : stdout, "%s", BenchTable(entries).c_str());
  if (json_file.empty()) return absl::OkStatus();
  return WriteOutputFile(json_file, JsonText({{"machine", DescribeMachine()}, {"benchmarks", entries}}, 2) + "\n");
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseBench(const std::string& area, const std::string& text) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("benchmarks") || !document["benchmarks"].is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat("benchmark ", area, ": its output is not a JSON document with a list \"benchmarks\""));
  }
  nlohmann::json entries = nlohmann::json::array();
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

std::string BenchTable(const nlohmann::json& entries) {
  size_t width = 10;
  for (const nlohmann::json& entry : entries) width = std::max(width, Word(entry, "name").size());
  std::string table =
      absl::StrFormat("%-*s %12s %-12s %12s %8s\n", width, "benchmark", "value", "unit", "floor", "ratio");
  for (const nlohmann::json& entry : entries) {
    const std::optional<double> floor = Number(entry, "floor"), ratio = Number(entry, "ratio");
    const std::string peer = Word(entry, "peer");
    absl::StrAppendFormat(&table, "%-*s %12s %-12s %12s %8s%s\n", width, Word(entry, "name"),
                          Significant(Number(entry, "value").value_or(0)), Word(entry, "unit"),
                          floor ? Significant(*floor) : "-", ratio ? absl::StrFormat("%.2f", *ratio) : "-",
                          peer.empty() ? "" : "  of " + peer);
  }
  return table;
}

void AddBench(CLI::App* app, int* exit_code) {
  auto what = std::make_shared<std::string>("all");
  auto threads = std::make_shared<std::string>();
  auto json_file = std::make_shared<std::string>();
  CLI::App* verb = app->add_subcommand(
      "bench", "Runs benchmarks and prints ratios: time over its lower bound, or the share of a peer's rate");
  verb->add_option("what", *what, "safety, actor, replay, learner or all")
      ->required()
      ->check(CLI::IsMember({"safety", "actor", "replay", "learner", "all"}));
  verb->add_option("--threads", *threads, "of learner: measure only how updates scale over threads, e.g. 1,2,4")
      ->check([](const std::string& text) {
        return text.find_first_not_of("0123456789,") == std::string::npos ? "" : "numbers with commas between them";
      });
  verb->add_option("--json", *json_file, "file to write the numbers to");
  verb->footer("Example: datacom bench learner --json bench.json");
  verb->callback([what, threads, json_file, exit_code] { *exit_code = Finish(Bench(*what, *threads, *json_file)); });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
