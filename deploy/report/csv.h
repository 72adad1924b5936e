// A CSV file with a header line, read whole: plain numbers and words without quotes, as the learner writes them.
//
// A line without all its columns at the end of the file (a writer that was killed) is dropped; anywhere else it is an
// error. Immutable; thread-safe.
#ifndef DATACOM_DEPLOY_REPORT_CSV_H_
#define DATACOM_DEPLOY_REPORT_CSV_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace datacom::report {

class Csv {
 public:
  // INVALID_ARGUMENT naming `where` and the line.
  static absl::StatusOr<Csv> Parse(const std::string& text, const std::string& where);

  size_t rows() const { return rows_.size(); }
  bool has(const std::string& column) const { return index_.count(column) > 0; }
  // Empty for a column that is not there.
  std::string Text(size_t row, const std::string& column) const;
  // NaN for an empty cell, one that is no number, or a column that is not there.
  double Number(size_t row, const std::string& column) const;

 private:
  std::map<std::string, size_t> index_;
  std::vector<std::vector<std::string>> rows_;
};

absl::StatusOr<Csv> ReadCsv(const std::string& path);

// Row indices by the column "member", in file order.
std::map<int, std::vector<size_t>> RowsByMember(const Csv& csv);

}  // namespace datacom::report

#endif  // DATACOM_DEPLOY_REPORT_CSV_H_
