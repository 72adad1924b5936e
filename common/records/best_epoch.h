// The best epoch of a member, of those that were evaluated: what `--epoch best` means wherever it is taken.
//
// Functions; thread-safe; ReadBestEpochs blocks on the disk.
#ifndef DATACOM_COMMON_RECORDS_BEST_EPOCH_H_
#define DATACOM_COMMON_RECORDS_BEST_EPOCH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/records/csv_table.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom {

// For the help of every command that takes it.
inline constexpr char kBestEpochRule[] =
    "--epoch best, for each member: of the evaluated epochs whose mean cost sum is within hyper.cost_budget the one "
    "with\n"
    "the highest discounted return, of equal ones that with the smaller maximum violation. Where no epoch is within "
    "the\n"
    "budget, the one with the smallest cost sum, of equal ones again that with the smaller maximum violation. Methods\n"
    "without a cost budget (sac, atacom_fi, atacom_nfi, cbf_sac, safe_layer_td3) are judged with a budget of 0. The\n"
    "budget of iqn_datacom is a discounted sum, so the rule is stricter there.";

// hyper.cost_budget of the member, which the evaluations' undiscounted cost sums are compared with; 0 for an algorithm
// without a budget.
double CostBudget(const v1::Experiment& resolved, int member);

// Of the rows of one member in progress.csv the one that the rule names, of several that are equal in everything the
// earliest. Rows without a finite evaluation do not count, nor rows followed by another of the same epoch. NOT_FOUND
// where none is left.
absl::StatusOr<size_t> BestRow(const Csv& progress, const std::vector<size_t>& rows, double cost_budget);

// The best epoch of every member with rows in RUN_DIR/progress.csv. NOT_FOUND naming the file or the member that has no
// evaluation yet.
absl::StatusOr<std::map<uint32_t, uint32_t>> ReadBestEpochs(const std::string& run_dir, const v1::Experiment& resolved);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_BEST_EPOCH_H_
