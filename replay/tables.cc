#include "replay/tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom::replay {
namespace {

constexpr uint64_t kLockstepCredit = 256;  // rows; no other session could use them

}  // namespace

uint64_t Credit::Goal(uint64_t environments, uint64_t sessions) const {
  if (limiter_.options().lockstep) return kLockstepCredit;
  return std::max<uint64_t>(environments, limiter_.options().tolerance / (2 * sessions));
}

void Credit::CountLanes(const SessionTable& sessions) {
  const bool lockstep = limiter_.options().lockstep;
  lanes_.assign(lanes_.size(), lockstep ? 1 : 0);  // lockstep: even before the actor registers
  if (lockstep) return;
  for (const auto& [number, session] : sessions.living()) {
    for (size_t member = 0; member < lanes_.size(); ++member) lanes_[member] += session.lanes[member];
  }
}

void Credit::Grant(uint32_t member, uint64_t inserted, uint64_t completed, SessionTable* sessions) {
  uint64_t granted = inserted + sessions->Outstanding(member);
  uint64_t allowed = limiter_.Allowed(completed);
  if (limiter_.options().lockstep) allowed = std::min(allowed, limiter_.PolicyChange(inserted));
  std::vector<Session*> takers;
  for (auto& [number, session] : sessions->living()) {
    if (session.connected() && session.serves(member)) takers.push_back(&session);
  }
  if (takers.empty() || granted >= allowed) return;
  // Start with the session whose turn it is, then take the others in order.
  const auto turn = turn_[member];
  const auto first =
      std::find_if(takers.begin(), takers.end(), [turn](const Session* session) { return session->number >= turn; });
  std::rotate(takers.begin(), first == takers.end() ? takers.begin() : first, takers.end());
  for (Session* session : takers) {
    CreditFile::Entry entry = sessions->credit(*session, member);
    const uint64_t environments = session->environments_of(member);
    const uint64_t credit = entry.limit - entry.next_sequence, goal = Goal(environments, takers.size());
    if (credit > goal / 2) continue;  // has enough for now; few large grants are cheaper than many small ones
    const uint64_t share = std::max<uint64_t>(environments, (allowed - granted) / takers.size());
    const uint64_t piece = std::min({goal - credit, allowed - granted, limiter_.options().lockstep ? goal : share});
    if (piece == 0 || (credit > 0 && piece < environments)) continue;
    session->min_policy_update[member] = limiter_.MinPolicyUpdate(granted, completed);
    entry.limit += piece;
    sessions->SetCredit(*session, member, entry);
    granted += piece;
    turn_[member] = session->number + 1;
    if (granted >= allowed) break;
  }
}

Tables::Tables(const Options& options, std::unique_ptr<FolderLock> lock)
    : folder_(options.folder),
      lock_(std::move(lock)),
      limiter_(options.limits),
      credit_(limiter_, static_cast<uint32_t>(options.members.size())) {}

absl::StatusOr<std::unique_ptr<Tables>> Tables::Open(const RowSchema& schema, const Options& options) {
  RETURN_IF_ERROR(MakeFolders(options.folder));
  ASSIGN_OR_RETURN(auto lock, FolderLock::Take(options.folder));
  std::unique_ptr<Tables> tables(new Tables(options, std::move(lock)));
  RETURN_IF_ERROR(tables->Recover(schema, options));
  return tables;
}

absl::Status Tables::Recover(const RowSchema& schema, const Options& options) {
  const auto members = static_cast<uint32_t>(options.members.size());
  const bool known = SessionTable::Exists(folder_);
  for (uint32_t member = 0; member < members; ++member) {
    const std::string rows = absl::StrCat(folder_, "/member_", member, ".rows");
    if (known && !Ring::HasContent(rows)) {  // Open would make a new one
      return absl::DataLossError(absl::StrCat(rows, " was missing or empty although the run has begun: its rows are ",
                                              "lost; restore the file from a copy, or start a new run folder"));
    }
    ASSIGN_OR_RETURN(auto table, MemberTable::Open(schema, options, member));
    members_.push_back(std::move(table));
  }
  // A loss of power may keep any name that is not synced: the file of credit must not outlive the rings.
  if (!known) RETURN_IF_ERROR(SyncFile(folder_));
  ASSIGN_OR_RETURN(sessions_, SessionTable::Open({folder_, options.run_id, members, options.limits.lockstep,
                                                  options.sync, options.lease, options.clock}));
  if (!known) RETURN_IF_ERROR(SyncFile(folder_));
  RETURN_IF_ERROR(CheckSessionNumbers());
  RETURN_IF_ERROR(sessions_->CheckCreditStart());
  RETURN_IF_ERROR(sessions_->CheckStart("the newest checkpoint", options.checkpoint_start));
  for (const auto& table : members_) RETURN_IF_ERROR(table->CheckStarts(sessions_->starts()));
  for (const auto& [number, session] : sessions_->living()) {
    for (uint32_t member = 0; member < members; ++member) RETURN_IF_ERROR(CheckCredit(session, member));
  }
  // Nothing is refused from here on. Other files name a start only once the file of sessions does.
  RETURN_IF_ERROR(sessions_->Start(options.start));
  for (auto& table : members_) RETURN_IF_ERROR(table->Complete(sessions_->starts().back()));
  std::vector<uint32_t> living;
  for (auto& [number, session] : sessions_->living()) {
    living.push_back(number);
    for (uint32_t member = 0; member < members; ++member) {
      RecoverCredit(session, member);
      session.min_policy_update[member] =
          limiter_.MinPolicyUpdate(members_[member]->inserted(), /*completed=*/0);  // the learner has announced nothing
    }
  }
  for (auto& table : members_) table->mutable_episodes()->AbandonAllBut(living);
  credit_.CountLanes(*sessions_);
  return absl::OkStatus();
}

// Rows name the sessions that wrote them. A lost file of sessions would give their numbers to new ones.
absl::Status Tables::CheckSessionNumbers() const {
  for (uint32_t member = 0; member < members(); ++member) {
    const MemberTable& table = *members_[member];
    if (table.inserted() == 0 || (!sessions_->empty() && table.LastSession() < sessions_->next_session())) continue;
    return absl::DataLossError(absl::StrCat(
        folder_, "/sessions ", sessions_->empty() ? "is missing" : "is older than the rows", ": member ", member,
        " holds rows of session ", table.LastSession(), "; restore the file from a copy, or start a new run folder"));
  }
  return absl::OkStatus();
}

// A process that died after the rows and before the credit left the smaller number here. A larger one means that rows
// are lost.
absl::Status Tables::CheckCredit(const Session& session, uint32_t member) const {
  const CreditFile::Entry entry = sessions_->credit(session, member);
  const MemberTable& table = *members_[member];
  const uint64_t held = table.NextSequence(session.number);
  const bool all_held = table.held() == table.inserted();  // no row was overwritten
  if (entry.next_sequence > held && (held > 0 || all_held)) {
    return absl::DataLossError(absl::StrCat(folder_, "/member_", member, ".rows is older than the credit: session ",
                                            session.number, " has sent rows up to sequence ", entry.next_sequence,
                                            ", the ring has them up to ", held,
                                            "; restore the run folder from a copy, or start a new one"));
  }
  return absl::OkStatus();
}

void Tables::RecoverCredit(const Session& session, uint32_t member) {
  CreditFile::Entry entry = sessions_->credit(session, member);
  const uint64_t held = members_[member]->NextSequence(session.number);
  entry.next_sequence = std::max(entry.next_sequence, held);
  entry.limit = std::max(entry.limit, entry.next_sequence);
  sessions_->SetCredit(session, member, entry);
}

bool Tables::AllHold(uint64_t rows) const {
  return std::all_of(members_.begin(), members_.end(), [rows](const auto& table) { return table->inserted() >= rows; });
}

void Tables::SessionsChanged(const std::vector<uint32_t>& ended) {
  for (const uint32_t session : ended) {
    for (auto& table : members_) table->mutable_episodes()->Abandon(session);
  }
  credit_.CountLanes(*sessions_);
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
