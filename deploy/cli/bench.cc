// datacom bench: runs the benchmark programs of the build and merges their results.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/output_file.h"
#include "common/base/status.h"
#include "deploy/cli/bench_json.h"
#include "deploy/cli/process.h"
#include "deploy/cli/supervise.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

// Runs a program and returns its standard output.
absl::StatusOr<std::string> RunProgram(const std::string& path, const std::vector<std::string>& arguments) {
  if (::access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat("benchmark program ", path, " is not built; build it with: ./datacom build"));
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
  std::vector<BenchEntry> entries;
  for (const std::string& area : areas) {
    std::fprintf(stderr, "benchmark %s ...\n", area.c_str());
    ASSIGN_OR_RETURN(const std::string output,
                     RunProgram(absl::StrCat(BinFolder(), "/datacom-bench-", area), arguments));
    ASSIGN_OR_RETURN(const std::vector<BenchEntry> measured, ParseBench(area, output));
    entries.insert(entries.end(), measured.begin(), measured.end());
  }
  std::fprintf(IsStandardOutput(json_file) ? stderr : stdout, "%s", BenchTable(entries).c_str());
  if (json_file.empty()) return absl::OkStatus();
  return WriteOutputFile(json_file, MergeBench(entries, DescribeMachine()).dump(2) + "\n");
}

}  // namespace

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
