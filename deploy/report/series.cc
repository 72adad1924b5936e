// Curves from the records of a run.
#include <cmath>
#include <limits>
#include <map>

#include "deploy/report/report.h"

namespace datacom::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// One value a progress row of one member.
std::vector<double> UpdatesPerSecond(const Csv& progress, const std::vector<size_t>& rows) {
  std::vector<double> values(rows.size(), kNone);
  for (size_t i = 1; i < rows.size(); ++i) {
    const double seconds = progress.Number(rows[i], "wall_seconds") - progress.Number(rows[i - 1], "wall_seconds");
    const double updates = progress.Number(rows[i], "updates") - progress.Number(rows[i - 1], "updates");
    if (seconds > 0 && updates > 0) values[i] = updates / seconds;
  }
  return values;
}

std::vector<double> CumulativeCost(const Csv& progress, const std::vector<size_t>& rows, const Csv& episodes,
                                   const std::vector<size_t>& episode_rows) {
  std::vector<double> values(rows.size(), 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double until = progress.Number(rows[i], "env_steps");
    for (const size_t episode : episode_rows) {
      if (episodes.Number(episode, "env_steps") <= until) values[i] += episodes.Number(episode, "sum_cost");
    }
  }
  return values;
}

}  // namespace

Series RunSeries(const Csv& progress, const Csv* episodes, const std::string& quantity) {
  std::map<int, std::vector<size_t>> episode_rows;
  if (episodes != nullptr && quantity == "cumulative_cost") episode_rows = RowsByMember(*episodes);
  std::map<double, std::vector<double>> at;  // values of all members, by environment steps
  for (const auto& [member, rows] : RowsByMember(progress)) {
    std::vector<double> values;
    if (quantity == "updates_per_second") {
      values = UpdatesPerSecond(progress, rows);
    } else if (quantity == "cumulative_cost") {
      if (episodes == nullptr) return {};
      values = CumulativeCost(progress, rows, *episodes, episode_rows[member]);
    } else {
      for (const size_t row : rows) values.push_back(progress.Number(row, quantity));
    }
    for (size_t i = 0; i < rows.size(); ++i) at[progress.Number(rows[i], "env_steps")].push_back(values[i]);
  }
  Series series;
  for (const auto& [steps, values] : at) {
    const Interval interval = MeanInterval(values);
    if (interval.count == 0) continue;
    series.steps.push_back(steps);
    series.values.push_back(interval);
  }
  return series;
}

}  // namespace datacom::report
