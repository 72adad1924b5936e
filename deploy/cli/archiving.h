// Keeps the archive of a run that trains: after each new checkpoint `datacom copy` runs beside the roles. A store that
// fails stops no training; the copy is tried again, after 5 seconds to a minute.
//
// Not thread-safe. Tick never blocks; BringRun and Finish wait for copies.
#ifndef DATACOM_DEPLOY_CLI_ARCHIVING_H_
#define DATACOM_DEPLOY_CLI_ARCHIVING_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "deploy/cli/process.h"
#include "deploy/cli/train_plan.h"

namespace datacom::cli {

// What `train --archive` does before the run's folder is looked at. A resume whose run is not here gets it from the
// archive; where that is empty, too, the run begins if its folder or the command has an experiment. A folder that has
// one takes only a run of that one. A run that begins needs an empty archive.
struct Brought {
  TrainOptions options;            // to go on with
  std::vector<std::string> notes;  // sentences
  bool copied = false;             // the folder's run is from the archive
};
absl::StatusOr<Brought> BringRun(const TrainOptions& given);

// INVALID_ARGUMENT or UNAVAILABLE, told already, for a place that cannot be used.
absl::Status CheckPlace(const std::string& place);

// "archive: PLACE holds update 12,000, copied 35 s ago" and what fails, from the run's folder; empty without an
// archive.
std::string DescribeArchive(const std::string& run_dir);

class Archiving {
 public:
  // Without a place the object does nothing.
  Archiving(std::string run_dir, std::string place) : run_dir_(std::move(run_dir)), place_(std::move(place)) {}

  // Call it several times a second. Nothing is copied before the run has begun: one that its first row or update has
  // not reached is discarded when it fails. FAILED_PRECONDITION once another copy of the run has gone on: this one
  // should end.
  absl::Status Tick(bool begun);
  std::vector<std::string> TakeEvents();  // since the last call, one sentence each
  // After the roles have ended: copies what is not in the archive yet, and tries again for a while. With a `limit` it
  // gives up after that time. A stop of the process ends it, too. Returns what to tell; empty without an archive.
  absl::StatusOr<std::string> Finish(std::optional<std::chrono::seconds> limit);

 private:
  struct Checkpoint {
    uint64_t update = 0;
    int64_t written = 0;  // when; in pre-training the update stays 0
    bool operator==(const Checkpoint&) const = default;
  };
  std::optional<Checkpoint> Newest() const;
  absl::Status Start();
  absl::Status OnExit(int code);

  const std::string run_dir_, place_;
  const Clock& clock_ = Clock::Real();
  Process copy_;
  std::optional<Checkpoint> copying_, copied_;  // what the copy under way, and the newest whole one, has at least
  std::string error_, kept_;                    // of the newest copy (proto ArchiveState)
  std::chrono::seconds pause_{0};               // after an error
  Clock::Time not_before_ = clock_.Now();
  std::vector<std::string> events_;
};

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_ARCHIVING_H_
// SPDX-License-Identifier: Apache-2.0
