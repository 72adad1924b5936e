#include "replay/credit.h"

#include <algorithm>

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

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
