// Golden data: finds the files of a prefix at run time in tests/golden, so that a new file adds a case. A test that
// loops over them prints their number. A missing prefix, an unreadable file or a table without rows fails the test.
// Files over 40 KB are compressed (.gz); the functions read both.
#ifndef DATACOM_TESTS_TESTING_GOLDEN_H_
#define DATACOM_TESTS_TESTING_GOLDEN_H_

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "google/protobuf/io/gzip_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
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

inline std::string ReadGolden(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  if (!path.ends_with(".gz")) return {std::istreambuf_iterator<char>(file), {}};
  google::protobuf::io::IstreamInputStream compressed(&file);
  google::protobuf::io::GzipInputStream content(&compressed);
  std::string text;
  const void* block = nullptr;
  for (int size = 0; content.Next(&block, &size);) text.append(static_cast<const char*>(block), size);
  if (text.empty()) throw std::runtime_error(path + " is not compressed content");
  return text;
}

inline nlohmann::json ReadGoldenJson(const std::string& path) { return nlohmann::json::parse(ReadGolden(path)); }

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
  std::istringstream file(ReadGolden(path));
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
