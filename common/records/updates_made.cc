#include "common/records/updates_made.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr size_t kDigits = 20;  // of the largest number, so that a later content covers an earlier one

constexpr char kForm[] = "reached %020" PRIu64 "\nrepeated %020" PRIu64 "\n";
constexpr size_t kBytes = sizeof "reached " - 1 + sizeof "repeated " - 1 + 2 * (kDigits + 1);

std::string Text(const UpdatesMade& made) {
  std::string text(kBytes + 1, '\0');
  std::snprintf(text.data(), text.size(), kForm, made.reached, made.repeated);
  text.resize(kBytes);
  return text;
}

}  // namespace

std::string UpdatesMadeFile(const std::string& run_dir) { return run_dir + "/checkpoints/updates"; }

absl::StatusOr<UpdatesMade> ReadUpdatesMade(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \n"));
  UpdatesMade made;
  if (words.size() > 3 && absl::SimpleAtoi(words[1], &made.reached) && absl::SimpleAtoi(words[3], &made.repeated) &&
      text == Text(made))
    return made;
  return absl::DataLossError(
      absl::StrCat(path, ": not the numbers of reached and repeated updates: '", absl::Utf8SafeCHexEscape(text), "'"));
}

double RepeatedShare(uint64_t repeated, uint64_t done) {
  return repeated == 0 ? 0
                       : static_cast<double>(repeated) / (static_cast<double>(repeated) + static_cast<double>(done));
}

absl::StatusOr<std::unique_ptr<UpdatesMadeWriter>> UpdatesMadeWriter::Open(const std::string& path, uint64_t resumed) {
  UpdatesMade made;
  absl::StatusOr<UpdatesMade> before = ReadUpdatesMade(path);
  if (absl::IsDataLoss(before.status())) {
    spdlog::warn("the count of repeated updates begins again: {}", std::string(before.status().message()));
  } else if (before.ok()) {
    made.repeated = before->repeated + (before->reached > resumed ? before->reached - resumed : 0);
  } else if (!absl::IsNotFound(before.status())) {
    return before.status();
  }
  made.reached = resumed;
  RETURN_IF_ERROR(WriteFileAtomically(path, Text(made)));
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return ErrnoStatus(errno, "open " + path);
  return std::unique_ptr<UpdatesMadeWriter>(new UpdatesMadeWriter(file, made));
}

UpdatesMadeWriter::~UpdatesMadeWriter() { ::close(file_); }

void UpdatesMadeWriter::Reach(uint64_t updates) {
  made_.reached = updates;
  std::array<char, kBytes + 1> text;  // at every update: no allocation
  std::snprintf(text.data(), text.size(), kForm, made_.reached, made_.repeated);
  [[maybe_unused]] const ssize_t written = ::pwrite(file_, text.data(), kBytes, 0);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
