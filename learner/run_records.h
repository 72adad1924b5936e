// The records of a run for people: progress.csv, episodes.csv, TensorBoard events, build.txt; and the rule for critics
// that run away.
//
// The learner is the only writer. A checkpoint holds the ends of the files (Ends), and a resumed run continues there,
// so that it writes every row once. The columns of progress.csv and the tags of TensorBoard follow the table of
// statistics (common/metrics/statistics.h). Not thread-safe. Appending blocks when a buffer is full, Flush(true) blocks
// on the disk.
#ifndef DATACOM_LEARNER_RUN_RECORDS_H_
#define DATACOM_LEARNER_RUN_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/metrics/statistics.h"
#include "common/records/csv.h"
#include "common/records/tensorboard.h"
#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::learner {

class RunRecords {
 public:
  struct Options {
    std::string run_dir, algorithm;
    std::vector<uint64_t> seeds;          // one per member
    uint64_t min_size = 0;                // rows before the rows of the first update
    std::vector<std::string> cost_names;  // RowSchema::named_costs
    std::vector<std::string> log_names;   // RowSchema::logs
    std::string environment;              // a line of build.txt, or empty (python::CodeLine)
  };
  // `ends` come from the checkpoint that is continued, empty for a new run. The errors of CsvWriter::Open. A resumed
  // run changes nothing before Begin.
  static absl::StatusOr<std::unique_ptr<RunRecords>> Open(const Options& options, const FileEnds& ends);
  absl::Status Begin();  // cuts the files to their ends and writes build.txt
  absl::Status AppendEpisode(int member, const v1::Episode& episode);
  absl::Status AppendEpoch(const v1::EpochRecord& record);  // one row and one event per member
  absl::Status Flush(bool sync);                            // with sync before a checkpoint holds the ends
  FileEnds Ends() const;

 private:
  explicit RunRecords(const Options& options) : options_(options), statistics_(StatisticsOf(options.algorithm)) {}

  const Options options_;
  const std::vector<EpochStatistic> statistics_;
  std::unique_ptr<CsvWriter> progress_, episodes_;
  std::vector<std::unique_ptr<EventWriter>> events_;  // one per member
};

// A member's status, as progress.csv and `datacom status` show it: what is wrong with it, the worst first, or ok.
const char* StatusOf(bool diverged, bool runaway, bool abandons, bool locked);

// The text of build.txt, one line each: versions of this build and of its libraries, the simulators, the arithmetic on
// this processor, the machine, the day of this start (UTC). `before` is the text of the start that a resume continues,
// empty for a new run: the line of the simulators keeps the earlier ones, oldest first, because the run's rows come
// from all of them.
std::string BuildText(const std::string& before);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RUN_RECORDS_H_
// SPDX-License-Identifier: Apache-2.0
