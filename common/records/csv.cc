#include "common/records/csv.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/gzip.h"
#include "common/config/textproto.h"

namespace datacom {
namespace {

template <typename Float>
std::string Shortest(Float value) {
  if (std::isnan(value)) return "";
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

// True if all of `cell` is a number of this type.
template <typename NumberType>
bool ParseNumber(const std::string& cell, NumberType* value) {
  const char* const end = cell.data() + cell.size();
  const std::from_chars_result result = std::from_chars(cell.data(), end, *value);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CsvWriter>> CsvWriter::Open(const std::string& path,
                                                           const std::vector<std::string>& header, const FileEnd& end) {
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, AppendFile::Open(path, end));
  std::unique_ptr<CsvWriter> writer(new CsvWriter(std::move(file), header.size()));
  if (end.bytes == 0) {
    RETURN_IF_ERROR(writer->Append(header));
    RETURN_IF_ERROR(writer->Flush(/*sync=*/false));
    return writer;
  }
  std::string found;
  std::getline(std::ifstream(path), found);
  const std::string expected = absl::StrJoin(header, ",");
  if (found == expected) return writer;
  return absl::FailedPreconditionError(
      absl::StrCat(path, " has the header \"", found, "\", this build writes \"", expected, "\""));
}

absl::Status CsvWriter::Append(const std::vector<std::string>& cells) {
  if (cells.size() != width_) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_->path(), ": a row of ", cells.size(), " cells, the header has ", width_));
  }
  return file_->Append(absl::StrCat(absl::StrJoin(cells, ","), "\n"));
}

std::string Cell(double value) { return Shortest(value); }
std::string Cell(float value) { return Shortest(value); }

absl::StatusOr<Csv> Csv::Parse(const std::string& text, const std::string& where, Author author) {
  Csv csv;
  csv.where_ = where;
  // What follows a program's last line break is an unfinished row.
  const size_t end = author == Author::kProgram ? text.rfind('\n') : text.size();
  size_t width = 0, number = 0;
  if (end != std::string::npos) {
    for (const absl::string_view line : absl::StrSplit(absl::string_view(text).substr(0, end), '\n'))
      RETURN_IF_ERROR(csv.AddLine(line, ++number, author, &width));
  }
  if (width == 0) return absl::NotFoundError(absl::StrCat(where, ": no header line"));
  return csv;
}

absl::StatusOr<Csv> Csv::Read(const std::string& path, Author author) {
  ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  if (author == Author::kPerson) text = std::string(WithoutByteOrderMark(text));
  return Parse(text, path, author);
}

// The first line that is not blank is the header; `width` is 0 before it.
absl::Status Csv::AddLine(absl::string_view line, size_t number, Author author, size_t* width) {
  std::vector<std::string> cells = absl::StrSplit(line, ',');
  if (author == Author::kPerson) {
    if (absl::StripAsciiWhitespace(line).empty()) return absl::OkStatus();
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
  }
  if (*width == 0) {
    *width = cells.size();
    for (size_t i = 0; i < cells.size(); ++i) {
      if (index_.emplace(cells[i], i).second) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(where_, " line ", number, ", column ", cells[i], ": the name stands twice in the header"));
    }
    return absl::OkStatus();
  }
  if (cells.size() != *width) {
    return absl::InvalidArgumentError(
        absl::StrCat(where_, " line ", number, ": ", cells.size(), " cells, the header has ", *width));
  }
  rows_.push_back({number, std::move(cells)});
  return absl::OkStatus();
}

std::vector<std::string> Csv::names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : index_) names.push_back(name);
  return names;
}

std::string Csv::Text(size_t row, const std::string& column) const {
  const auto at = index_.find(column);
  return at == index_.end() ? "" : rows_[row].cells[at->second];
}

double Csv::Number(size_t row, const std::string& column) const {
  double value = 0;
  return ParseNumber(Text(row, column), &value) ? value : std::numeric_limits<double>::quiet_NaN();
}

absl::Status Csv::Wrong(size_t row, const std::string& column, const std::string& expected) const {
  return absl::InvalidArgumentError(absl::StrCat(where_, " line ", rows_[row].line, ", column ", column, ": \"",
                                                 Text(row, column), "\" is not a ", expected));
}

absl::Status Csv::CheckWhole(const std::string& column, uint64_t most) const {
  if (!has(column)) return absl::InvalidArgumentError(absl::StrCat(where_, ": there is no column ", column));
  for (size_t row = 0; row < rows(); ++row) {
    uint64_t value = 0;
    if (!ParseNumber(Text(row, column), &value) || value > most) {
      return Wrong(row, column, absl::StrCat("whole number from 0 to ", most));
    }
  }
  return absl::OkStatus();
}

absl::Status Csv::CheckNumbers(const std::set<std::string>& words) const {
  for (const auto& [column, index] : index_) {
    if (words.contains(column)) continue;
    for (size_t row = 0; row < rows(); ++row) {
      double value = 0;
      const std::string& cell = rows_[row].cells[index];
      if (!cell.empty() && !ParseNumber(cell, &value)) return Wrong(row, column, "number");
    }
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<Csv> ReadCompressed(const std::string& path) {
  constexpr size_t kMostBytes = size_t{64} << 20;  // its rows take up to forty times as much memory
  ASSIGN_OR_RETURN(const std::string compressed, ReadFile(path + ".gz", kMostBytes));
  const absl::StatusOr<std::string> text = Gunzip(compressed, kMostBytes);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ".gz: ", text.status().message()));
  return Csv::Parse(*text, path + ".gz");
}

}  // namespace

absl::Status CheckRecords(const Csv& csv, std::map<std::string, uint64_t> whole) {
  whole.emplace("member", std::numeric_limits<int>::max());
  whole.emplace("env_steps", std::numeric_limits<int64_t>::max());
  if (csv.has("epoch")) whole.emplace("epoch", std::numeric_limits<uint32_t>::max());
  for (const auto& [column, most] : whole) RETURN_IF_ERROR(csv.CheckWhole(column, most));
  return csv.CheckNumbers({"status", "abandoned_reason"});
}

absl::StatusOr<Csv> ReadRecords(const std::string& path) {
  absl::StatusOr<Csv> read = Csv::Read(path);
  if (absl::IsNotFound(read.status()) && !FileExists(path) && FileExists(path + ".gz")) read = ReadCompressed(path);
  if (read.ok()) RETURN_IF_ERROR(CheckRecords(*read));
  return read;
}

std::map<int, std::vector<size_t>> RowsByMember(const Csv& csv) {
  std::map<int, std::vector<size_t>> rows;
  for (size_t row = 0; row < csv.rows(); ++row) rows[static_cast<int>(csv.Number(row, "member"))].push_back(row);
  return rows;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
