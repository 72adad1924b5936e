// Repairs that have one right answer. Each returns what it did. They block on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_REPAIR_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_REPAIR_H_

#include <cstdint>
#include <string>

#include "deploy/tools/verify/findings.h"
#include "deploy/tools/verify/run.h"

namespace datacom::verify {

// Moves a failure ring aside and rebuilds it from the member's rows, which must all be present.
Report::Repair RebuildFailures(const VerifiedRun& run, uint32_t member);
// Renames checkpoints/<update> to checkpoints/<update>.damaged, as the learner does when it resumes.
Report::Repair MoveCheckpointAside(const VerifiedRun& run, uint64_t update);
// Notes files and folders that an interrupted write has left.
void FindLeftovers(VerifiedRun* run);

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_REPAIR_H_
// SPDX-License-Identifier: Apache-2.0
