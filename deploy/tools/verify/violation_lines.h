// Reads violations.csv line by line, as long as the file was when it was opened. Reports lines that cannot be read. Not
// thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_VIOLATION_LINES_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_VIOLATION_LINES_H_

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "deploy/tools/verify/run.h"

namespace datacom::verify {

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

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_VIOLATION_LINES_H_
// SPDX-License-Identifier: Apache-2.0
