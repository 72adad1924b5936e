// Everything that a replay keeps in its folder: the rows of every member, the sessions of actors and their credit. Open
// checks that they belong together, and completes what a crash left undone.
//
// Owns the files and the folder's lock. Not thread-safe (the store's mutex guards it). Open blocks on the disk.
#ifndef DATACOM_REPLAY_TABLES_H_
#define DATACOM_REPLAY_TABLES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/transitions/row_schema.h"
#include "replay/limiter.h"
#include "replay/member_table.h"
#include "replay/sessions.h"
#include "replay/settings.h"

namespace datacom::replay {

// Divides the rows that a member may still get among the sessions that act for it. Not thread-safe (the store's mutex
// guards it); blocks nowhere.
class Credit {
 public:
  // Every member has the same limits.
  Credit(const Limiter& limiter, uint32_t members) : limiter_(limiter), turn_(members), lanes_(members) {}

  // Grants a member's sessions what its limits allow: `inserted` rows are committed, `completed` updates are done. All
  // sessions together hold at most half of the tolerance, but at least one step per environment, so that actors that
  // die or stall with unused credit leave enough for the others.
  void Grant(uint32_t member, uint64_t inserted, uint64_t completed, SessionTable* sessions);
  // Call it when the lanes of sessions changed.
  void CountLanes(const SessionTable& sessions);
  uint32_t lanes(uint32_t member) const { return lanes_[member]; }  // environments that act for a member

 private:
  uint64_t Goal(uint64_t environments, uint64_t sessions) const;

  const Limiter limiter_;
  std::vector<uint32_t> turn_;  // per member: number of the session that Grant considers first
  std::vector<uint32_t> lanes_;
};

class Tables {
 public:
  // Creates or recovers the folder. Errors: those of Ring::Open, SessionTable::Open and FolderLock; no disk space;
  // DATA_LOSS, naming the file, when rows, sessions and credit do not belong together.
  static absl::StatusOr<std::unique_ptr<Tables>> Open(const RowSchema& schema, const Options& options);

  const std::string& folder() const { return folder_; }
  const Limiter& limiter() const { return limiter_; }
  const UpdateSchedule& schedule() const { return limiter_.schedule(); }
  uint32_t members() const { return static_cast<uint32_t>(members_.size()); }
  MemberTable& member(uint32_t member) { return *members_[member]; }
  const MemberTable& member(uint32_t member) const { return *members_[member]; }
  SessionTable& sessions() { return *sessions_; }
  const SessionTable& sessions() const { return *sessions_; }
  uint32_t lanes(uint32_t member) const { return credit_.lanes(member); }  // environments that act for a member

  // Whether every member has that many committed rows.
  bool AllHold(uint64_t rows) const;
  bool Finished() const { return AllHold(schedule().env_steps); }
  // Grants the member's sessions the credit that `completed_update` allows.
  void Grant(uint32_t member, uint64_t completed_update) {
    credit_.Grant(member, members_[member]->staged(), completed_update, sessions_.get());
  }
  // Call it when sessions have ended, or members moved between sessions: abandons the open episodes of the sessions
  // that ended, and counts lanes.
  void SessionsChanged(const std::vector<uint32_t>& ended);

 private:
  Tables(const Options& options, std::unique_ptr<FolderLock> lock);
  absl::Status Recover(const RowSchema& schema, const Options& options);
  absl::Status CheckSessionNumbers() const;
  absl::Status CheckCredit(const Session& session, uint32_t member) const;
  void RecoverCredit(const Session& session, uint32_t member);

  const std::string folder_;
  const std::unique_ptr<FolderLock> lock_;
  const Limiter limiter_;
  std::vector<std::unique_ptr<MemberTable>> members_;
  std::unique_ptr<SessionTable> sessions_;
  Credit credit_;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_TABLES_H_
// SPDX-License-Identifier: Apache-2.0
