// CSV files of this project: a header line, then rows of numbers and words, without quotes.
//
// CsvWriter appends to the records of a run. It is not thread-safe. Append blocks only when a buffer is full; Flush
// blocks on the disk.
//
// Csv is a file in memory. It is immutable and thread-safe. A damaged file is INVALID_ARGUMENT, with one format for all
// messages: FILE line LINE, column COLUMN: "VALUE" is not a number. A number is the whole cell: no spaces, no "+", and
// neither too large nor too small for a double.
#ifndef DATACOM_COMMON_RECORDS_CSV_H_
#define DATACOM_COMMON_RECORDS_CSV_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/records/append_file.h"

namespace datacom {

class CsvWriter {
 public:
  // Continues after `end` (an earlier end()); without one it empties or creates the file and writes the header.
  // FAILED_PRECONDITION when the file's header differs, and the errors of AppendFile::Open. A file that is continued
  // changes with the first Flush.
  static absl::StatusOr<std::unique_ptr<CsvWriter>> Open(const std::string& path,
                                                         const std::vector<std::string>& header,
                                                         const FileEnd& end = {});

  // INVALID_ARGUMENT, naming both counts, when the row is not as wide as the header.
  absl::Status Append(const std::vector<std::string>& cells);
  absl::Status Flush(bool sync) { return file_->Flush(sync); }
  FileEnd end() const { return file_->end(); }

 private:
  CsvWriter(std::unique_ptr<AppendFile> file, size_t width) : file_(std::move(file)), width_(width) {}

  std::unique_ptr<AppendFile> file_;
  size_t width_;
};

// Shortest text that reads back to the same number of its type; empty for NaN.
std::string Cell(double value);
std::string Cell(float value);
template <typename Integer, typename = std::enable_if_t<std::is_integral_v<Integer>>>
std::string Cell(Integer value) {
  return std::to_string(value);
}

class Csv {
 public:
  // The last line of a program's file may be unfinished, because the program was killed; it is dropped. The last line
  // of a person's file needs no line break; blank lines, carriage returns and spaces around cells do not count there.
  enum class Author { kProgram, kPerson };
  // `where` names the text in messages. NOT_FOUND when the header is missing, or the file.
  static absl::StatusOr<Csv> Parse(const std::string& text, const std::string& where, Author author = Author::kProgram);
  // A person's file may begin with the byte order mark that spreadsheets write.
  static absl::StatusOr<Csv> Read(const std::string& path, Author author = Author::kProgram);

  size_t rows() const { return rows_.size(); }
  size_t columns() const { return index_.size(); }
  std::vector<std::string> names() const;  // of the columns, sorted
  bool has(const std::string& column) const { return index_.count(column) > 0; }
  // Empty for a missing column.
  std::string Text(size_t row, const std::string& column) const;
  // NaN for an empty cell, a cell that is not a number, or a missing column.
  double Number(size_t row, const std::string& column) const;

  // CheckWhole: every cell of `column`, which must exist, is a whole number from 0 to `most`. CheckNumbers: every cell
  // outside the columns `words` is empty or a number.
  absl::Status CheckWhole(const std::string& column, uint64_t most) const;
  absl::Status CheckNumbers(const std::set<std::string>& words) const;
  // The error of a cell that is not an `expected`.
  absl::Status Wrong(size_t row, const std::string& column, const std::string& expected) const;

 private:
  struct Row {
    size_t line;
    std::vector<std::string> cells;  // as many as the header has
  };
  absl::Status AddLine(absl::string_view line, size_t number, Author author, size_t* width);

  std::string where_;
  std::map<std::string, size_t> index_;
  std::vector<Row> rows_;
};

// progress.csv or episodes.csv of a run, or PATH.gz as a result keeps it. "member" and "env_steps" must exist and hold
// whole numbers, and so must "epoch" if it exists; cells of any other column except "status" and "abandoned_reason"
// must be empty or numbers.
absl::StatusOr<Csv> ReadRecords(const std::string& path);
// The same for a file that is read already. `whole`: the largest numbers of other columns that must hold whole numbers,
// or smaller ones of these.
absl::Status CheckRecords(const Csv& csv, std::map<std::string, uint64_t> whole = {});

// Row indices of what ReadRecords returned, by the column "member", in file order.
std::map<int, std::vector<size_t>> RowsByMember(const Csv& csv);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_CSV_H_
// SPDX-License-Identifier: Apache-2.0
