#include "deploy/report/baselines.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/records/csv.h"

namespace datacom::report {
namespace {

// Columns of the episodes, and the columns of progress.csv that their means are compared with.
constexpr std::pair<const char*, const char*> kColumns[] = {
    {"discounted_return", "eval_discounted_return"},
    {"return", "eval_return"},
    {"max_violation", "eval_max_violation"},
    {"sum_cost", "eval_sum_cost"},
    {"violating_steps", "eval_violating_steps"},
    {"mean_cost", "eval_mean_cost"},
    {"success", "eval_success_rate"},
};

absl::StatusOr<Baseline> ReadBaseline(const std::string& file) {
  ASSIGN_OR_RETURN(const Csv csv, Csv::Read(file));
  RETURN_IF_ERROR(csv.CheckNumbers({}));
  Baseline baseline;
  baseline.label = std::filesystem::path(file).stem().string();
  std::vector<size_t> whole;
  for (size_t row = 0; row < csv.rows(); ++row) {
    if (csv.Text(row, "abandoned") != "1") whole.push_back(row);
  }
  if (whole.empty()) return absl::NotFoundError(absl::StrCat(file, ": contains no complete episode"));
  baseline.episodes = whole.size();
  for (const auto& [column, record] : kColumns) {
    if (!csv.has(column)) continue;
    double sum = 0;
    for (const size_t row : whole) sum += csv.Number(row, column);
    baseline.means[record] = sum / static_cast<double>(whole.size());
  }
  if (baseline.means.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": there is no column discounted_return; `datacom eval --csv` writes such files"));
  }
  return baseline;
}

}  // namespace

absl::StatusOr<std::vector<Baseline>> ReadBaselines(const std::vector<std::string>& files) {
  std::vector<Baseline> baselines;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(Baseline baseline, ReadBaseline(file));
    baselines.push_back(std::move(baseline));
  }
  return baselines;
}

}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
