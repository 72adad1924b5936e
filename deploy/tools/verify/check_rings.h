// Verifies what the replay writes. The rings of every member: checksums, the order of the rows, the copies of rows with
// cost > 0, and the rows against ledger, violations and episodes. Reads block by block with copies, because a replay
// may write the rings at the same time. Not thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_RINGS_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_RINGS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datacom/v1/replay_state.pb.h"
#include "deploy/tools/verify/check_ledger.h"
#include "deploy/tools/verify/run.h"
#include "replay/credit_file.h"
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

// Verifies sessions and credit against the rows. Both files are read before the rows and again after them, because a
// replay may still write: only sessions that were there both times are compared.
class SessionFiles {
 public:
  // Reads both files before the rows, and reports what is wrong with them by themselves.
  explicit SessionFiles(VerifiedRun* run);
  // Names of actors by session.
  std::map<uint32_t, std::string> Actors() const;
  // Compares the starts that the other parts name (replay/starts.h) with those of the file of sessions.
  void CheckStarts(const std::vector<MemberRings>& rings) const;
  // Compares with the rows.
  void Compare(const std::vector<HeldSessions>& held);

 private:
  void CheckSessions(const v1::ReplaySessions& sessions);
  void CheckWords(const v1::ReplaySessions& sessions, const replay::CreditFile::Content& credit);
  void CompareNumbers(const v1::ReplaySessions& now, uint32_t member, const HeldSessions& held);
  void CompareCredit(const v1::ReplaySession& session, uint32_t member, const HeldSessions& held,
                     const replay::CreditFile::Content& now);

  VerifiedRun* const run_;
  std::optional<v1::ReplaySessions> sessions_;
  std::optional<replay::CreditFile::Content> credit_;
};

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_RINGS_H_
// SPDX-License-Identifier: Apache-2.0
