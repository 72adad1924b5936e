// Verifies the rings of every member: checksums, the order of the rows, the copies of rows with cost > 0, and the
// rows against ledger, violations and episodes. Reads block by block with copies, because a replay may write the rings
// at the same time. Not thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_RINGS_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_RINGS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "deploy/tools/verify/check_ledger.h"
#include "deploy/tools/verify/episode_records.h"
#include "deploy/tools/verify/run.h"
#include "replay/ring.h"

namespace datacom::verify {

struct MemberRings {
  std::unique_ptr<const replay::Ring> rows, failures;  // null: missing or damaged
};
// Opens the rings of every member; reports those that cannot be opened.
std::vector<MemberRings> OpenRings(VerifiedRun* run);
// The first row that each ring held when it was opened.
std::vector<uint64_t> FirstRows(const std::vector<MemberRings>& rings);

// The sessions of a member according to its rows.
struct HeldSessions {
  bool known = false;      // every held row was read
  bool from_start = true;  // no row was overwritten
  uint64_t end = 0;        // rows committed when reading began
  std::map<uint32_t, uint64_t> next_sequence;
};
std::vector<HeldSessions> VerifyRings(VerifiedRun* run, const std::vector<MemberRings>& rings, LedgerState* ledger,
                                      EpisodeRecords* episodes);

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_RINGS_H_
// SPDX-License-Identifier: Apache-2.0
