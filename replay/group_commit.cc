#include "replay/group_commit.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/status.h"

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

bool GroupCommit::Staged() const {
  if (tables_.sessions().credit_file()->changed()) return true;
  for (uint32_t member = 0; member < tables_.members(); ++member) {
    if (tables_.member(member).staged() > tables_.member(member).inserted()) return true;
  }
  return false;
}

absl::Status GroupCommit::CommitGroup(Mutex* mutex) {
  if (committing_) {
    for (const uint64_t group = groups_; groups_ == group;) committed_.Wait(mutex);
    return health_;
  }
  RETURN_IF_ERROR(health_);
  if (!Staged()) return absl::OkStatus();
  std::vector<MemberTable*> tables;
  for (uint32_t member = 0; member < tables_.members(); ++member) {
    if (tables_.member(member).Prepare()) tables.push_back(&tables_.member(member));
  }
  CreditFile* const credit = tables_.sessions().credit_file();
  credit->Take();
  committing_ = true;
  mutex->Unlock();
  absl::Status written = WriteRows(tables);
  mutex->Lock();
  if (written.ok()) {
    credit->StoreTaken();
    mutex->Unlock();
    written = credit->SyncTaken();
    DATACOM_FAILPOINT("group.credit");
    mutex->Lock();
  }
  committing_ = false;
  ++groups_;
  committed_.NotifyAll();
  if (!written.ok()) return Fail(written);
  for (MemberTable* table : tables) table->Finish();
  credit->Finish();
  return absl::OkStatus();
}

absl::Status GroupCommit::Commit(Mutex* mutex) {
  if (!sync_) return health_;
  if (committing_) RETURN_IF_ERROR(CommitGroup(mutex));  // that group began before this call
  return CommitGroup(mutex);
}

bool GroupCommit::AwaitStaged(Mutex* mutex) {
  while (sync_ && !stopped_ && health_.ok() && !Staged()) staged_.Wait(mutex);
  return sync_ && !stopped_ && health_.ok();
}

void GroupCommit::Stop() {
  stopped_ = true;
  staged_.NotifyAll();
}

const absl::Status& GroupCommit::Fail(const absl::Status& why) {
  health_ = absl::UnavailableError(
      absl::StrCat("the replay's disk failed; no more rows are accepted: ", std::string(why.message())));
  return health_;
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
