#include "deploy/tools/verify/check_rings.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "replay/member_table.h"
#include "replay/row_order.h"
#include "replay/sessions.h"
#include "replay/starts.h"

namespace datacom::verify {
namespace {

constexpr char kSessionsFile[] = "replay/sessions", kCreditFile[] = "replay/credit";

uint64_t WordOf(const replay::CreditFile::Content& credit, uint32_t slot, uint32_t member, bool next_sequence) {
  return 2 * (uint64_t{slot} * credit.members + member) + (next_sequence ? 1 : 0);
}

}  // namespace

SessionFiles::SessionFiles(VerifiedRun* run) : run_(run) {
  const std::string folder = run->Path("replay");
  absl::StatusOr<v1::ReplaySessions> sessions = replay::SessionTable::Read(folder);
  if (sessions.ok()) {
    sessions_ = *std::move(sessions);
    CheckSessions(*sessions_);
  } else if (!absl::IsNotFound(sessions.status()) || run->has_rows()) {
    run->report->Damage(kSessionsFile, sessions.status().message());
  }
  absl::StatusOr<replay::CreditFile::Content> credit = replay::CreditFile::Read(run->Path(kCreditFile));
  if (!credit.ok()) {
    if (run->has_rows()) run->report->Damage(kCreditFile, credit.status().message());
    return;
  }
  run->CheckRunId(kCreditFile, credit->run_id);
  if (credit->members == run->members()) {
    credit_ = *std::move(credit);
  } else {
    run->report->Damage(kCreditFile, absl::StrCat("of ", credit->members, " members, the run has ", run->members()));
  }
  if (sessions_.has_value() && credit_.has_value()) CheckWords(*sessions_, *credit_);
}

std::map<uint32_t, std::string> SessionFiles::Actors() const {
  if (!sessions_.has_value()) return {};
  return {sessions_->actors().begin(), sessions_->actors().end()};
}

void SessionFiles::CheckSessions(const v1::ReplaySessions& sessions) {
  run_->CheckRunId(kSessionsFile, sessions.run_id());
  for (const uint32_t session : replay::SessionTable::Invalid(sessions, run_->members())) {
    run_->report->Damage(kSessionsFile,
                         absl::StrCat("session ", session, ": its number, slot, environments or members are invalid"));
  }
  for (const v1::ReplaySession& session : sessions.living()) {
    if (sessions.actors().contains(session.session())) continue;
    run_->report->Damage(kSessionsFile, absl::StrCat("session ", session.session(), ": its actor has no name"));
  }
}

void SessionFiles::CheckWords(const v1::ReplaySessions& sessions, const replay::CreditFile::Content& credit) {
  std::set<uint32_t> living;
  for (const v1::ReplaySession& session : sessions.living()) living.insert(session.slot());
  uint64_t valid = 0;
  for (uint32_t slot = 0; slot < credit.slots; ++slot) {
    for (uint32_t member = 0; member < credit.members; ++member) {
      for (const bool next_sequence : {false, true}) {
        const uint64_t word = WordOf(credit, slot, member, next_sequence);
        valid += credit.words[word].has_value();
        if (credit.words[word].has_value() || (credit.unused[word] && !living.contains(slot))) continue;
        run_->report->Damage(kCreditFile,
                             absl::StrCat("slot ", slot, ", member ", member, ": ",
                                          next_sequence ? "the next sequence" : "the limit", " is damaged"));
      }
    }
  }
  run_->report->Part("sessions", absl::StrCat(sessions.living_size(), " live of ", sessions.next_session() - 1, ", ",
                                              Count(valid, "valid word"), " of credit"));
}

// Parts name a start after the file of sessions does, so that file is read last.
void SessionFiles::CheckStarts(const std::vector<MemberRings>& rings) const {
  const absl::StatusOr<v1::ReplaySessions> now = replay::SessionTable::Read(run_->Path("replay"));
  if (!now.ok()) return;  // reported
  const std::vector<uint64_t> known(now->starts().begin(), now->starts().end());
  const auto check = [&](const std::string& file, uint64_t start) {
    const absl::Status status = replay::CheckStart("it", start, known);
    if (!status.ok()) run_->report->Damage(file, status.message());
  };
  if (credit_.has_value()) check(kCreditFile, credit_->start);
  for (size_t member = 0; member < rings.size(); ++member) {
    const std::string name = absl::StrCat("replay/member_", member);
    if (rings[member].rows != nullptr) check(name + ".rows", rings[member].rows->counter(replay::kStart));
    if (rings[member].failures != nullptr) check(name + ".failures", rings[member].failures->counter(replay::kStart));
  }
  if (!run_->checkpoint.has_value()) return;
  check(absl::StrCat("checkpoints/", run_->checkpoint->update()), run_->checkpoint->replay_start());
}

void SessionFiles::Compare(const std::vector<HeldSessions>& held) {
  const absl::StatusOr<v1::ReplaySessions> now = replay::SessionTable::Read(run_->Path("replay"));
  const absl::StatusOr<replay::CreditFile::Content> credit = replay::CreditFile::Read(run_->Path(kCreditFile));
  if (!now.ok()) {
    for (uint32_t member = 0; member < held.size(); ++member) {
      if (held[member].end == 0 || run_->has_rows()) continue;  // else reported
      run_->report->Damage(kSessionsFile, absl::StrCat("missing, although member ", member, " has rows"));
    }
    if (!sessions_.has_value())
      run_->report->Part("sessions", run_->rings_elsewhere ? "not in this folder" : "none yet");
    return;
  }
  for (uint32_t member = 0; member < held.size(); ++member) CompareNumbers(*now, member, held[member]);
  if (!sessions_.has_value() || !credit_.has_value() || !credit.ok()) return;
  if (credit->slots != credit_->slots || credit->members != credit_->members) {
    run_->report->Damage(
        kCreditFile, absl::StrCat("it was replaced during the verification: ", credit->slots, " slots of ",
                                  credit->members, " members instead of ", credit_->slots, " of ", credit_->members));
    return;
  }
  for (const v1::ReplaySession& session : sessions_->living()) {
    const bool stays = std::any_of(now->living().begin(), now->living().end(), [&](const v1::ReplaySession& other) {
      return other.session() == session.session() && other.slot() == session.slot();
    });
    if (!stays || session.slot() >= credit_->slots) continue;
    for (const v1::MemberLanes& served : session.assignment().members()) {
      const uint32_t member = served.member();
      if (member < held.size() && held[member].known) CompareCredit(session, member, held[member], *credit);
    }
  }
}

void SessionFiles::CompareNumbers(const v1::ReplaySessions& now, uint32_t member, const HeldSessions& held) {
  for (const auto& [session, next_sequence] : held.next_sequence) {
    if (session >= now.next_session()) {
      run_->report->Damage(kSessionsFile, absl::StrCat("session ", session, ": unknown, but member ", member,
                                                       " has its rows; the file is older than the rows"));
    } else if (!now.actors().contains(session) && now.actors_size() < replay::kKeptNames) {
      run_->report->Damage(kSessionsFile, absl::StrCat("session ", session, ": member ", member,
                                                       " has its rows, and its actor has no name"));
    }
  }
}

// Rows are committed before their session's credit. So the credit that was read before the rows is not ahead of them,
// and the credit that was read after them is behind by at most what was being stored: a chunk, or with replay.sync a
// group (replay/group_commit.h).
void SessionFiles::CompareCredit(const v1::ReplaySession& session, uint32_t member, const HeldSessions& held,
                                 const replay::CreditFile::Content& now) {
  const auto found = held.next_sequence.find(session.session());
  const bool has_rows = found != held.next_sequence.end();
  if (!has_rows && !held.from_start) return;  // they may have been overwritten
  const uint64_t next = has_rows ? found->second : 0;
  const uint64_t word = WordOf(now, session.slot(), member, true);
  const uint64_t behind = std::max<uint64_t>(replay::kMaxChunkBytes / run_->schema.wire_row_bytes(), kRingGuardRows);
  const std::string where = absl::StrCat("slot ", session.slot(), ", member ", member, ": session ", session.session(),
                                         " has sent rows up to sequence ");
  if (const auto before = credit_->words[word]; before.has_value() && *before > next) {
    run_->report->Damage(kCreditFile, absl::StrCat(where, *before, ", the ring has them up to ", next,
                                                   ": one of them is older than the other"));
  } else if (now.words[word].has_value() && *now.words[word] + behind < next) {
    run_->report->Damage(kCreditFile, absl::StrCat(where, *now.words[word], ", the ring has them up to ", next,
                                                   ": it is older than the rows"));
  }
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
