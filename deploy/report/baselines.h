// Baselines of the curves: evaluations of untrained policies (the output of `datacom eval --policy ... --csv`), drawn
// as horizontal lines. The functions read files and are otherwise pure; thread-safe.
#ifndef DATACOM_DEPLOY_REPORT_BASELINES_H_
#define DATACOM_DEPLOY_REPORT_BASELINES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace datacom::report {

struct Baseline {
  std::string label;
  size_t episodes = 0;
  std::map<std::string, double> means;  // over episodes, by the column of progress.csv that they are compared with
};

// One baseline per file, labelled with the file's name without folder and extension. Abandoned episodes do not count.
// NOT_FOUND for a file that is missing or has no episode; INVALID_ARGUMENT naming file, line and column for a cell that
// is not a number, and for a file without any known column.
absl::StatusOr<std::vector<Baseline>> ReadBaselines(const std::vector<std::string>& files);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_BASELINES_H_
// SPDX-License-Identifier: Apache-2.0
