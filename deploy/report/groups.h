// Runs and what a report compares in them: groups, each the members that are seeds of one setting, and their curves.
//
// A run whose members have no labels is one group. The labelled members of a sweep form a group a label, also across
// the runs that the sweep was split into. Pure but for reading files; thread-safe.
#ifndef DATACOM_DEPLOY_REPORT_GROUPS_H_
#define DATACOM_DEPLOY_REPORT_GROUPS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/records/csv_table.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/report/statistics.h"

namespace datacom::report {

// The file in a sweep's folder that names its run folders, one a line.
inline constexpr char kPopulationsFile[] = "populations.txt";

// The records of one run folder.
struct Run {
  std::string folder;
  v1::Experiment experiment;
  Csv progress;
  std::optional<Csv> episodes;
  std::string build;
};

// Reads run folders; a sweep's folder stands for its runs that have records. INVALID_ARGUMENT for what is neither,
// NOT_FOUND naming the records one lacks.
absl::StatusOr<std::vector<Run>> ReadRuns(const std::vector<std::string>& folders);

// One member of a run and its rows in the run's records.
struct RunMember {
  const Run* run = nullptr;
  int member = 0;
  std::vector<size_t> rows;          // of progress.csv, never empty
  std::vector<size_t> episode_rows;  // of episodes.csv
  size_t shown = 0;                  // which of `rows` tables show
};

struct Group {
  std::string title;  // unlike every other group's
  bool labelled = false;
  std::vector<RunMember> members;  // never empty
  const Run& run() const { return *members[0].run; }
};
// Which row of a member tables show: the newest, or that of the best epoch (common/records/best_epoch.h); the newest
// too where no epoch was evaluated yet.
enum class Shown { kLast, kBest };
// In the order of runs and, in them, of members. Points into `runs`.
std::vector<Group> GroupRuns(const std::vector<Run>& runs, Shown shown = Shown::kLast);

// (environment steps, value) at every progress row of a member; NaN where there is none. `quantity` is a column of
// progress.csv or derived: "updates_per_second" from consecutive rows; from episodes.csv "cumulative_cost", the cost of
// all training episodes so far, and "worst_violation", the largest violation in any of them.
std::vector<std::pair<double, double>> MemberCurve(const RunMember& member, const std::string& quantity);

// Points of a curve: at each number of environment steps the mean over the members and its 95 % interval.
struct Series {
  std::vector<double> steps;
  std::vector<Interval> values;
};
Series GroupSeries(const Group& group, const std::string& quantity);

// The value of each member in its shown row; of what is derived from episodes.csv always in its newest row, so that the
// totals of all methods cover all of their training.
std::vector<double> ShownValues(const Group& group, const std::string& quantity);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_GROUPS_H_
