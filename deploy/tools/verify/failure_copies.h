// The failure ring of a member in memory: the number of each copied row and a checksum of the copy. Rows are compared
// with it in ascending order. Not thread-safe.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_FAILURE_COPIES_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_FAILURE_COPIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/tools/verify/run.h"
#include "replay/ring.h"

namespace datacom::verify {

class FailureCopies {
 public:
  // Reads the ring (null: unknown) and reports damage. `rows`: the ring of rows, whose counters say how many copies
  // were made.
  FailureCopies(VerifiedRun* run, std::string file, const replay::Ring* ring, const replay::Ring& rows,
                Report::Repair repair);

  // Before the first row and after rows that are not known: copies of rows below `row` are not compared.
  void SkipTo(uint64_t row);
  // A held row, `row_bytes` long.
  void Compare(uint64_t row, bool failed, absl::string_view bytes);
  void End(uint64_t end);  // `end`: the number after the last row
  uint64_t size() const { return copies_.size(); }

 private:
  struct Copy {
    uint64_t row = 0;
    uint32_t crc = 0;
    uint64_t record = 0;  // its number in the ring
  };
  void Read(const replay::Ring& ring);
  void AddBlock(uint64_t from, uint64_t record_bytes, const std::string& records);
  void Damage(absl::string_view what);

  VerifiedRun* const run_;
  const std::string file_;
  const uint64_t complete_below_;  // rows with cost > 0 below it have their copies
  const uint64_t made_;            // copies of these rows
  Report::Repair repair_;          // repairs the whole file; given with the first finding
  bool sound_ = false;             // every held record was read
  uint64_t complete_from_ = 0;     // older copies were overwritten
  std::vector<Copy> copies_;
  size_t next_ = 0;
};

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_FAILURE_COPIES_H_
// SPDX-License-Identifier: Apache-2.0
