// A CSV file with a header line, in memory: numbers and words without quotes, as the learner writes them.
//
// An unfinished last line (the writer was killed) is dropped; any other line without all its columns is an error.
// Immutable; thread-safe.
//
// Only ReadRecords checks cells: the columns "member" and "env_steps" must exist and hold whole numbers; cells of any
// other column except "status" must be empty or numbers.
#ifndef DATACOM_COMMON_RECORDS_CSV_TABLE_H_
#define DATACOM_COMMON_RECORDS_CSV_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace datacom {

class Csv {
 public:
  // INVALID_ARGUMENT, naming `where` and the line; NOT_FOUND when the header is missing.
  static absl::StatusOr<Csv> Parse(const std::string& text, const std::string& where);

  size_t rows() const { return rows_.size(); }
  bool has(const std::string& column) const { return index_.count(column) > 0; }
  // Empty for a missing column.
  std::string Text(size_t row, const std::string& column) const;
  // NaN for an empty cell, a cell that is not a number, or a missing column.
  double Number(size_t row, const std::string& column) const;

  // INVALID_ARGUMENT, naming `where` and the missing column, or line, column and value. CheckWhole: every cell of
  // `column` is a whole number from 0 to `most`. CheckNumbers: every cell outside column `words` is empty or a number.
  absl::Status CheckWhole(const std::string& column, uint64_t most) const;
  absl::Status CheckNumbers(const std::string& words) const;

 private:
  absl::Status Wrong(size_t row, const std::string& column, const std::string& why) const;

  std::string where_;
  std::map<std::string, size_t> index_;
  std::vector<std::vector<std::string>> rows_;
};

// progress.csv or episodes.csv of a run. NOT_FOUND when it is missing or empty, INVALID_ARGUMENT when it is damaged.
absl::StatusOr<Csv> ReadRecords(const std::string& path);

// Row indices of records by the column "member", in file order.
std::map<int, std::vector<size_t>> RowsByMember(const Csv& csv);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_CSV_TABLE_H_
