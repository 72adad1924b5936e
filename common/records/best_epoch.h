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
#include "datacom/v1/experiment.pb.h"

namespace datacom {

// The help text of every command with --epoch.
inline constexpr char kBestEpochRule[] =
    "--epoch best, for each member: of the evaluated epochs whose mean cost sum is within hyper.cost_budget, the one "
    "with\n"
    "the highest discounted return; of equal ones, the one with the smaller maximum violation. If no epoch is within "
    "the\n"
    "budget, the one with the smallest cost sum; of equal ones, again the one with the smaller maximum violation.\n"
    "Methods without a cost budget (sac, atacom_fi, atacom_nfi, cbf_sac, safe_layer_td3) are judged with a budget of\n"
    "0. The budget of iqn_datacom is a discounted sum, so the rule is stricter there.";

// hyper.cost_budget of the member, which the evaluations' undiscounted cost sums are compared with; 0 for an algorithm
// without a budget.
double CostBudget(const v1::Experiment& resolved, int member);

// The row among `rows`, one member's rows of progress.csv, that the rule selects; of equal rows the earliest. Ignores
// rows without a finite evaluation and rows that a later row of the same epoch replaces. NOT_FOUND when none is left.
absl::StatusOr<size_t> BestRow(const Csv& progress, const std::vector<size_t>& rows, double cost_budget);

// The best epoch of every member with rows in RUN_DIR/progress.csv. NOT_FOUND, naming the missing file or the member
// without an evaluation.
absl::StatusOr<std::map<uint32_t, uint32_t>> ReadBestEpochs(const std::string& run_dir, const v1::Experiment& resolved);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_BEST_EPOCH_H_
