// datacom watch: serves a page on this machine that shows runs while they go on.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/flag_checks.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/metrics/http_server.h"
#include "common/records/ledger.h"
#include "common/records/message_json.h"
#include "common/rpc/assignment.h"
#include "common/rpc/security.h"
#include "deploy/cli/answers.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/sweep.h"
#include "deploy/cli/verbs.h"
#include "deploy/report/groups.h"
#include "deploy/report/report.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {
namespace {

struct WatchOptions {
  std::vector<std::string> folders;  // of runs and sweeps
  std::string listen = "127.0.0.1:0";
  bool each_member = false;
  std::string tls;
};

// The state of runs as the live page shows it: their report, how far they are, who waits for whom.
//
// Reads only; never writes into a run folder. Not thread-safe. Collect blocks on the disk and, for runs that may be
// running, on their services (answers.h). Memory is that of a report, of which the result keeps at most kPoints points.
class LiveRuns {
 public:
  static constexpr size_t kPoints = 50000;  // of all curves together

  LiveRuns(WatchOptions options, Security security) : options_(std::move(options)), security_(std::move(security)) {}

  // {"report": what report::ReportData returns, of the runs that have records; "runs": a list}. A run has "folder",
  // "state" (that of ProgressJson; complete; not running), "problem" if its files cannot be read, "done" (share of its
  // steps), "steps_per_second", "updates_per_second", "eta_seconds", "actors", "waits", "sessions" and
  // "violations_total" (of the ledger). A number that is not known is null. Runs that a sweep has begun since the last
  // call are included.
  nlohmann::json Collect();

 private:
  // What the records of a run said when its files last changed.
  struct Recorded {
    std::string signature;  // of the files
    bool has_rows = false;
    cli::RunState state;
    std::string problem;
  };

  const Recorded& Read(const std::string& run_dir);
  nlohmann::json RunState(const std::string& run_dir, const Recorded& recorded) const;

  const WatchOptions options_;
  const Security security_;
  std::map<std::string, Recorded> recorded_;
  std::string signature_;  // of all runs, when report_ was made
  nlohmann::json report_ = report::ReportData({}, nullptr).value_or(nlohmann::json());
};

namespace fs = std::filesystem;
using nlohmann::json;

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

// How many violations the ledger has.
void AddViolations(const std::string& run_dir, json* state) {
  const absl::StatusOr<uint64_t> count = CountViolations(run_dir);
  (*state)["violations_total"] = count.value_or(0);
  if (!count.ok()) (*state)["problem"] = count.status().message();
}

void AddAnswers(const Answers& answers, json* state) {
  const ProgressView view = MakeProgress(answers.replay, answers.learner);
  (*state)["state"] = ProgressJson(view)["state"];
  (*state)["done"] = FractionDone(view);
  (*state)["steps_per_second"] = std::round(view.steps_per_second);
  (*state)["updates_per_second"] = std::round(view.learner.updates_per_second());
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

const LiveRuns::Recorded& LiveRuns::Read(const std::string& run_dir) {
  Recorded& recorded = recorded_[run_dir];
  std::string signature = SignatureOf(run_dir);
  if (recorded.signature == signature) return recorded;
  recorded = Recorded();
  recorded.signature = std::move(signature);
  const absl::StatusOr<std::vector<report::Run>> read = report::ReadRuns({run_dir});
  recorded.has_rows = read.ok();
  if (read.ok()) recorded.state = ReadRunState(run_dir);
  if (!read.ok() && !absl::IsNotFound(read.status())) recorded.problem = std::string(read.status().message());
  return recorded;
}

json LiveRuns::RunState(const std::string& run_dir, const Recorded& recorded) const {
  json state = {{"folder", run_dir},
                {"state", recorded.state.complete ? "complete" : "not running"},
                {"done", recorded.state.done},
                {"steps_per_second", nullptr},
                {"updates_per_second", nullptr},
                {"eta_seconds", nullptr},
                {"actors", nullptr},
                {"waits", json::array()},
                {"sessions", json::array()}};
  AddViolations(run_dir, &state);
  if (!recorded.problem.empty()) state["problem"] = recorded.problem;
  if (recorded.state.complete) return state;
  const absl::StatusOr<Answers> answers = AskRun(run_dir, security_);
  if (answers.ok() && (answers->replay || answers->learner)) AddAnswers(*answers, &state);
  if (absl::IsInvalidArgument(answers.status())) state["problem"] = answers.status().message();
  return state;
}

json LiveRuns::Collect() {
  std::vector<std::string> recorded_runs;
  std::string signature;
  json runs = json::array();
  for (const std::string& folder : options_.folders) {
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
        report::ReportData(recorded_runs, nullptr, {.each_member = options_.each_member, .points = kPoints});
    if (made.ok()) {  // otherwise a file has changed since it was read; the next call tries again
      report_ = *std::move(made);
      signature_ = signature;
    }
  }
  return {{"report", report_}, {"runs", std::move(runs)}};
}

// Shows `after` to clients that have `before` (null: none have). The events are "state", with all of it, and "patch", a
// JSON patch (RFC 6902), which is left out when it would be longer.
HttpServer::State FormatLiveState(const json& before, const json& after) {
  HttpServer::State state;
  state.whole = HttpServer::FormatEvent("state", JsonText(after));
  if (before.is_null()) return state;
  state.change = HttpServer::FormatEvent("patch", JsonText(json::diff(before, after)));
  if (state.change.size() >= state.whole.size()) state.change.clear();
  return state;
}

constexpr std::chrono::milliseconds kPeriod{1000};
constexpr int kRest = 4;  // reading takes at most one part of the time in kRest + 1

std::string CheckListen(const std::string& listen) {
  if (const std::string wrong = Address(0)(listen); !wrong.empty()) return wrong;
  const std::string host = listen.substr(0, listen.rfind(':'));
  const std::vector<std::string>& names = HttpServer::LoopbackNames();
  if (std::find(names.begin(), names.end(), host) != names.end()) return "";
  return absl::StrCat("must be on this machine (127.0.0.1, localhost or [::1]), not ", listen,
                      ", because anybody who reaches the page can read it; from another machine use ssh -L");
}

HttpServer::Options ServerOptions(const std::string& listen, report::LivePage page) {
  HttpServer::Options options = HttpServer::ForThisMachine(listen, page.policy);
  options.events = "/events";
  options.page = [html = std::move(page.html)] { return html; };
  return options;
}

absl::Status WatchRuns(WatchOptions options) {
  ASSIGN_OR_RETURN(Security security, LoadSecurity(options.tls));
  for (std::string& folder : options.folders) {
    folder = WithoutSlash(NormalPath(folder));
    RETURN_IF_ERROR(RunsOfFolder(folder).status());
  }
  LiveRuns runs(options, std::move(security));
  ASSIGN_OR_RETURN(const report::Plotting plotting, report::ReadPlotting());
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server,
                   HttpServer::Start(ServerOptions(options.listen, report::RenderLivePage(plotting))));
  Stop::InstallSignalHandlers();
  std::printf("watch: http://%s/ shows the runs until Ctrl-C\n", server->address().c_str());
  std::fflush(stdout);
  nlohmann::json shown;
  std::chrono::milliseconds pause{0};
  while (!Stop::Process().WaitFor(pause)) {
    const Clock::Time begin = Clock::Real().Now();
    nlohmann::json state = runs.Collect();
    if (state != shown) {
      server->Publish(FormatLiveState(shown, state));
      shown = std::move(state);
    }
    pause =
        std::max(kPeriod, kRest * std::chrono::duration_cast<std::chrono::milliseconds>(Clock::Real().Now() - begin));
  }
  return absl::OkStatus();
}

}  // namespace

void AddWatch(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<WatchOptions>();
  CLI::App* verb = app->add_subcommand(
      "watch",
      "Serves a page that shows runs while they go on: verdicts, curves, how far they are, the newest violations");
  verb->add_option("run_dirs", options->folders, "run folders or sweep folders, of runs that go on or have ended")
      ->required();
  verb->add_option("--listen", options->listen,
                   "address on this machine; port 0 takes a free one (default 127.0.0.1:0)")
      ->check(&CheckListen);
  verb->add_flag("--each-member", options->each_member,
                 "draw a curve for each member instead of the mean over members");
  verb->add_option("--tls", options->tls, "folder with ca.crt, tls.crt, tls.key and token, for runs that use TLS");
  verb->footer(
      "The page only reads, loads nothing from elsewhere and needs no password, so it is served only on this machine.\n"
      "Example: datacom watch runs/five runs/sac --listen 127.0.0.1:8080\n"
      "         ssh -L 8080:127.0.0.1:8080 HOST    # then http://127.0.0.1:8080/ shows the page of another machine");
  verb->callback([options, exit_code] { *exit_code = Finish(WatchRuns(*options)); });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
