// datacom monitor: Prometheus over the processes of runs, with the shipped rules and alerts, and Grafana with the
// shipped dashboards where it is installed.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/files.h"
#include "common/base/flag_checks.h"
#include "common/base/shared_files.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/metrics/http_server.h"
#include "deploy/cli/process.h"
#include "deploy/cli/sweep.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

struct MonitorOptions {
  std::vector<std::string> folders;
  std::string listen = "127.0.0.1:9090", grafana = "127.0.0.1:3000", tls, data = "runs/monitor";
  int every = 5;
};

// A string of YAML.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

// Roles that use TLS say so in targets.json and know only clients with a certificate of their authority.
absl::StatusOr<std::string> TlsConfig(const std::string& folder) {
  if (folder.empty()) return "";
  for (const char* name : {"ca.crt", "prometheus.crt", "prometheus.key"}) {
    if (FileExists(absl::StrCat(folder, "/", name))) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--tls ", folder, " has no ", name, "; ", SharedPath("dev/make_tls.sh"), " makes it"));
  }
  const auto file = [&](const char* name) { return Quoted(absl::StrCat(AbsolutePath(folder), "/", name)); };
  return absl::StrCat("    tls_config:\n      ca_file: ", file("ca.crt"), "\n      cert_file: ", file("prometheus.crt"),
                      "\n      key_file: ", file("prometheus.key"), "\n      server_name: datacom\n");
}

// Prometheus reads targets.json again when `train` rewrites it.
absl::StatusOr<std::string> Configuration(const MonitorOptions& options) {
  std::string files;
  for (const std::string& folder : options.folders) {
    ASSIGN_OR_RETURN(const std::vector<std::string> runs, RunsOfFolder(folder));
    for (const std::string& run : runs) {
      RETURN_IF_ERROR(CheckFolderName("folder", run));
      const std::string path = AbsolutePath(run);
      if (absl::StrContains(path, "*")) {
        return absl::InvalidArgumentError(absl::StrCat(path, ": Prometheus takes * in a folder's name for a pattern"));
      }
      const std::string literal = absl::StrReplaceAll(path, {{"\\", "\\\\"}, {"[", "\\["}, {"?", "\\?"}});
      absl::StrAppend(&files, "          - ", Quoted(literal + "/targets.json"), "\n");
    }
  }
  ASSIGN_OR_RETURN(const std::string tls, TlsConfig(options.tls));
  const std::string rules = FindSharedFile("prometheus/rules.yml", "deploy/prometheus/rules.yml");
  const std::string alerts = FindSharedFile("prometheus/alerts.yml", "deploy/prometheus/alerts.yml");
  return absl::StrCat("# Written by `datacom monitor`.\nglobal:\n  scrape_interval: ", options.every,
                      "s\n  evaluation_interval: ", 3 * options.every, "s\nrule_files:\n  - ",
                      Quoted(AbsolutePath(rules)), "\n  - ", Quoted(AbsolutePath(alerts)),
                      "\nscrape_configs:\n  - job_name: datacom\n", tls, "    file_sd_configs:\n      - files:\n",
                      files);
}

std::string Dashboards() { return AbsolutePath(FindSharedFile("grafana/dashboards", "deploy/grafana/dashboards")); }

// Grafana over that Prometheus, with the shipped dashboards; anybody who reaches it may look. It ends with this
// process, whose environment has its settings. Returns false where it is not installed or not wanted.
absl::StatusOr<bool> StartGrafana(const MonitorOptions& options, Process* grafana) {
  const std::string found = OutputOf("command -v grafana").value_or("");
  const std::string program(absl::StripAsciiWhitespace(found)), data = AbsolutePath(options.data) + "/grafana";
  if (program.empty() || options.grafana.empty()) return false;
  std::error_code error;
  std::filesystem::path home = std::filesystem::canonical(program, error).parent_path().parent_path();
  if (!FileExists((home / "conf/defaults.ini").string())) home = "/usr/share/grafana";  // of its packages
  const size_t colon = options.grafana.rfind(':');
  const std::pair<const char*, std::string> settings[] = {
      {"GF_SERVER_HTTP_ADDR", options.grafana.substr(0, colon)},
      {"GF_SERVER_HTTP_PORT", options.grafana.substr(colon + 1)},
      {"GF_PATHS_DATA", data},
      {"GF_PATHS_LOGS", data},
      {"GF_PATHS_PROVISIONING", AbsolutePath(FindSharedFile("grafana/provisioning", "deploy/grafana/provisioning"))},
      {"GF_AUTH_ANONYMOUS_ENABLED", "true"},
      {"GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION", "true"},
      {"GF_ANALYTICS_REPORTING_ENABLED", "false"},
      {"DATACOM_PROMETHEUS", "http://" + options.listen},
      {"DATACOM_DASHBOARDS", Dashboards()}};
  for (const auto& [name, value] : settings) ::setenv(name, value.c_str(), /*overwrite=*/1);
  RETURN_IF_ERROR(MakeFolders(data));
  RETURN_IF_ERROR(grafana->Start({program, "server", "--homepath", home.string()}, data + "/output.log"));
  return true;
}

// With a free port in the place of 0, of which nobody would learn: Prometheus names its port in its log alone.
absl::StatusOr<std::string> ListenAddress(const std::string& listen) {
  if (!absl::EndsWith(listen, ":0")) return listen;
  HttpServer::Options options;
  options.listen = listen;
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server, HttpServer::Start(options));
  return server->address();
}

absl::Status Monitor(MonitorOptions options) {
  ASSIGN_OR_RETURN(const std::string configuration, Configuration(options));
  RETURN_IF_ERROR(CheckFolderName("--data", options.data));
  RETURN_IF_ERROR(MakeFolders(options.data));
  const std::string file = AbsolutePath(options.data) + "/prometheus.yml";
  RETURN_IF_ERROR(WriteFileAtomically(file, configuration));
  if (!OutputOf("command -v prometheus")) {
    return absl::FailedPreconditionError(absl::StrCat(
        "prometheus is not installed; install it (Debian: prometheus), or point one of your own to ", file));
  }
  ASSIGN_OR_RETURN(options.listen, ListenAddress(options.listen));
  Process grafana;
  ASSIGN_OR_RETURN(const bool drawn, StartGrafana(options, &grafana));
  const std::string dashboards = drawn ? absl::StrCat("dashboards: http://", options.grafana, "/d/datacom-safety")
                                       : "dashboards for a Grafana that reads it: " + Dashboards();
  std::printf("Prometheus: http://%s/ until Ctrl-C; %s\n", options.listen.c_str(), dashboards.c_str());
  RETURN_IF_ERROR(FlushStandardOutput());
  const std::string config = "--config.file=" + file,
                    data = "--storage.tsdb.path=" + AbsolutePath(options.data) + "/data",
                    listen = "--web.listen-address=" + options.listen;
  ::execlp("prometheus", "prometheus", config.c_str(), data.c_str(), listen.c_str(), nullptr);
  return ErrnoStatus(errno, "run prometheus");
}

}  // namespace

void AddMonitor(CLI::App* app, int* exit_code) {
  auto options = std::make_shared<MonitorOptions>();
  CLI::App* verb =
      app->add_subcommand("monitor", "Runs Prometheus, and Grafana where it is installed, over the processes of runs");
  verb->add_option("run_dirs", options->folders, "run folders or sweep folders, whose runs may begin later")
      ->required();
  verb->add_option("--listen", options->listen, "address of Prometheus; port 0 takes a free one")
      ->capture_default_str()
      ->check(Address(0));
  verb->add_option("--grafana", options->grafana,
                   "address of Grafana, which is started where it is installed; \"\" starts none")
      ->capture_default_str()
      ->check(Address(1));
  verb->add_option("--data", options->data, "folder of its configuration and data")->capture_default_str();
  verb->add_option("--every", options->every, "seconds between two looks at each process")
      ->capture_default_str()
      ->check(WholeNumber<int>(1));
  verb->add_option("--tls", options->tls,
                   "folder with ca.crt, prometheus.crt and prometheus.key, for runs that use TLS");
  verb->footer("Example: datacom monitor runs/five --listen 127.0.0.1:9091");
  verb->callback([options, exit_code] { *exit_code = Finish(Monitor(*options)); });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
