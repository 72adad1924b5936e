#include "deploy/report/csv.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom::report {

absl::StatusOr<Csv> Csv::Parse(const std::string& text, const std::string& where) {
  Csv csv;
  // What stands after the last line break is a row that was not finished.
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.pop_back();
  if (lines.empty()) return absl::InvalidArgumentError(absl::StrCat(where, ": no header line"));
  const std::vector<std::string> header = absl::StrSplit(lines[0], ',');
  for (size_t i = 0; i < header.size(); ++i) csv.index_[header[i]] = i;
  for (size_t line = 1; line < lines.size(); ++line) {
    std::vector<std::string> cells = absl::StrSplit(lines[line], ',');
    if (cells.size() != header.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " line ", line + 1, ": ", cells.size(), " columns instead of ", header.size()));
    }
    csv.rows_.push_back(std::move(cells));
  }
  return csv;
}

std::string Csv::Text(size_t row, const std::string& column) const {
  const auto at = index_.find(column);
  return at == index_.end() ? "" : rows_[row][at->second];
}

double Csv::Number(size_t row, const std::string& column) const {
  double value = 0;
  return absl::SimpleAtod(Text(row, column), &value) ? value : std::numeric_limits<double>::quiet_NaN();
}

absl::StatusOr<Csv> ReadCsv(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return Csv::Parse(text, path);
}

std::map<int, std::vector<size_t>> RowsByMember(const Csv& csv) {
  std::map<int, std::vector<size_t>> rows;
  for (size_t row = 0; row < csv.rows(); ++row) rows[static_cast<int>(csv.Number(row, "member"))].push_back(row);
  return rows;
}

}  // namespace datacom::report
