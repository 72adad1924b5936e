#include "deploy/cli/live.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/records/csv.h"
#include "common/records/ledger_format.h"
#include "common/rpc/assignment.h"
#include "deploy/cli/answers.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/sweep_folder.h"
#include "deploy/report/groups.h"
#include "deploy/report/report.h"

namespace datacom::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::streamoff kTailBytes = 1 << 16;  // of violations.csv: much more than one row

// Differs whenever a file of the run has changed that Recorded or the report depends on.
std::string SignatureOf(const std::string& run_dir) {
  std::string signature = run_dir;
  for (const char* name : {"experiment.textproto", "progress.csv", "episodes.csv", "report.html"}) {
    std::error_code none;
    const std::string path = absl::StrCat(run_dir, "/", name);
    const auto size = fs::file_size(path, none);
    const auto time = fs::last_write_time(path, none);
    absl::StrAppend(&signature, "|", none ? 0 : size, "|", none ? 0 : time.time_since_epoch().count());
  }
  return signature;
}

// The header of a file and its last whole lines, as many as `bytes` hold.
std::string HeaderAndTail(const std::string& path, std::streamoff bytes) {
  std::ifstream file(path, std::ios::binary);
  std::string header, line;
  if (!std::getline(file, header) || file.eof()) return "";
  const std::streamoff begin = file.tellg();
  file.seekg(0, std::ios::end);
  const std::streamoff end = file.tellg();
  const std::streamoff from = std::max(begin, end - bytes);
  file.seekg(from);
  if (from > begin) std::getline(file, line);  // the rest of a line
  std::string tail(static_cast<size_t>(std::max<std::streamoff>(0, end - file.tellg())), '\0');
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  tail.resize(static_cast<size_t>(file.gcount()));
  return absl::StrCat(header, "\n", tail);
}

// How many violations the ledger has.
void AddViolations(const std::string& run_dir, json* state) {
  (*state)["violations_total"] = 0;
  const std::string path = absl::StrCat(run_dir, "/", ledger::kViolationsPath);
  const absl::StatusOr<Csv> csv = Csv::Parse(HeaderAndTail(path, kTailBytes), path);
  if (!csv.ok()) {
    if (!absl::IsNotFound(csv.status())) (*state)["problem"] = csv.status().message();
    return;
  }
  if (csv->rows() > 0) (*state)["violations_total"] = csv->Number(csv->rows() - 1, "id");  // ids have no gaps
}

void AddAnswers(const Answers& answers, json* state) {
  const ProgressView view = MakeProgress(answers.replay, answers.learner);
  (*state)["state"] = view.phase;
  (*state)["done"] = FractionDone(view);
  (*state)["steps_per_second"] = std::round(view.steps_per_second);
  (*state)["updates_per_second"] = std::round(view.updates_per_second);
  if (const std::optional<double> eta = EtaSeconds(view)) (*state)["eta_seconds"] = std::round(*eta);
  json& waits = (*state)["waits"];
  if (answers.learner && !answers.learner->waiting_for().empty()) waits.push_back(answers.learner->waiting_for());
  if (!answers.replay) return;
  for (const std::string& wait : answers.replay->waits()) {
    if (std::find(waits.begin(), waits.end(), wait) == waits.end()) waits.push_back(wait);
  }
  (*state)["actors"] = answers.replay->sessions_size();
  for (const v1::SessionInfo& session : answers.replay->sessions()) {
    (*state)["sessions"].push_back({{"actor", session.actor()},
                                    {"members", DescribeMembers(session.assignment())},
                                    {"environments", session.environments()},
                                    {"rows", session.rows()},
                                    {"connected", session.connected()}});
  }
}

std::string Text(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

absl::StatusOr<LiveRuns> LiveRuns::Open(const std::vector<std::string>& folders, bool each_member,
                                        const Security& security) {
  std::vector<std::string> normal;
  for (const std::string& folder : folders) {
    std::string path = fs::path(folder).lexically_normal().string();
    if (path.size() > 1 && path.back() == '/') path.pop_back();
    RETURN_IF_ERROR(RunsOfFolder(path).status());
    normal.push_back(std::move(path));
  }
  LiveRuns runs(std::move(normal), each_member, security);
  ASSIGN_OR_RETURN(runs.report_, report::ReportData({}, nullptr));
  return runs;
}

const LiveRuns::Recorded& LiveRuns::Read(const std::string& run_dir) {
  Recorded& recorded = recorded_[run_dir];
  std::string signature = SignatureOf(run_dir);
  if (recorded.signature == signature) return recorded;
  recorded = Recorded();
  recorded.signature = std::move(signature);
  const absl::StatusOr<std::vector<report::Run>> read = report::ReadRuns({run_dir});
  recorded.has_rows = read.ok();
  if (!read.ok() && !absl::IsNotFound(read.status())) recorded.problem = std::string(read.status().message());
  if (!read.ok()) return recorded;
  const absl::StatusOr<v1::Experiment> experiment = LoadExperiment(ExperimentFile(run_dir), ExperimentFolder());
  if (!experiment.ok() || experiment->run().env_steps() == 0) return recorded;  // changed since it was read
  const cli::RunState state = ReadRunState(run_dir, *experiment);
  recorded.complete = state.complete;
  recorded.done = std::min(1.0, static_cast<double>(state.env_steps) / experiment->run().env_steps());
  return recorded;
}

json LiveRuns::RunState(const std::string& run_dir, const Recorded& recorded) const {
  json state = {{"folder", run_dir},
                {"state", recorded.complete ? "complete" : "not running"},
                {"done", recorded.done},
                {"steps_per_second", nullptr},
                {"updates_per_second", nullptr},
                {"eta_seconds", nullptr},
                {"actors", nullptr},
                {"waits", json::array()},
                {"sessions", json::array()}};
  AddViolations(run_dir, &state);
  if (!recorded.problem.empty()) state["problem"] = recorded.problem;
  if (recorded.complete) return state;
  const absl::StatusOr<Answers> answers = AskRun(run_dir, security_);
  if (answers.ok() && (answers->replay || answers->learner)) AddAnswers(*answers, &state);
  return state;
}

json LiveRuns::Collect() {
  std::vector<std::string> recorded_runs;
  std::string signature;
  json runs = json::array();
  for (const std::string& folder : folders_) {
    const absl::StatusOr<std::vector<std::string>> own = report::RunFolders(folder);
    if (!own.ok()) continue;
    for (const std::string& run : *own) {
      const Recorded& recorded = Read(run);
      if (recorded.has_rows) recorded_runs.push_back(run);
      absl::StrAppend(&signature, recorded.signature, "\n");
      runs.push_back(RunState(run, recorded));
    }
  }
  if (signature != signature_) {
    absl::StatusOr<json> made =
        report::ReportData(recorded_runs, nullptr, {.each_member = each_member_, .points = kPoints});
    if (made.ok()) {  // otherwise a file has changed since it was read; the next call tries again
      report_ = *std::move(made);
      signature_ = signature;
    }
  }
  return {{"report", report_}, {"runs", std::move(runs)}};
}

HttpServer::State FormatLiveState(const json& before, const json& after) {
  HttpServer::State state;
  state.whole = HttpServer::FormatEvent("state", Text(after));
  if (before.is_null()) return state;
  state.change = HttpServer::FormatEvent("patch", Text(json::diff(before, after)));
  if (state.change.size() >= state.whole.size()) state.change.clear();
  return state;
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
