// CSV records with a fixed header: progress.csv and episodes.csv of a run.
//
// Not thread-safe. Append blocks only when a buffer is full; Flush blocks on the disk.
#ifndef DATACOM_COMMON_RECORDS_CSV_H_
#define DATACOM_COMMON_RECORDS_CSV_H_

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/records/append_file.h"

namespace datacom {

class CsvWriter {
 public:
  // Empties or creates the file and writes the header.
  static absl::StatusOr<std::unique_ptr<CsvWriter>> Create(const std::string& path,
                                                           const std::vector<std::string>& header);
  // Continues at `offset` (an earlier Offset()) and drops what follows. FAILED_PRECONDITION when the file's header
  // differs, DATA_LOSS when the file is shorter. Offset 0 is Create.
  static absl::StatusOr<std::unique_ptr<CsvWriter>> Resume(const std::string& path,
                                                           const std::vector<std::string>& header, uint64_t offset);

  // INVALID_ARGUMENT, naming both counts, when the row is not as wide as the header.
  absl::Status Append(const std::vector<std::string>& cells);
  absl::Status Flush(bool sync) { return file_->Flush(sync); }
  uint64_t Offset() const { return file_->Offset(); }

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
// Quoted when it contains a comma, a quote or a line break (RFC 4180).
std::string Cell(const std::string& text);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_CSV_H_
