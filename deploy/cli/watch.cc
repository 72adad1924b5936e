// datacom watch: serves a page on this machine that shows runs while they go on.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/metrics/http_server.h"
#include "common/rpc/address.h"
#include "deploy/cli/live.h"
#include "deploy/cli/verbs.h"
#include "deploy/report/live_page.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {
namespace {

constexpr std::chrono::milliseconds kPeriod{1000};
constexpr int kRest = 4;  // reading takes at most one part of the time in kRest + 1

// The names under which a browser on this machine, or behind a forwarded port, reaches the page.
const std::vector<std::string>& LoopbackNames() {
  static const auto* const kNames = new std::vector<std::string>{"127.0.0.1", "localhost", "[::1]"};
  return *kNames;
}

std::string CheckListen(const std::string& listen) {
  if (const std::string wrong = Address(0)(listen); !wrong.empty()) return wrong;
  const std::string host = listen.substr(0, listen.rfind(':'));
  const std::vector<std::string>& names = LoopbackNames();
  if (std::find(names.begin(), names.end(), host) != names.end()) return "";
  return absl::StrCat("must be on this machine (127.0.0.1, localhost or [::1]), not ", listen,
                      ", because anybody who reaches the page can read it; from another machine use ssh -L");
}

HttpServer::Options ServerOptions(const std::string& listen, report::LivePage page) {
  HttpServer::Options options;
  options.listen = listen;
  options.path = "/";
  options.content_type = "text/html; charset=utf-8";
  options.events = "/events";
  options.hosts = LoopbackNames();
  options.headers = {{"Content-Security-Policy", page.policy},        {"Cross-Origin-Opener-Policy", "same-origin"},
                     {"Cross-Origin-Resource-Policy", "same-origin"}, {"Referrer-Policy", "no-referrer"},
                     {"X-Content-Type-Options", "nosniff"},           {"Cache-Control", "no-store"}};
  options.page = [html = std::move(page.html)] { return html; };
  return options;
}

struct WatchOptions {
  std::vector<std::string> folders;
  std::string listen = "127.0.0.1:0";
  bool each_member = false;
  std::string tls;
};

absl::Status WatchRuns(const WatchOptions& options) {
  ASSIGN_OR_RETURN(const Security security, LoadSecurity(options.tls));
  ASSIGN_OR_RETURN(LiveRuns runs, LiveRuns::Open(options.folders, options.each_member, security));
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
