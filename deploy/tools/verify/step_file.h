// Reads the records of a step file of the ledger (common/records/ledger.h) by their numbers, as many as the file had
// when it was opened. Owns the descriptor. Not thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_STEP_FILE_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_STEP_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "deploy/tools/verify/step_order.h"

namespace datacom::verify {

struct StepRecord {
  Transition transition;
  uint32_t check = 0;           // StepCheck
  absl::string_view execution;  // float32 [action_dim]
  bool sound = false;           // its checksum
};

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

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_STEP_FILE_H_
// SPDX-License-Identifier: Apache-2.0
