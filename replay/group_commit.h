// Commits what is staged in groups, for replay.sync, and remembers when the disk failed.
//
// A group is all that is staged when it begins, of all members and sessions. It reaches the disk in three steps, each
// of which must be complete before the next begins:
//   1. rows, failures and their sums, beyond the cursors: a loss of power leaves the state before the group;
//   2. the cursors: a loss of power leaves each member with or without the group's rows;
//   3. credit and next sequences: a stored next sequence says that its rows are there (Tables::RecoverCredit).
// Then the group is visible to acknowledgements, credit and draws. kill -9 loses no step that was taken, because the
// files are mapped.
//
// Not thread-safe: the store's mutex guards it. Commit, CommitGroup and AwaitStaged release that mutex while the disk
// works or while they wait; what other threads stage during that time belongs to the next group.
#ifndef DATACOM_REPLAY_GROUP_COMMIT_H_
#define DATACOM_REPLAY_GROUP_COMMIT_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "replay/tables.h"

namespace datacom::replay {

class GroupCommit {
 public:
  // Without `sync` nothing is ever staged.
  GroupCommit(Tables* tables, bool sync) : tables_(*tables), sync_(sync) {}

  // Returns once all that was staged before the call is on the disk. UNAVAILABLE after the disk failed: what was not
  // acknowledged is lost or committed, which the next Tables::Open finds out.
  absl::Status Commit(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Waits for the end of the group that another thread writes; if there is none, writes one. Both free room for rows.
  absl::Status CommitGroup(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Waits until something is staged. False without sync, after Stop, and after the disk failed.
  bool AwaitStaged(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Call it when something was staged.
  void NotifyStaged() {
    if (sync_) staged_.NotifyAll();
  }
  void Stop();
  // The number of the group that is written now, from 1; 0 if there is none.
  uint64_t in_progress() const { return committing_ ? groups_ + 1 : 0; }

  // Not OK after the disk failed.
  const absl::Status& health() const { return health_; }
  // Records that the disk failed, and returns health().
  const absl::Status& Fail(const absl::Status& why);

 private:
  bool Staged() const;

  Tables& tables_;
  const bool sync_;
  absl::Status health_;
  CondVar staged_, committed_;  // something is staged; a group is over
  bool committing_ = false;     // a thread writes a group
  uint64_t groups_ = 0;         // number of groups that are over
  bool stopped_ = false;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_GROUP_COMMIT_H_
// SPDX-License-Identifier: Apache-2.0
