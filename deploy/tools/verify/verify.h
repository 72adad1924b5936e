// Verifies a run folder, whether its processes run or not: reads every part and compares the parts with each other.
//
// Of a running run only damage that is beyond doubt is reported. A writer writes in a known order, so what is read
// first exists in what is read later: records and ledger, then rings, then checkpoints. Unfinished tails of growing
// files are no damage then. Where nothing runs, the run's locks are held, so that nothing starts. Blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_VERIFY_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_VERIFY_H_

#include <string>

#include "absl/status/statusor.h"

namespace datacom::verify {

struct Verification {
  bool sound = false;
  std::string text;  // lines for people
};
// INVALID_ARGUMENT when `run_dir` is not a run folder. With `repair`, performs the unambiguous repairs and
// verifies again; FAILED_PRECONDITION when the run's processes run.
absl::StatusOr<Verification> VerifyRun(const std::string& run_dir, bool repair);

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_VERIFY_H_
// SPDX-License-Identifier: Apache-2.0
