// The columns of records for the costs of a task with several, cost by cost. `values` has for each cost its largest
// violation and its sum; where it is shorter, cells are empty. Pure functions.
#ifndef DATACOM_COMMON_RECORDS_NAMED_COSTS_H_
#define DATACOM_COMMON_RECORDS_NAMED_COSTS_H_

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/records/csv.h"

namespace datacom {

using NamedCostValues = std::vector<std::pair<double, double>>;  // largest violation, sum

// "max_violation.NAME", "sum_cost.NAME", each with the prefix.
inline std::vector<std::string> NamedCostColumns(const std::vector<std::string>& names,
                                                 const std::string& prefix = "") {
  std::vector<std::string> columns;
  for (const std::string& name : names) {
    columns.push_back(absl::StrCat(prefix, "max_violation.", name));
    columns.push_back(absl::StrCat(prefix, "sum_cost.", name));
  }
  return columns;
}

inline void AppendNamedCosts(const NamedCostValues& values, size_t names, std::vector<std::string>* cells) {
  for (size_t i = 0; i < names; ++i) {
    const auto [largest, sum] = i < values.size() ? values[i] : std::pair(std::nan(""), std::nan(""));
    cells->push_back(Cell(largest));
    cells->push_back(Cell(sum));
  }
}

// The named costs of an Episode or EvaluationEpisode; empty if its two lists have different lengths.
template <typename Episode>
NamedCostValues NamedCostsOf(const Episode& episode) {
  NamedCostValues values;
  if (episode.named_max_violation_size() != episode.named_sum_cost_size()) return values;
  for (int i = 0; i < episode.named_sum_cost_size(); ++i) {
    values.emplace_back(episode.named_max_violation(i), episode.named_sum_cost(i));
  }
  return values;
}

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_NAMED_COSTS_H_
// SPDX-License-Identifier: Apache-2.0
