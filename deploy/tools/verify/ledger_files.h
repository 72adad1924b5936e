// Readers of the ledger's files (common/records/ledger.h), as long as these were when they were opened. Own their
// descriptors. Not thread-safe; they block on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_LEDGER_FILES_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_LEDGER_FILES_H_

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "deploy/tools/verify/run.h"
#include "deploy/tools/verify/step_order.h"

namespace datacom::verify {

struct StepRecord {
  Transition transition;
  uint32_t check = 0;           // StepCheck
  absl::string_view execution;  // float32 [action_dim]
  bool sound = false;           // its checksum
};

// The records of a step file, by their numbers.
class StepFile {
 public:
  // Errors: NOT_FOUND, and those of CheckStepHeader.
  static absl::StatusOr<std::unique_ptr<StepFile>> Open(const std::string& path, uint32_t member, uint32_t action_dim);
  ~StepFile();

  uint64_t records() const { return records_; }
  uint64_t tail() const { return tail_; }  // bytes of an unfinished record
  // Reads the records from `from` on, at most `count`, into a buffer and returns their number, which is smaller than
  // records() says if a learner resumes and cuts the file.
  absl::StatusOr<uint64_t> Read(uint64_t from, uint64_t count);
  // Record `number`, which must be among those read last; valid until the next Read.
  StepRecord record(uint64_t number) const;

 private:
  StepFile(std::string path, int fd, uint32_t action_dim);
  const std::string path_;
  const int fd_;
  const size_t bytes_;
  uint64_t records_ = 0, tail_ = 0;
  uint64_t first_ = 0;  // number of the first record in the buffer
  std::string buffer_;
};

// Reads violations.csv line by line. Reports lines that cannot be read.
class ViolationLines {
 public:
  explicit ViolationLines(VerifiedRun* run) : run_(run) {}

  void Open();
  // Reads the next line; returns false when there is none. A line with another number of cells, or with a cell that is
  // not a number, is reported and not readable.
  bool Next();
  bool readable() const { return readable_; }  // the last line
  uint64_t count() const { return count_; }    // lines read, without the header: the id of the last one
  const std::vector<std::string>& cells() const { return cells_; }
  uint64_t LinesBelow(uint64_t bytes) const { return bytes == kept_ ? below_kept_ : 0; }
  // About the last line.
  void Damage(const std::string& what);

 private:
  bool ReadLine(std::string* line);
  std::string WrongCell() const;  // empty when there is none

  VerifiedRun* const run_;
  std::ifstream file_;
  uint64_t left_ = 0, read_ = 0;  // bytes
  uint64_t kept_ = 0, below_kept_ = 0;
  uint64_t count_ = 0;
  size_t columns_ = 0;
  bool readable_ = false;
  std::vector<std::string> cells_;
};

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_LEDGER_FILES_H_
// SPDX-License-Identifier: Apache-2.0
