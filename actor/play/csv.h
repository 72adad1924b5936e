// Comma-separated values as this project writes them: a header line, no quoting. Pure functions; errors name the file.
#ifndef DATACOM_ACTOR_PLAY_CSV_H_
#define DATACOM_ACTOR_PLAY_CSV_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace datacom {

struct CsvTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // as wide as the header
  int Column(const std::string& name) const;   // -1 when absent
};

// INVALID_ARGUMENT, naming file and line, when a row and the header differ in length; NOT_FOUND for a missing file.
absl::StatusOr<CsvTable> ReadCsv(const std::string& path);

// 17 significant digits, which read back as the same double.
std::string Exact(double value);

}  // namespace datacom

#endif  // DATACOM_ACTOR_PLAY_CSV_H_
