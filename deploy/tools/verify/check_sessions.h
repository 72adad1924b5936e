// Verifies sessions and credit against the rows. Both files are read before the rows and again after them, because a
// replay may still write: only sessions that were there both times are compared. Not thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_SESSIONS_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_SESSIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "datacom/v1/replay_state.pb.h"
#include "deploy/tools/verify/check_rings.h"
#include "deploy/tools/verify/run.h"
#include "replay/credit_file.h"

namespace datacom::verify {

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

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_CHECK_SESSIONS_H_
// SPDX-License-Identifier: Apache-2.0
