#include "common/records/csv_table.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {

absl::StatusOr<Csv> Csv::Parse(const std::string& text, const std::string& where) {
  Csv csv;
  csv.where_ = where;
  // Text after the last line break is an unfinished row.
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.pop_back();
  if (lines.empty()) return absl::NotFoundError(absl::StrCat(where, ": no header line"));
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

absl::Status Csv::Wrong(size_t row, const std::string& column, const std::string& why) const {
  return absl::InvalidArgumentError(
      absl::StrCat(where_, " line ", row + 2, ", column ", column, ": \"", Text(row, column), "\" is not a ", why));
}

absl::Status Csv::CheckWhole(const std::string& column, uint64_t most) const {
  if (!has(column)) return absl::InvalidArgumentError(absl::StrCat(where_, ": there is no column ", column));
  for (size_t row = 0; row < rows(); ++row) {
    uint64_t value = 0;
    if (!absl::SimpleAtoi(Text(row, column), &value) || value > most) {
      return Wrong(row, column, absl::StrCat("whole number from 0 to ", most));
    }
  }
  return absl::OkStatus();
}

absl::Status Csv::CheckNumbers(const std::string& words) const {
  for (const auto& [column, index] : index_) {
    if (column == words) continue;
    for (size_t row = 0; row < rows(); ++row) {
      double value = 0;
      if (!rows_[row][index].empty() && !absl::SimpleAtod(rows_[row][index], &value)) {
        return Wrong(row, column, "number");
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Csv> ReadRecords(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(Csv csv, Csv::Parse(text, path));
  RETURN_IF_ERROR(csv.CheckWhole("member", std::numeric_limits<int>::max()));
  RETURN_IF_ERROR(csv.CheckWhole("env_steps", std::numeric_limits<int64_t>::max()));
  RETURN_IF_ERROR(csv.CheckNumbers("status"));
  return csv;
}

std::map<int, std::vector<size_t>> RowsByMember(const Csv& csv) {
  std::map<int, std::vector<size_t>> rows;
  for (size_t row = 0; row < csv.rows(); ++row) rows[static_cast<int>(csv.Number(row, "member"))].push_back(row);
  return rows;
}

}  // namespace datacom
