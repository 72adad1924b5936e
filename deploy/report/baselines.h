// What curves are held against: evaluations of policies that nobody trained, as horizontal lines (what `datacom eval
// --policy ... --csv` writes). Pure but for reading files; thread-safe.
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
  std::map<std::string, double> means;  // over episodes, by the column of progress.csv that they stand beside
};

// One a file, labelled by the file's name without folder and ending. Episodes that were abandoned do not count.
// NOT_FOUND for a file that is missing or has no episode; INVALID_ARGUMENT naming file, line and column for what is no
// number, and for a file without any known column.
absl::StatusOr<std::vector<Baseline>> ReadBaselines(const std::vector<std::string>& files);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_BASELINES_H_
