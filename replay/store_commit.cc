// The group commit of Store (declared in store.h), for replay.sync.
//
// A group is all that is staged when it begins, of all members and sessions. It reaches the disk in three steps, each
// of which must be complete before the next begins:
//   1. rows, failures and their sums, beyond the cursors: a loss of power leaves the state before the group;
//   2. the cursors: a loss of power leaves each member with or without the group's rows;
//   3. credit and next sequences: a stored next sequence says that its rows are there (Store::RecoverCredit).
// Then the group is visible to acknowledgements, credit and draws. The mutex is free while the disk works; what is
// staged meanwhile belongs to the next group. kill -9 loses no step that was taken, because the files are mapped.
#include <algorithm>

#include "common/base/failpoint.h"
#include "common/base/status.h"
#include "replay/store.h"

namespace datacom::replay {
namespace {

// Steps 1 and 2.
absl::Status WriteRows(const std::vector<MemberTable*>& tables) {
  for (const MemberTable* table : tables) RETURN_IF_ERROR(table->SyncRows());
  DATACOM_FAILPOINT("group.rows");
  for (MemberTable* table : tables) RETURN_IF_ERROR(table->SyncCursors());
  DATACOM_FAILPOINT("group.cursors");
  return absl::OkStatus();
}

}  // namespace

bool Store::Staged() const {
  return sessions_->credit_file()->changed() || std::any_of(members_.begin(), members_.end(), [](const auto& table) {
           return table->staged() > table->inserted();
         });
}

absl::Status Store::CommitGroup() {
  if (committing_) {
    for (const uint64_t group = groups_; groups_ == group;) committed_.Wait(&mutex_);
    return health_;
  }
  RETURN_IF_ERROR(health_);
  if (!Staged()) return absl::OkStatus();
  std::vector<MemberTable*> tables;
  for (const auto& table : members_) {
    if (table->Prepare()) tables.push_back(table.get());
  }
  CreditFile* const credit = sessions_->credit_file();
  credit->Take();
  committing_ = true;
  mutex_.Unlock();
  absl::Status written = WriteRows(tables);
  mutex_.Lock();
  if (written.ok()) {
    credit->StoreTaken();
    mutex_.Unlock();
    written = credit->SyncTaken();
    DATACOM_FAILPOINT("group.credit");
    mutex_.Lock();
  }
  committing_ = false;
  ++groups_;
  committed_.NotifyAll();
  if (!written.ok()) return DiskFailed(written);
  for (MemberTable* table : tables) table->Finish();
  credit->Finish();
  return absl::OkStatus();
}

absl::Status Store::CommitStaged() {
  if (!sync_) return health_;
  if (committing_) RETURN_IF_ERROR(CommitGroup());  // that group began before this call
  return CommitGroup();
}

absl::Status Store::Commit() {
  MutexLock lock(&mutex_);
  return CommitStaged();
}

bool Store::AwaitStaged() {
  MutexLock lock(&mutex_);
  while (sync_ && !stop_commits_ && health_.ok() && !Staged()) staged_.Wait(&mutex_);
  return sync_ && !stop_commits_ && health_.ok();
}

uint64_t Store::GroupInProgress() const {
  MutexLock lock(&mutex_);
  return committing_ ? groups_ + 1 : 0;
}

void Store::StopCommits() {
  MutexLock lock(&mutex_);
  stop_commits_ = true;
  staged_.NotifyAll();
}

}  // namespace datacom::replay
