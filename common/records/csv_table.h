// A CSV file with a header line, read whole: plain numbers and words without quotes, as the learner writes them.
//
// A line without all its columns at the end of the file (a writer that was killed) is dropped; anywhere else it is an
// error. Immutable; thread-safe.
//
// ReadRecords alone promises that cells are what they should be: in "member" and "env_steps", which must be there,
// whole numbers; in any other column but "status" a number or nothing.
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
  // INVALID_ARGUMENT naming `where` and the line; NOT_FOUND where not even the header was written.
  static absl::StatusOr<Csv> Parse(const std::string& text, const std::string& where);

  size_t rows() const { return rows_.size(); }
  bool has(const std::string& column) const { return index_.count(column) > 0; }
  // Empty for a column that is not there.
  std::string Text(size_t row, const std::string& column) const;
  // NaN for an empty cell, one that is no number, or a column that is not there.
  double Number(size_t row, const std::string& column) const;

  // INVALID_ARGUMENT naming `where` and the column that is not there, or its line, column and value: a cell that is no
  // whole number from 0 to `most`; a cell of any column but `words` that is neither empty nor a number.
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
