// Any text as a CSV file (common/records/csv.h) of a program, of a person, and as the records of a run: refused, or its
// cells come from the text.
//
// Input: the text.
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/records/csv.h"
#include "tests/fuzz/fuzz_target.h"

namespace datacom::fuzz {
namespace {

// The rows of a text whose cells are split here once more, for comparison.
std::vector<std::vector<std::string>> Cells(const std::string& text, Csv::Author author) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (author == Csv::Author::kProgram) lines.pop_back();
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : lines) {
    std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (author == Csv::Author::kPerson) {
      for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
      if (cells.size() == 1 && cells[0].empty()) continue;
    }
    rows.push_back(cells);
  }
  return rows;
}

void CheckNumber(const Csv& csv, size_t row, const std::string& column) {
  const double value = csv.Number(row, column);
  if (!std::isfinite(value)) return;
  const auto again = Csv::Parse("x\n" + Cell(value) + "\n", "again");
  MustAccept(again.status());
  MUST(again->Number(0, "x") == value);
}

void CheckAuthor(const std::string& text, Csv::Author author) {
  const auto csv = Csv::Parse(text, "text", author);
  if (!csv.ok()) return MustRefuse(csv.status());
  const std::vector<std::vector<std::string>> rows = Cells(text, author);
  MUST(rows.size() == csv->rows() + 1);
  std::string written;
  for (const std::vector<std::string>& cells : rows) written += absl::StrJoin(cells, ",") + "\n";
  const auto again = Csv::Parse(written, "again");
  MustAccept(again.status());
  MUST(again->rows() == csv->rows());
  for (size_t row = 0; row < csv->rows(); ++row) {
    for (size_t i = 0; i < rows[0].size(); ++i) {
      MUST(csv->has(rows[0][i]) && csv->Text(row, rows[0][i]) == rows[row + 1][i]);
      MUST(again->Text(row, rows[0][i]) == rows[row + 1][i]);
      CheckNumber(*csv, row, rows[0][i]);
    }
  }
  for (const absl::Status& status : {csv->CheckWhole("member", 100), csv->CheckNumbers({"status"})})
    if (!status.ok()) MustRefuse(status);
}

void CheckRecords(const std::string& text) {
  const std::string path = Folder() + "/progress.csv";
  WriteBytes(path, text);
  const auto csv = ReadRecords(path);
  if (!csv.ok()) return MustRefuse(csv.status());
  size_t rows = 0;
  for (const auto& [member, own] : RowsByMember(*csv)) {
    MUST(member >= 0);
    for (const size_t row : own) MUST(csv->Text(row, "member").find_first_not_of("0123456789") == std::string::npos);
    rows += own.size();
  }
  MUST(rows == csv->rows());
}

}  // namespace

static void Run(absl::string_view bytes) {
  const std::string text(bytes);
  CheckAuthor(text, Csv::Author::kProgram);
  CheckAuthor(text, Csv::Author::kPerson);
  CheckRecords(text);
}

static std::vector<Seed> Seeds() {
  return {
      {"progress", "epoch,member,env_steps,return,status\n0,0,100,-1.5,ok\n0,1,100,1e-3,diverged\n1,0,200,,ok\n1,1,2"},
      {"person", "\r\n task , steps\r\ncartpole, 5 \n\n air_hockey ,7"},
      {"numbers", "member,env_steps,x\n0,1,nan\n1,2,-inf\n2,3,1e308\n3,4,2.2250738585072014e-308\n"},
      {"one_column", "member\n\n1\n"},
      {"twice", "a,a\n1,2\n"}};
}

static const Target kTarget("csv", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0
