// Curves from the records of runs.
#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "deploy/report/groups.h"

namespace datacom::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kNewest = 50;  // training episodes that the paper averages over

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

using Ended = std::vector<std::pair<double, double>>;  // training episodes: environment steps, value

// Returns value(episodes, count) for each progress row: `column` of a member's training episodes in order, and how many
// of them had ended by then.
template <typename Value>
std::vector<double> AfterEpisodes(const RunMember& member, const std::string& column, Value value) {
  std::vector<double> values(member.rows.size(), kNone);
  if (!member.run->episodes || !member.run->episodes->has(column)) return values;
  const Csv& episodes = *member.run->episodes;
  Ended ended;
  for (const size_t row : member.episode_rows) {
    ended.emplace_back(episodes.Number(row, "env_steps"), episodes.Number(row, column));
  }
  // The order looks only at the steps: a cell without a value is NaN, which has no place in an order.
  std::stable_sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t count = 0;
  for (size_t i = 0; i < member.rows.size(); ++i) {
    const double until = member.run->progress.Number(member.rows[i], "env_steps");
    while (count < ended.size() && ended[count].first <= until) ++count;
    values[i] = value(ended, count);
  }
  return values;
}

// `fold` over all training episodes that had ended, starting from 0.
template <typename Fold>
std::vector<double> OverEpisodes(const RunMember& member, const std::string& column, Fold fold) {
  return AfterEpisodes(member, column, [fold, value = 0.0, done = size_t{0}](const Ended& ended, size_t count) mutable {
    for (; done < count; ++done) value = fold(value, ended[done].second);
    return value;
  });
}

// The mean of the newest 50 training episodes, as the paper reports on-policy methods.
std::vector<double> OfNewestEpisodes(const RunMember& member, const std::string& column) {
  return AfterEpisodes(member, column, [](const Ended& ended, size_t count) {
    const size_t newest = std::min(kNewest, count);
    double sum = 0;
    for (size_t i = count - newest; i < count; ++i) sum += ended[i].second;
    return newest > 0 ? sum / static_cast<double>(newest) : kNone;
  });
}

}  // namespace

std::vector<std::pair<double, double>> MemberCurve(const RunMember& member, const std::string& quantity) {
  const Csv& progress = member.run->progress;
  std::vector<double> values;
  absl::string_view column = quantity;
  if (quantity == "updates_per_second") {
    values = UpdatesPerSecond(progress, member.rows);
  } else if (quantity == "cumulative_cost") {
    values = OverEpisodes(member, "sum_cost", [](double sum, double cost) { return sum + cost; });
  } else if (quantity == "cumulative_violating_steps") {
    values = OverEpisodes(member, "violating_steps", [](double sum, double steps) { return sum + steps; });
  } else if (quantity == "worst_violation") {
    values = OverEpisodes(member, "max_violation", [](double worst, double one) { return std::max(worst, one); });
  } else if (absl::ConsumePrefix(&column, "newest_")) {
    values = OfNewestEpisodes(member, std::string(column));
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
  std::map<double, std::vector<double>> at;  // each member's value, by environment steps
  for (size_t i = 0; i < group.members.size(); ++i) {
    for (const auto& [steps, value] : MemberCurve(group.members[i], quantity)) {
      at.try_emplace(steps, group.members.size(), kNone).first->second[i] = value;
    }
  }
  Series series;
  for (const auto& [steps, values] : at) {
    const Interval interval = MeanInterval(values);
    if (interval.count == 0) continue;
    series.steps.push_back(steps);
    series.values.push_back(interval);
    series.members.push_back(values);
  }
  return series;
}

std::vector<double> ShownValues(const Group& group, const std::string& quantity) {
  std::vector<double> values;
  const bool of_all_training = absl::StartsWith(quantity, "cumulative_") || quantity == "worst_violation";
  for (const RunMember& member : group.members) {
    const auto curve = MemberCurve(member, quantity);
    values.push_back((of_all_training ? curve.back() : curve[member.shown]).second);
  }
  return values;
}

}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
