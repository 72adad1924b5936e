// The best evaluated epoch of a member: the meaning of `--epoch best` in every command.
//
// Functions; thread-safe; ReadBestEpochs blocks on the disk.
#ifndef DATACOM_COMMON_RECORDS_BEST_EPOCH_H_
#define DATACOM_COMMON_RECORDS_BEST_EPOCH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/records/csv.h"

namespace datacom {
namespace v1 {
class Experiment;
}

// For the help of every command with --epoch.
std::string BestEpochRule();

// hyper.cost_budget of the member, which the evaluations' undiscounted cost sums are compared with; 0 for an algorithm
// without a budget.
double CostBudget(const v1::Experiment& resolved, int member);

// The row among `rows`, one member's rows of progress.csv, that the rule selects; of equal rows the earliest. Ignores
// rows without a finite evaluation and rows that a later row of the same epoch replaces. NOT_FOUND when none is left.
absl::StatusOr<size_t> BestRow(const Csv& progress, const std::vector<size_t>& rows, double cost_budget);

// The best epoch of every member with rows in RUN_DIR/progress.csv. NOT_FOUND, naming the file that is missing or has
// no rows, or the member without an evaluation.
absl::StatusOr<std::map<uint32_t, uint32_t>> ReadBestEpochs(const std::string& run_dir, const v1::Experiment& resolved);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_BEST_EPOCH_H_
// SPDX-License-Identifier: Apache-2.0
