// Runs, the groups of members that a report compares, and their curves. The members of a group are seeds of one
// setting.
//
// A run whose members have no labels is one group. The labelled members of a sweep form one group per label, also
// across the runs that the sweep was split into, whose settings are equal but for those that a resume may change. The
// functions read files and are otherwise pure; thread-safe.
#ifndef DATACOM_DEPLOY_REPORT_GROUPS_H_
#define DATACOM_DEPLOY_REPORT_GROUPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/records/csv.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/report/statistics.h"

namespace datacom::report {

// The file in a sweep's folder that names its run folders, one per line.
inline constexpr char kPopulationsFile[] = "populations.txt";
bool IsSweepFolder(const std::string& folder);

// The experiment and the records of one run folder.
struct Run {
  std::string folder;
  v1::Experiment experiment;            // records may name members that it does not have
  std::vector<std::string> cost_names;  // only of tasks with several costs
  std::vector<std::string> log_names;   // quantities that the task logs
  bool defines_success = true;
  Csv progress;
  std::optional<Csv> episodes;
  std::string build;
};

// A file that a page shows as it is; nothing without it, if it has more than `most` bytes, and for a link: in a
// stranger's folder it could name any file of the user's.
std::optional<std::string> ReadShown(const std::string& path, uint64_t most);

// The run folders of a sweep's folder; of any other folder, the folder itself.
absl::StatusOr<std::vector<std::string>> RunFolders(const std::string& folder);

// Reads run folders; for a sweep's folder, its runs that have records. INVALID_ARGUMENT for any other folder, NOT_FOUND
// naming missing records.
absl::StatusOr<std::vector<Run>> ReadRuns(const std::vector<std::string>& folders);

// One member of a run and its rows in the run's records.
struct RunMember {
  const Run* run = nullptr;
  int member = 0;
  std::vector<size_t> rows;          // row numbers in progress.csv, never empty
  std::vector<size_t> episode_rows;  // row numbers in episodes.csv
  size_t shown = 0;                  // index in `rows` of the row that tables show
};

struct Group {
  std::string title;               // unique
  std::vector<RunMember> members;  // never empty
  const Run& run() const { return *members[0].run; }
};
// The row of a member that tables show: the newest, or the best epoch's (common/records/best_epoch.h). Without an
// evaluated epoch it is the newest in both cases.
enum class Shown { kLast, kBest };
// Ordered by run and, within a run, by member. The result points into `runs`.
std::vector<Group> GroupRuns(const std::vector<Run>& runs, Shown shown = Shown::kLast);

// A group for each member, with its seed in the title.
std::vector<Group> SplitMembers(const std::vector<Group>& groups);

// (environment steps, value) for every progress row of a member; NaN where there is no value. `quantity` is a column of
// progress.csv or derived: "updates_per_second" from consecutive rows; from episodes.csv "cumulative_cost" and
// "cumulative_violating_steps", the sums over all training episodes so far, "worst_violation", the largest violation in
// any of them, and "newest_COLUMN", the mean of a column over the newest 50.
std::vector<std::pair<double, double>> MemberCurve(const RunMember& member, const std::string& quantity);

// The points of a curve: for each number of environment steps, the mean over the members, its 95 % interval, and the
// value of each member (NaN where it has none).
struct Series {
  std::vector<double> steps;
  std::vector<Interval> values;
  std::vector<std::vector<double>> members;
};
Series GroupSeries(const Group& group, const std::string& quantity);

// Each member's value in its shown row. A quantity derived from episodes.csv is always taken from the newest row, so
// that the totals of all methods cover their whole training.
std::vector<double> ShownValues(const Group& group, const std::string& quantity);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_GROUPS_H_
// SPDX-License-Identifier: Apache-2.0
