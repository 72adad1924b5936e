#include "common/records/best_epoch.h"

#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"

namespace datacom {

std::string BestEpochRule() {
  std::vector<std::string> without, discounted;
  for (const AlgorithmInfo& algorithm : Algorithms()) {
    if (!algorithm.has_budget) without.push_back(algorithm.name);
    if (algorithm.discounted_budget) discounted.push_back(algorithm.name);
  }
  return absl::StrCat(
      "--epoch best, for each member: of the evaluated epochs whose mean cost sum is within hyper.cost_budget, the one "
      "with\n"
      "the highest discounted return; of equal ones, the one with the smaller maximum violation. If no epoch is within "
      "the\n"
      "budget, the one with the smallest cost sum; of equal ones, again the one with the smaller maximum violation.\n"
      "Methods without a cost budget (",
      absl::StrJoin(without, ", "),
      ") are judged with a budget of\n"
      "0. A budget that is a discounted sum (",
      absl::StrJoin(discounted, ", "), ") makes the rule stricter.");
}

double CostBudget(const v1::Experiment& resolved, int member) {
  const AlgorithmInfo* const algorithm = FindAlgorithm(resolved.algorithm());
  return algorithm != nullptr && algorithm->has_budget ? MemberHyper(resolved, member).cost_budget() : 0;
}

absl::StatusOr<size_t> BestRow(const Csv& progress, const std::vector<size_t>& rows, double cost_budget) {
  // (over budget; -J, or the cost if over budget; violation): the smallest is best
  using Rank = std::tuple<bool, double, double>;
  std::optional<std::pair<Rank, size_t>> best;
  std::set<double> seen;  // epochs
  for (auto at = rows.rbegin(); at != rows.rend(); ++at) {
    const size_t row = *at;
    // A run resumed with more steps writes its unfinished epoch again, row and snapshot: the older row's policy is
    // gone.
    if (!seen.insert(progress.Number(row, "epoch")).second) continue;
    const double cost = progress.Number(row, "eval_sum_cost"), gain = progress.Number(row, "eval_discounted_return"),
                 violation = progress.Number(row, "eval_max_violation");
    const bool evaluated = progress.Number(row, "eval_episodes") > 0;
    if (!evaluated || !std::isfinite(cost) || !std::isfinite(gain) || !std::isfinite(violation)) continue;
    const bool over = cost > cost_budget;
    const Rank rank = {over, over ? cost : -gain, violation};
    if (!best || rank <= best->first) best = {rank, row};
  }
  if (!best) return absl::NotFoundError("no epoch was evaluated yet");
  return best->second;
}

absl::StatusOr<std::map<uint32_t, uint32_t>> ReadBestEpochs(const std::string& run_dir,
                                                            const v1::Experiment& resolved) {
  const std::string file = run_dir + "/progress.csv";
  ASSIGN_OR_RETURN(const Csv progress, ReadRecords(file));
  if (!progress.has("epoch")) return absl::InvalidArgumentError(absl::StrCat(file, ": there is no column epoch"));
  std::map<uint32_t, uint32_t> epochs;
  for (const auto& [member, rows] : RowsByMember(progress)) {
    ASSIGN_OR_RETURN(const size_t row, Annotate(BestRow(progress, rows, CostBudget(resolved, member)),
                                                absl::StrCat(file, ": member ", member)));
    epochs[static_cast<uint32_t>(member)] = static_cast<uint32_t>(progress.Number(row, "epoch"));
  }
  if (epochs.empty()) return absl::NotFoundError(absl::StrCat(file, ": no epoch was evaluated yet"));
  return epochs;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
