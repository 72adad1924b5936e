// The records of a run for people: progress.csv, episodes.csv, TensorBoard events, build.txt; and the rule for critics
// that run away.
//
// The learner is the only writer. A checkpoint holds the ends of the files (Ends), and a resumed run continues there,
// so that it writes every row once. The columns of progress.csv and the tags of TensorBoard follow the table of
// statistics (common/metrics/statistics.h). Not thread-safe. Appending blocks when a buffer is full, Sync blocks on the
// disk.
#ifndef DATACOM_LEARNER_RUN_RECORDS_H_
#define DATACOM_LEARNER_RUN_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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
  // `ends` come from the checkpoint that is continued, empty for a new run. The errors of CsvWriter::Resume. A resumed
  // run changes nothing before Begin.
  static absl::StatusOr<std::unique_ptr<RunRecords>> Open(const Options& options, const FileEnds& ends);
  absl::Status Begin();  // cuts the files to their ends and writes build.txt
  absl::Status AppendEpisode(int member, const v1::Episode& episode);
  absl::Status AppendEpoch(const v1::EpochRecord& record);  // one row and one event per member
  absl::Status Sync();                                      // before a checkpoint holds the ends
  FileEnds Ends() const;

 private:
  using Events = std::vector<std::unique_ptr<EventWriter>>;  // one per member
  RunRecords(Options options, std::unique_ptr<CsvWriter> progress, std::unique_ptr<CsvWriter> episodes, Events events);
  absl::Status Flush(bool sync);

  const Options options_;
  const std::vector<EpochStatistic> statistics_;
  const std::unique_ptr<CsvWriter> progress_, episodes_;
  const Events events_;
};

// What is wrong with a member, the worst first.
struct Troubles {
  bool diverged = false, runaway = false, abandons = false, locked = false;
};
// A member's status, as progress.csv and `datacom status` show it.
const char* StatusOf(const Troubles& troubles);
// Whether more than a tenth of a member's training episodes were abandoned: the status `abandoned`.
bool Abandons(const v1::MemberTotals& totals);
// Whether the shield forbids most of what the member meets: the status `locked`. The learned constraint was above 0 in
// more than half of the states of each of the newest epochs, which have 10,000 rows or more together. Outside the
// feasible set the safe map overrides every action, so that nothing is learned.
bool Locked(const v1::MemberTotals& totals);
// Whether the entropy temperature runs away, too: it is above 0.1 and over thirty times the smallest at the end of an
// epoch before. Of 355 recorded members it finds the six whose critic really ran away, and five others.
bool TemperatureRunsAway(double alpha, const v1::MemberTotals& totals);

// The text of build.txt, one line each: versions of this build and of its libraries, the simulators, the arithmetic on
// this processor, the machine, the day of this start (UTC). `before` is the text of the start that a resume continues,
// empty for a new run: the line of the simulators keeps the earlier ones, oldest first, because the run's rows come
// from all of them.
std::string BuildText(const std::string& before);

// Decides whether a member's critic runs away. The status `runaway` (progress.csv, `datacom status`, the report), the
// gauge datacom_member_critic_runaway with its alert, and the learner's warning all use this rule.
//
// A critic runs away if an epoch's mean critic loss is more than ten times the smallest of the ten epochs before it.
// The first ten epochs of learning are left out of the comparison: their loss is small because the agent has met no
// reward yet, and it grows in every healthy run. So epoch 21 is the first that is judged. A loss that has stayed high
// for ten epochs becomes the new reference, and the rule no longer reports it. The rule is for critics that learn from
// a replay. On-policy algorithms are not judged: an epoch may hold two episodes there, and the loss of a critic that
// meets its first fall is many times that of an epoch without one.
class CriticWatch {
 public:
  static constexpr size_t kFirst = 10;   // first epochs of learning, left out
  static constexpr size_t kEpochs = 10;  // epochs before an epoch, which it is compared with
  static constexpr double kGrowth = 10;

  CriticWatch() = default;
  explicit CriticWatch(std::vector<double> losses) : losses_(std::move(losses)) {}  // continues from losses()

  // The mean loss of an epoch that has ended. NaN, from an epoch without an update, does not count.
  void Add(double loss);
  bool runaway() const { return losses_.size() == kFirst + kEpochs + 1 && now() > kGrowth * before(); }
  // The newest loss, and the smallest of the kEpochs before it. They need at least kEpochs + 1 epochs.
  double now() const { return losses_.back(); }
  double before() const;
  const std::vector<double>& losses() const { return losses_; }  // the newest 21, oldest first

 private:
  std::vector<double> losses_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RUN_RECORDS_H_
// SPDX-License-Identifier: Apache-2.0
