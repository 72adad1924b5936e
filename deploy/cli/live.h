// The state of runs as the live page shows it: their report, how far they are, who waits for whom.
//
// Reads only; never writes into a run folder. Not thread-safe. Collect blocks on the disk and, for runs that may be
// running, on their services (answers.h). Memory is that of a report, of which the result keeps at most kPoints points.
#ifndef DATACOM_DEPLOY_CLI_LIVE_H_
#define DATACOM_DEPLOY_CLI_LIVE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/metrics/http_server.h"
#include "common/rpc/security.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {

class LiveRuns {
 public:
  static constexpr size_t kPoints = 50000;  // of all curves together

  // `folders`: run folders and sweep folders. INVALID_ARGUMENT for any other folder. `each_member`: ReportOptions.
  static absl::StatusOr<LiveRuns> Open(const std::vector<std::string>& folders, bool each_member,
                                       const Security& security);

  // {"report": what report::ReportData returns, of the runs that have records; "runs": a list}. A run has "folder",
  // "state" (the learner's phase; complete; not running), "problem" if its files cannot be read, "done" (share of its
  // steps), "steps_per_second", "updates_per_second", "eta_seconds", "actors", "waits", "sessions" and
  // "violations_total" (of the ledger). A number that is not known is null. Runs that a sweep has begun since the last
  // call are included.
  nlohmann::json Collect();

 private:
  // What the records of a run said when its files last changed.
  struct Recorded {
    std::string signature;  // of the files
    bool has_rows = false, complete = false;
    double done = 0;
    std::string problem;
  };

  LiveRuns(std::vector<std::string> folders, bool each_member, Security security)
      : folders_(std::move(folders)), each_member_(each_member), security_(std::move(security)) {}
  const Recorded& Read(const std::string& run_dir);
  nlohmann::json RunState(const std::string& run_dir, const Recorded& recorded) const;

  std::vector<std::string> folders_;
  bool each_member_;
  Security security_;
  std::map<std::string, Recorded> recorded_;
  std::string signature_;  // of all runs, when report_ was made
  nlohmann::json report_;
};

// Shows `after` to clients that have `before` (null: none have). The events are "state", with all of it, and "patch", a
// JSON patch (RFC 6902), which is left out when it would be longer.
HttpServer::State FormatLiveState(const nlohmann::json& before, const nlohmann::json& after);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_LIVE_H_
// SPDX-License-Identifier: Apache-2.0
