// Curves from the records of runs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "deploy/report/groups.h"

namespace datacom::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// One value per progress row of a member.
std::vector<double> UpdatesPerSecond(const Csv& progress, const std::vector<size_t>& rows) {
  std::vector<double> values(rows.size(), kNone);
  for (size_t i = 1; i < rows.size(); ++i) {
    const double seconds = progress.Number(rows[i], "wall_seconds") - progress.Number(rows[i - 1], "wall_seconds");
    const double updates = progress.Number(rows[i], "updates") - progress.Number(rows[i - 1], "updates");
    if (seconds > 0 && updates > 0) values[i] = updates / seconds;
  }
  return values;
}

// For each progress row: `fold` over `column` of all training episodes that had ended by then, starting from 0.
template <typename Fold>
std::vector<double> OverEpisodes(const RunMember& member, const std::string& column, Fold fold) {
  std::vector<double> values(member.rows.size(), kNone);
  if (!member.run->episodes) return values;
  const Csv& episodes = *member.run->episodes;
  std::vector<std::pair<double, double>> ended;  // environment steps, value
  for (const size_t row : member.episode_rows) {
    ended.emplace_back(episodes.Number(row, "env_steps"), episodes.Number(row, column));
  }
  // By the steps alone: a cell without a value is NaN, which has no place in an order.
  std::stable_sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  double value = 0;
  size_t next = 0;
  for (size_t i = 0; i < member.rows.size(); ++i) {
    const double until = member.run->progress.Number(member.rows[i], "env_steps");
    for (; next < ended.size() && ended[next].first <= until; ++next) value = fold(value, ended[next].second);
    values[i] = value;
  }
  return values;
}

}  // namespace

std::vector<std::pair<double, double>> MemberCurve(const RunMember& member, const std::string& quantity) {
  const Csv& progress = member.run->progress;
  std::vector<double> values;
  if (quantity == "updates_per_second") {
    values = UpdatesPerSecond(progress, member.rows);
  } else if (quantity == "cumulative_cost") {
    values = OverEpisodes(member, "sum_cost", [](double sum, double cost) { return sum + cost; });
  } else if (quantity == "worst_violation") {
    values = OverEpisodes(member, "max_violation", [](double worst, double one) { return std::max(worst, one); });
  } else {
    for (const size_t row : member.rows) values.push_back(progress.Number(row, quantity));
  }
  std::vector<std::pair<double, double>> curve;
  for (size_t i = 0; i < values.size(); ++i) {
    curve.emplace_back(progress.Number(member.rows[i], "env_steps"), values[i]);
  }
  return curve;
}

Series GroupSeries(const Group& group, const std::string& quantity) {
  std::map<double, std::vector<double>> at;  // values of all members, by environment steps
  for (const RunMember& member : group.members) {
    for (const auto& [steps, value] : MemberCurve(member, quantity)) at[steps].push_back(value);
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

std::vector<double> ShownValues(const Group& group, const std::string& quantity) {
  std::vector<double> values;
  const bool of_all_training = quantity == "cumulative_cost" || quantity == "worst_violation";
  for (const RunMember& member : group.members) {
    const auto curve = MemberCurve(member, quantity);
    values.push_back((of_all_training ? curve.back() : curve[member.shown]).second);
  }
  return values;
}

}  // namespace datacom::report
