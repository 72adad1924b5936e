// The columns of records that a task names: for each of several costs its largest violation, its sum and its violating
// steps (docs/tasks.md 3.4), and the mean of each quantity that the task logs. Where there are fewer values
// than names, cells are empty. Pure functions.
#ifndef DATACOM_COMMON_RECORDS_NAMED_COSTS_H_
#define DATACOM_COMMON_RECORDS_NAMED_COSTS_H_

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/records/csv.h"

namespace datacom {

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

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_NAMED_COSTS_H_
// SPDX-License-Identifier: Apache-2.0
