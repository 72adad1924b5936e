#include "common/records/csv.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {
namespace {

template <typename Float>
std::string Shortest(Float value) {
  if (std::isnan(value)) return "";
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CsvWriter>> CsvWriter::Create(const std::string& path,
                                                             const std::vector<std::string>& header) {
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, AppendFile::Open(path, 0));
  std::unique_ptr<CsvWriter> writer(new CsvWriter(std::move(file), header.size()));
  RETURN_IF_ERROR(writer->Append(header));
  RETURN_IF_ERROR(writer->Flush(/*sync=*/false));
  return writer;
}

absl::StatusOr<std::unique_ptr<CsvWriter>> CsvWriter::Resume(const std::string& path,
                                                             const std::vector<std::string>& header, uint64_t offset) {
  if (offset == 0) return Create(path, header);
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  const std::string expected = absl::StrJoin(header, ",");
  const std::string found = content.substr(0, content.find('\n'));
  if (found != expected) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has the header \"", found, "\", this build writes \"", expected, "\""));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, AppendFile::Open(path, offset));
  return std::unique_ptr<CsvWriter>(new CsvWriter(std::move(file), header.size()));
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

std::string Cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace datacom
