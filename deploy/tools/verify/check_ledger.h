// Verifies the ledger: checksums and order of the step files, violations.csv against them, and the rows of episodes.csv
// against the recount of their steps. Not thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_LEDGER_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_LEDGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "deploy/tools/verify/episode_records.h"
#include "deploy/tools/verify/ledger_files.h"
#include "deploy/tools/verify/run.h"

namespace datacom::verify {

// A violation of violations.csv that has been compared with its step.
struct SeenViolation {
  uint64_t row = 0;  // its transition, from 0
  uint64_t id = 0;
  uint32_t line_crc = 0;  // CRC-32C of its line without the actor
};
uint32_t LineChecksum(const std::vector<std::string>& cells);

struct LedgerState {
  std::vector<std::unique_ptr<StepFile>> files;        // by member; null where there is none
  std::vector<std::vector<SeenViolation>> violations;  // by member, in the member's order; from `wanted_from` on
  std::string StepsFile(uint32_t member) const;
};

// `wanted_from`: for each member the first row whose violations are kept. `actors`: names by session.
LedgerState VerifyLedger(VerifiedRun* run, const std::vector<uint64_t>& wanted_from,
                         const std::map<uint32_t, std::string>& actors, EpisodeRecords* episodes);

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_LEDGER_H_
// SPDX-License-Identifier: Apache-2.0
