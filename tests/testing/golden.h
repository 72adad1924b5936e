// Golden data: finds the files of a prefix at run time in tests/golden, so that a new file adds a case. A test that
// loops over them prints their number. A missing prefix, an unreadable file or a table without rows fails the test.
#ifndef DATACOM_TESTS_TESTING_GOLDEN_H_
#define DATACOM_TESTS_TESTING_GOLDEN_H_

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace datacom::testing {

inline constexpr char kGoldenFolder[] = "tests/golden";  // tests run in the source tree

// Files under algorithms/ and tasks/ (or directly in the folder) whose name starts with `prefix`, sorted.
inline std::vector<std::string> GoldenFiles(const std::string& prefix) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kGoldenFolder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name.rfind(prefix, 0) == 0) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::printf("golden %s: %zu files in %s\n", prefix.c_str(), files.size(), kGoldenFolder);
  return files;
}

#define DATACOM_GOLDEN_FILES(variable, prefix)                                       \
  const std::vector<std::string> variable = ::datacom::testing::GoldenFiles(prefix); \
  ASSERT_FALSE(variable.empty()) << "no golden file starts with " << prefix

inline nlohmann::json ReadGoldenJson(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(file);
}

// A CSV as columns of text; an empty cell is an empty string.
struct GoldenTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  int column(const std::string& name) const {
    const auto it = std::find(header.begin(), header.end(), name);
    if (it == header.end()) throw std::runtime_error("no column " + name);
    return static_cast<int>(it - header.begin());
  }
  bool has(const std::string& name) const { return std::find(header.begin(), header.end(), name) != header.end(); }
  double value(size_t row, const std::string& name) const { return std::stod(rows.at(row).at(column(name))); }
  const std::string& text(size_t row, const std::string& name) const { return rows.at(row).at(column(name)); }
};

inline GoldenTable ReadGoldenCsv(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  GoldenTable table;
  std::string line;
  while (std::getline(file, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    if (!line.empty() && line.back() == ',') cells.emplace_back();
    if (table.header.empty()) {
      table.header = cells;
    } else {
      if (cells.size() != table.header.size())
        throw std::runtime_error(path + ": a row of another width than the header");
      table.rows.push_back(cells);
    }
  }
  if (table.rows.empty()) throw std::runtime_error(path + " has no rows");
  return table;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_GOLDEN_H_
// SPDX-License-Identifier: Apache-2.0
