#include "actor/play/csv.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {

int CsvTable::Column(const std::string& name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  return found == header.end() ? -1 : static_cast<int>(found - header.begin());
}

absl::StatusOr<CsvTable> ReadCsv(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  CsvTable table;
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    std::vector<std::string> cells;
    for (const absl::string_view cell : absl::StrSplit(line, ',')) cells.emplace_back(absl::StripAsciiWhitespace(cell));
    if (table.header.empty()) {
      table.header = std::move(cells);
    } else if (cells.size() != table.header.size()) {
      return absl::InvalidArgumentError(absl::StrCat(path, " line ", line_number, ": ", cells.size(),
                                                     " cells, the header has ", table.header.size()));
    } else {
      table.rows.push_back(std::move(cells));
    }
  }
  if (table.header.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": no header line"));
  return table;
}

std::string Exact(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace datacom
