// One table of damaged CSV files for the tests of everything that reads CSV. Pure function.
#ifndef DATACOM_TESTS_TESTING_DAMAGED_CSV_H_
#define DATACOM_TESTS_TESTING_DAMAGED_CSV_H_

#include <algorithm>
#include <string>
#include <vector>

namespace datacom::testing {

struct DamagedCsv {
  std::string text;
  std::string message;  // must follow the file's name in the error
};

// Files with this header, the good row FIRST,REST and a damaged copy of it, where FIRST is the cell of a column
// `column` that holds numbers. `header` and `rest` have at least two cells.
inline std::vector<DamagedCsv> DamagedCsvFiles(const std::string& column, const std::string& header,
                                               const std::string& first, const std::string& rest) {
  const std::string good = header + "\n" + first + "," + rest + "\n";
  const int width = 1 + static_cast<int>(std::count(header.begin(), header.end(), ','));
  const auto cells = [width](int count) {
    return " line 3: " + std::to_string(count) + " cells, the header has " + std::to_string(width);
  };
  std::vector<DamagedCsv> files = {
      {"", ": no header line"},
      {good + rest + "\n", cells(width - 1)},
      {good + first + ",0," + rest + "\n", cells(width + 1)},
      {good + "\"" + first + ",0\"," + rest + "\n", cells(width + 1)},
      {header + "," + column + "\n", " line 1, column " + column + ": the name stands twice in the header"},
  };
  using namespace std::string_literals;
  for (const std::string& bad : {"abc"s, "1.5.2"s, "0x10"s, "1e"s, "+1"s, "--1"s, "1e999"s, "-1e999"s, "1 2"s, "\"1\""s,
                                 "1\0"s, "\0"s, "\xff\xfe"s, "1;2"s, "nan?"s,
                                 "\xef\xbb\xbf"
                                 "1"s}) {
    files.push_back({good + bad + "," + rest + "\n", " line 3, column " + column + ": \"" + bad + "\" is not a "});
  }
  return files;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_DAMAGED_CSV_H_
// SPDX-License-Identifier: Apache-2.0
