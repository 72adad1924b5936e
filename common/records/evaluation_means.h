// Means over one evaluation's episodes, as in progress.csv and `datacom eval`. Abandoned episodes do not count. Pure
// functions.
#ifndef DATACOM_COMMON_RECORDS_EVALUATION_MEANS_H_
#define DATACOM_COMMON_RECORDS_EVALUATION_MEANS_H_

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/records/csv.h"
#include "datacom/v1/learner.pb.h"
#include "datacom/v1/replay.pb.h"

namespace datacom {

// The columns of records that a task names: for each of several costs its largest violation, its sum and its violating
// steps (docs/tasks.md 3.4), and the mean of each quantity that the task logs. Where there are fewer values
// than names, cells are empty. Pure functions.
struct NamedCostValue {
  double max_violation = 0, sum_cost = 0, violating_steps = 0;
};
using NamedCostValues = std::vector<NamedCostValue>;

// "max_violation.NAME", "sum_cost.NAME", "violating_steps.NAME", each with the prefix.
inline std::vector<std::string> NamedCostColumns(const std::vector<std::string>& names,
                                                 const std::string& prefix = "") {
  std::vector<std::string> columns;
  for (const std::string& name : names) {
    columns.push_back(absl::StrCat(prefix, "max_violation.", name));
    columns.push_back(absl::StrCat(prefix, "sum_cost.", name));
    columns.push_back(absl::StrCat(prefix, "violating_steps.", name));
  }
  return columns;
}

inline void AppendNamedCosts(const NamedCostValues& values, size_t names, std::vector<std::string>* cells) {
  for (size_t i = 0; i < names; ++i) {
    const double none = std::nan("");
    const auto [largest, sum, steps] = i < values.size() ? values[i] : NamedCostValue{none, none, none};
    for (const double value : {largest, sum, steps}) cells->push_back(Cell(value));
  }
}

// "log.NAME", with the prefix.
inline std::vector<std::string> LogColumns(const std::vector<std::string>& names, const std::string& prefix = "") {
  std::vector<std::string> columns;
  for (const std::string& name : names) columns.push_back(absl::StrCat(prefix, "log.", name));
  return columns;
}

template <typename Values>
void AppendLogs(const Values& values, size_t names, std::vector<std::string>* cells) {
  for (size_t i = 0; i < names; ++i) {
    const int index = static_cast<int>(i);
    cells->push_back(Cell(i < static_cast<size_t>(values.size()) ? values[index] : std::nan("")));
  }
}

// The named costs of an Episode or EvaluationEpisode; empty if its lists have different lengths.
template <typename Episode>
NamedCostValues NamedCostsOf(const Episode& episode) {
  NamedCostValues values;
  if (episode.named_max_violation_size() != episode.named_sum_cost_size() ||
      episode.named_violating_steps_size() != episode.named_sum_cost_size())
    return values;
  for (int i = 0; i < episode.named_sum_cost_size(); ++i) {
    values.push_back({episode.named_max_violation(i), episode.named_sum_cost(i),
                      static_cast<double>(episode.named_violating_steps(i))});
  }
  return values;
}

// The columns of episodes.csv, and the cells of an episode in them.
inline std::vector<std::string> EpisodeColumns(const std::vector<std::string>& costs,
                                               const std::vector<std::string>& logs) {
  std::vector<std::string> columns = {"member",        "session",  "environment",       "episode",
                                      "env_steps",     "length",   "discounted_return", "return",
                                      "max_violation", "sum_cost", "violating_steps",   "policy_version"};
  for (const auto& named : {NamedCostColumns(costs), LogColumns(logs)}) {
    columns.insert(columns.end(), named.begin(), named.end());
  }
  return columns;
}

inline std::vector<std::string> EpisodeCells(uint32_t member, const v1::Episode& episode, size_t costs, size_t logs) {
  std::vector<std::string> cells = {Cell(member),
                                    Cell(episode.session()),
                                    Cell(episode.environment()),
                                    Cell(episode.episode()),
                                    Cell(episode.last_row()),
                                    Cell(episode.length()),
                                    Cell(episode.discounted_return()),
                                    Cell(episode.return_()),
                                    Cell(episode.max_violation()),
                                    Cell(episode.sum_cost()),
                                    Cell(episode.violating_steps()),
                                    Cell(episode.policy_update())};
  AppendNamedCosts(NamedCostsOf(episode), costs, &cells);
  AppendLogs(episode.log_mean(), logs, &cells);
  return cells;
}

inline constexpr double kShieldActs = 0.02;  // a smaller change of the action does not count

struct EvaluationMeans {
  int episodes = 0;  // that count; if 0, the means are NaN
  double discounted_return = 0, return_ = 0, max_violation = 0, sum_cost = 0;
  double violating_steps = 0;
  double mean_cost = 0;  // mean over episodes of the mean cost per step
  double length = 0;
  double success_rate = 0;
  double reached_rate = 0;   // of episodes with success at some step
  double violated_rate = 0;  // of episodes with a cost above 0
  double absorbed_rate = 0;  // of episodes that the task ended
  // Means over episodes; NaN if not every episode has them (proto EvaluationEpisode).
  double shield_share = 0, shield_change = 0, infeasible_share = 0, largest_constraint = 0;
  NamedCostValues named;     // means of each named cost; empty if not every episode has them
  std::vector<double> logs;  // means of each quantity that the task logs; empty if not every episode has them
  int abandoned = 0;         // episodes with an invalid simulator step in every attempt
};

// What an evaluation says of the shield: "locked" if its constraint forbids most states, "idle" if it changes hardly
// any action, "acts" otherwise, "none" for a policy without a shield.
inline const char* ShieldState(const EvaluationMeans& means) {
  return std::isnan(means.shield_share) ? "none"
         : means.infeasible_share > 0.5 ? "locked"
         : means.shield_share < 0.001   ? "idle"
                                        : "acts";
}

// Mean cost per step; 0 for an episode without steps.
inline double MeanCost(const v1::EvaluationEpisode& episode) {
  return episode.length() == 0 ? 0 : episode.sum_cost() / episode.length();
}

// A mean and the number of an episode that it is a mean of.
struct EvaluationMean {
  absl::string_view key;   // of the JSON of `datacom eval`
  absl::string_view name;  // column eval_NAME of progress.csv and tag eval/NAME of TensorBoard; empty: not in them
  double EvaluationMeans::*mean;
  double (*of)(const v1::EvaluationEpisode& episode);
};
inline constexpr EvaluationMean kEvaluationMeans[] = {
    {"discounted_return", "discounted_return", &EvaluationMeans::discounted_return,
     [](auto& e) { return e.discounted_return(); }},
    {"return", "return", &EvaluationMeans::return_, [](auto& e) { return e.return_(); }},
    {"max_violation", "max_violation", &EvaluationMeans::max_violation, [](auto& e) { return e.max_violation(); }},
    {"sum_cost", "sum_cost", &EvaluationMeans::sum_cost, [](auto& e) { return e.sum_cost(); }},
    {"violating_steps", "violating_steps", &EvaluationMeans::violating_steps,
     [](auto& e) -> double { return e.violating_steps(); }},
    {"mean_cost", "mean_cost", &EvaluationMeans::mean_cost, &MeanCost},
    {"length", "", &EvaluationMeans::length, [](auto& e) -> double { return e.length(); }},
    {"success", "success_rate", &EvaluationMeans::success_rate, [](auto& e) -> double { return e.success(); }},
    {"reached", "", &EvaluationMeans::reached_rate, [](auto& e) -> double { return e.reached(); }},
    {"violated", "", &EvaluationMeans::violated_rate, [](auto& e) -> double { return e.max_violation() > 0; }},
    {"absorbed", "", &EvaluationMeans::absorbed_rate, [](auto& e) -> double { return e.absorbed(); }},
    {"shield_share", "shield_share", &EvaluationMeans::shield_share,
     [](auto& e) { return e.has_shield_share() ? e.shield_share() : std::nan(""); }},
    {"shield_change", "shield_change", &EvaluationMeans::shield_change,
     [](auto& e) { return e.has_shield_change() ? e.shield_change() : std::nan(""); }},
    {"infeasible_share", "infeasible_share", &EvaluationMeans::infeasible_share,
     [](auto& e) { return e.has_infeasible_share() ? e.infeasible_share() : std::nan(""); }},
    {"largest_constraint", "largest_constraint", &EvaluationMeans::largest_constraint,
     [](auto& e) { return e.has_largest_constraint() ? e.largest_constraint() : std::nan(""); }}};

template <typename Episodes>
NamedCostValues NamedMeansOf(const Episodes& episodes, double count) {
  NamedCostValues means;
  for (const v1::EvaluationEpisode& episode : episodes) {
    if (episode.abandoned()) continue;
    const NamedCostValues values = NamedCostsOf(episode);
    if (means.empty()) means.resize(values.size());
    if (values.size() != means.size()) return {};
    for (size_t i = 0; i < values.size(); ++i) {
      means[i].max_violation += values[i].max_violation / count;
      means[i].sum_cost += values[i].sum_cost / count;
      means[i].violating_steps += values[i].violating_steps / count;
    }
  }
  return means;
}

template <typename Episodes>
std::vector<double> LogMeansOf(const Episodes& episodes, double count) {
  std::vector<double> means;
  for (const v1::EvaluationEpisode& episode : episodes) {
    if (episode.abandoned()) continue;
    if (means.empty()) means.resize(episode.log_mean_size());
    if (static_cast<size_t>(episode.log_mean_size()) != means.size()) return {};
    for (int i = 0; i < episode.log_mean_size(); ++i) means[i] += episode.log_mean(i) / count;
  }
  return means;
}

template <typename Episodes>
EvaluationMeans MeansOf(const Episodes& episodes) {
  EvaluationMeans means;
  for (const v1::EvaluationEpisode& episode : episodes) {
    means.abandoned += episode.abandoned();
    means.episodes += !episode.abandoned();
  }
  const double count = means.episodes;
  for (const EvaluationMean& each : kEvaluationMeans) {
    double& mean = means.*each.mean;
    if (means.episodes == 0) mean = std::nan("");
    for (const v1::EvaluationEpisode& episode : episodes) {
      if (!episode.abandoned()) mean += each.of(episode) / count;
    }
  }
  means.named = NamedMeansOf(episodes, count);
  means.logs = LogMeansOf(episodes, count);
  return means;
}

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_EVALUATION_MEANS_H_
// SPDX-License-Identifier: Apache-2.0
