#include "replay/waits.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "spdlog/spdlog.h"

namespace datacom::replay {
namespace {

constexpr uint64_t kDescribedMembers = 3;

std::string DescribeSessions(const Tables& tables, uint32_t member, const Clock& clock) {
  std::vector<std::string> parts;
  for (const auto& [number, session] : tables.sessions().living()) {
    if (!session.serves(member)) continue;
    const CreditFile::Entry& entry = tables.sessions().credit(session, member);
    parts.push_back(absl::StrCat(session.actor, session.connected() ? " connected" : " not connected", ", credit ",
                                 entry.limit - entry.next_sequence,
                                 absl::StrFormat(", last row %.0f s ago", Seconds(clock.Now() - session.last_row))));
  }
  return parts.empty() ? "no session" : absl::StrCat("sessions: ", absl::StrJoin(parts, "; "));
}

std::string DescribeMissingCredit(const Tables& tables, const Draws& draws, const Session& session,
                                  const Clock& clock) {
  const uint64_t completed = draws.completed_update();
  const std::string done = absl::StrCat("update ", completed, " of ", tables.schedule().LastUpdate(), " is done");
  if (!draws.learner_connected()) return absl::StrCat("learner: not connected; ", done);
  const uint32_t member = session.members().front();
  const uint64_t inserted = tables.member(member).inserted();
  if (inserted >= tables.limiter().Allowed(completed)) {
    return absl::StrCat("learner: ", done, ", which allows member ", member, " no more than its ", inserted, " rows");
  }
  return absl::StrCat("other actors hold the credit of member ", member, " (", DescribeSessions(tables, member, clock),
                      ")");
}

// The member for which the actor has credit that the policy of its newest row may not use any more, while no row comes:
// no newer policy has reached it. Nothing when there is none.
std::optional<uint32_t> LacksPolicy(const Tables& tables, const Session& session, const Clock& clock) {
  if (!session.connected() || Seconds(clock.Now() - session.last_row) < kExpectedWaitSeconds) return std::nullopt;
  for (const uint32_t member : session.members()) {
    const CreditFile::Entry& entry = tables.sessions().credit(session, member);
    if (entry.limit > entry.next_sequence && session.min_policy_update[member] > session.last_policy[member])
      return member;
  }
  return std::nullopt;
}

std::string DescribeMissingPolicy(const Session& session, uint32_t member) {
  return absl::StrCat("learner: member ", member, " needs the policy of update ", session.min_policy_update[member],
                      " or newer; its newest row has the one of update ", session.last_policy[member]);
}

bool HasCredit(const Tables& tables, const Session& session) {
  const std::vector<uint32_t> members = session.members();
  return members.empty() || std::any_of(members.begin(), members.end(), [&](uint32_t member) {
           const CreditFile::Entry& entry = tables.sessions().credit(session, member);
           return entry.limit > entry.next_sequence;
         });
}

void SetWait(std::string reason, Session* session) {
  if (session->waiting_for.empty())
    spdlog::info("actor waits actor={} session={} for={:?}", session->actor, session->number, reason);
  session->waiting_for = std::move(reason);
}

}  // namespace

std::string DescribeMissingRows(const Tables& tables, uint64_t update, const Clock& clock) {
  const uint64_t seen = tables.schedule().RowsSeen(update);
  std::vector<std::string> parts;
  uint64_t lacking = 0;
  for (uint32_t member = 0; member < tables.members(); ++member) {
    const uint64_t inserted = tables.member(member).inserted();
    if (inserted >= seen || ++lacking > kDescribedMembers) continue;
    parts.push_back(absl::StrCat("member ", member, " has ", inserted, " of ", seen, " rows (",
                                 DescribeSessions(tables, member, clock), ")"));
  }
  if (lacking > kDescribedMembers) parts.push_back(absl::StrCat(lacking - kDescribedMembers, " more members"));
  return absl::StrJoin(parts, ", ");
}

void FindSilent(const Draws& draws, const Clock& clock, Tables* tables) {
  if (tables->sessions().lockstep() || !draws.learner_connected() || draws.waiting() == 0) return;
  const uint64_t seen = tables->schedule().RowsSeen(draws.waiting());
  auto& living = tables->sessions().living();
  const auto connected =
      std::count_if(living.begin(), living.end(), [](const auto& entry) { return entry.second.connected(); });
  if (connected < 2) return;
  for (auto& [number, session] : living) {
    if (!session.connected() || Seconds(clock.Now() - session.last_row) < kSilentSeconds) continue;
    for (const uint32_t member : session.members()) {
      const CreditFile::Entry& entry = tables->sessions().credit(session, member);
      if (tables->member(member).inserted() < seen && entry.limit > entry.next_sequence) session.silent = true;
    }
  }
}

void UpdateWaits(const Draws& draws, const Clock& clock, Tables* tables) {
  const Clock::Time now = clock.Now();
  const bool finished = tables->Finished();
  for (auto& [number, session] : tables->sessions().living()) {
    const std::optional<uint32_t> lacking = LacksPolicy(*tables, session, clock);
    if (!finished && lacking.has_value()) {
      SetWait(DescribeMissingPolicy(session, *lacking), &session);
      session.has_no_credit = false;
      continue;
    }
    if (finished || !session.connected() || HasCredit(*tables, session)) {
      session.has_no_credit = false;
      session.waiting_for.clear();
      continue;
    }
    if (!session.has_no_credit) session.no_credit_since = now;
    session.has_no_credit = true;
    if (Seconds(now - session.no_credit_since) < kExpectedWaitSeconds) continue;
    SetWait(DescribeMissingCredit(*tables, draws, session, clock), &session);
  }
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
