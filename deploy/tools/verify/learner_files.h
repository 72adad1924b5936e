// Verifies what the learner writes: progress.csv, the TensorBoard files, the checkpoints and the snapshots of the
// epochs. Not thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_LEARNER_FILES_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_LEARNER_FILES_H_

#include <vector>

#include "deploy/tools/verify/check_rings.h"
#include "deploy/tools/verify/run.h"

namespace datacom::verify {

// Returns whether the records show updates.
bool VerifyProgress(VerifiedRun* run);
void VerifyTensorboard(VerifiedRun* run);

// Call it last: a checkpoint names nothing that does not exist when it is written. `learned`: the records show that the
// run had begun to learn, so there is a checkpoint.
void VerifyCheckpoints(VerifiedRun* run, const std::vector<MemberRings>& rings, bool learned);
void VerifyPolicies(VerifiedRun* run);

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_LEARNER_FILES_H_
// SPDX-License-Identifier: Apache-2.0
