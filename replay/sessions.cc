#include "replay/sessions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/framed_file.h"
#include "common/base/name.h"
#include "common/base/status.h"
#include "common/transitions/replay_layout.h"
#include "replay/division.h"
#include "replay/episodes.h"
#include "replay/starts.h"

namespace datacom::replay {
namespace {

constexpr char kAdvice[] = "; resume with the build that wrote it, or start a new run folder";
constexpr FileFormat kFormat = {"file of sessions", "DCSESSNS", 5, kAdvice};

std::string CreditPath(const std::string& folder) { return folder + "/credit"; }
std::string SessionsPath(const std::string& folder) { return folder + "/sessions"; }

absl::Status Replaced(const std::string& actor) {
  return absl::AlreadyExistsError(absl::StrCat("another process acts as ", actor,
                                               " now; actors that run at the same time need different names (--name)"));
}

// The other process may have died with its host: its stream then ends within 30 seconds (common/rpc/channel.cc).
absl::Status Taken(const std::string& actor) {
  return absl::UnavailableError(absl::StrCat("another process acts as ", actor,
                                             " and is connected; actors that run at the same time need different names "
                                             "(--name)"));
}

}  // namespace

std::vector<uint32_t> Session::members() const {
  std::vector<uint32_t> served;
  for (uint32_t member = 0; member < served_since.size(); ++member) {
    if (served_since[member] != 0) served.push_back(member);
  }
  return served;
}

v1::Assignment Session::Assigned() const {
  v1::Assignment assigned;
  assigned.set_number(assignment);
  for (const uint32_t member : members()) {
    v1::MemberLanes* to = assigned.add_members();
    to->set_member(member);
    to->set_lanes(lanes[member]);
  }
  return assigned;
}

std::string SessionTable::path() const { return SessionsPath(options_.folder); }

bool SessionTable::Exists(const std::string& folder) { return FileExists(CreditPath(folder)); }

absl::StatusOr<std::unique_ptr<SessionTable>> SessionTable::Open(const Options& options) {
  std::unique_ptr<SessionTable> table(new SessionTable(options));
  const auto slots = static_cast<uint32_t>(SessionSlots(options.members));
  const bool has_sessions = FileExists(table->path());
  ASSIGN_OR_RETURN(table->credit_, CreditFile::Open({CreditPath(options.folder), options.run_id, slots, options.members,
                                                     /*must_have_content=*/has_sessions, options.sync}));
  RETURN_IF_ERROR(table->Load());
  return table;
}

absl::StatusOr<v1::ReplaySessions> SessionTable::Read(const std::string& folder) {
  const std::string path = SessionsPath(folder);
  ASSIGN_OR_RETURN(const std::string content, ReadFramedFile(kFormat, path));
  v1::ReplaySessions stored;
  if (stored.ParseFromString(content)) return stored;
  return absl::DataLossError(absl::StrCat("file ", path, ": damaged; start a new run folder"));
}

std::vector<uint32_t> SessionTable::Invalid(const v1::ReplaySessions& sessions, uint32_t members) {
  std::set<uint32_t> numbers, slots;
  std::vector<uint32_t> invalid;
  for (const v1::ReplaySession& session : sessions.living()) {
    const auto& served = session.assignment().members();
    const bool members_valid = std::all_of(
        served.begin(), served.end(), [members](const v1::MemberLanes& entry) { return entry.member() < members; });
    const bool number_is_new = numbers.insert(session.session()).second;
    const bool slot_is_new = slots.insert(session.slot()).second;
    if (members_valid && number_is_new && slot_is_new && session.session() < sessions.next_session() &&
        session.slot() < SessionSlots(members) && session.assignment().number() > 0 &&
        session.environments() <= kMaxEnvironments)
      continue;
    invalid.push_back(session.session());
  }
  return invalid;
}

absl::Status SessionTable::Load() {
  const Clock::Time now = options_.clock->Now();
  const absl::StatusOr<v1::ReplaySessions> read = Read(options_.folder);
  if (absl::IsNotFound(read.status())) return absl::OkStatus();
  RETURN_IF_ERROR(read.status());
  empty_ = false;
  const v1::ReplaySessions& stored = *read;
  if (stored.run_id() != options_.run_id) {
    return absl::FailedPreconditionError(absl::StrCat("file ", path(), ": belongs to run \"", stored.run_id(),
                                                      "\", not to \"", options_.run_id, "\"; start a new run folder"));
  }
  if (const std::vector<uint32_t> invalid = Invalid(stored, options_.members); !invalid.empty()) {
    return absl::DataLossError(
        absl::StrCat("file ", path(), ": session ", invalid.front(), " is invalid; start a new run folder"));
  }
  next_session_ = stored.next_session();
  starts_.assign(stored.starts().begin(), stored.starts().end());
  actors_.insert(stored.actors().begin(), stored.actors().end());
  for (const v1::ReplaySession& from : stored.living()) {
    Session& session = living_[from.session()];
    session.number = from.session();
    session.actor = from.actor();
    session.incarnation = from.incarnation();
    session.environments = from.environments();
    session.slot = from.slot();
    session.assignment = from.assignment().number();
    session.lanes.resize(options_.members);
    session.served_since.resize(options_.members);
    for (const v1::MemberLanes& member : from.assignment().members()) {
      session.lanes[member.member()] = member.lanes();
      session.served_since[member.member()] = session.assignment;
    }
    session.last_seen = session.last_row = now;
    session.min_policy_update.resize(options_.members);
    session.last_policy.resize(options_.members, kNoRow);
    RETURN_IF_ERROR(credit_->Load(session.slot));
  }
  undivided_ = true;  // sessions that were absent count again
  return absl::OkStatus();
}

absl::Status SessionTable::Save() const {
  v1::ReplaySessions stored;
  stored.set_run_id(options_.run_id);
  stored.set_next_session(next_session_);
  for (const uint64_t start : starts_) stored.add_starts(start);
  for (const auto& [number, actor] : actors_) (*stored.mutable_actors())[number] = actor;
  for (const auto& [number, session] : living_) {
    v1::ReplaySession* to = stored.add_living();
    to->set_session(number);
    to->set_actor(session.actor);
    to->set_incarnation(session.incarnation);
    to->set_environments(session.environments);
    to->set_slot(session.slot);
    *to->mutable_assignment() = session.Assigned();
  }
  return WriteFramedFile(kFormat, path(), stored.SerializeAsString());
}

absl::Status SessionTable::CheckStart(const std::string& part, uint64_t start) const {
  return replay::CheckStart(part, start, starts_);
}

absl::Status SessionTable::CheckCreditStart() const {
  ASSIGN_OR_RETURN(const uint64_t start, credit_->start());
  return CheckStart("file " + CreditPath(options_.folder), start);
}

absl::Status SessionTable::Start(uint64_t start) {
  if (starts_.size() >= 2 * kKeptStarts) starts_.erase(starts_.begin(), starts_.end() - kKeptStarts);
  starts_.push_back(start);
  const absl::Status saved = Save();
  if (!saved.ok()) {
    starts_.pop_back();
    if (!absl::IsResourceExhausted(saved) || starts_.empty()) return saved;
  }
  credit_->SetStart(starts_.back());  // the file of sessions knows it
  return absl::OkStatus();
}

absl::StatusOr<Session*> SessionTable::Find(uint32_t number) {
  const auto found = living_.find(number);
  if (found != living_.end()) return &found->second;
  if (replaced_.contains(number)) return Replaced(ActorOf(number));
  return absl::NotFoundError(absl::StrCat("session ", number, " ended; register again"));
}

absl::StatusOr<Session*> SessionTable::Find(uint32_t number, uint64_t incarnation) {
  ASSIGN_OR_RETURN(Session * found, Find(number));
  if (found->incarnation != incarnation) return Replaced(found->actor);
  return found;
}

std::string SessionTable::ActorOf(uint32_t number) const {
  const auto found = actors_.find(number);
  return found == actors_.end() ? "" : found->second;
}

// Each actor gets the first consecutive members without a session, as many as it has environments.
absl::Status SessionTable::AssignLockstep(Session* session) const {
  std::vector<bool> taken(options_.members);
  for (const auto& [number, living] : living_) {
    for (const uint32_t member : living.members()) taken[member] = true;
  }
  const auto first = std::find(taken.begin(), taken.end(), false);
  const auto end = std::find(first, taken.end(), true);
  if (first == taken.end()) {
    return absl::ResourceExhaustedError(absl::StrCat("actor ", session->actor,
                                                     ": lockstep has one environment per member, and all ",
                                                     options_.members, " members already have an actor"));
  }
  const auto begin = static_cast<uint32_t>(first - taken.begin());
  const auto count = static_cast<uint32_t>(std::min<int64_t>(end - first, session->environments));
  for (uint32_t member = begin; member < begin + count; ++member) {
    session->lanes[member] = 1;
    session->served_since[member] = session->assignment;
  }
  session->number = begin + 1;
  return absl::OkStatus();
}

bool SessionTable::Divide() {
  if (options_.lockstep) return false;
  std::vector<SessionShare> shares;
  for (const auto& [number, session] : living_)
    shares.push_back({session.present ? session.environments : 0, session.lanes});
  const std::vector<std::vector<uint32_t>> divided = DivideMembers(options_.members, shares);
  bool changed = false;
  size_t next = 0;
  for (auto& [number, session] : living_) {
    const std::vector<uint32_t>& lanes = divided[next++];
    if (session.lanes == lanes) continue;
    changed = true;
    session.lanes = lanes;
    ++session.assignment;
    ++session.revision;
    for (uint32_t member = 0; member < options_.members; ++member) {
      if (lanes[member] > 0 && !session.serves(member)) session.served_since[member] = session.assignment;
    }
  }
  return changed;
}

bool SessionTable::UpdatePresence() {
  const Clock::Time now = options_.clock->Now();
  bool changed = false;
  for (auto& [number, session] : living_) {
    const bool present = session.connected() || now - session.last_seen <= options_.lease / 3;
    changed = changed || present != session.present;
    session.present = present;
  }
  return changed;
}

std::vector<uint32_t> SessionTable::Release(Session* session, const v1::Release& release) {
  std::vector<uint32_t> released;
  if (release.assignment() != session->assignment) return released;
  for (const uint32_t member : release.members()) {
    if (!session->serves(member) || session->lanes[member] > 0) continue;
    session->served_since[member] = 0;
    const uint64_t next = credit(*session, member).next_sequence;
    SetCredit(*session, member, {next, next});
    released.push_back(member);
  }
  if (!released.empty()) ++session->revision;
  return released;
}

absl::StatusOr<uint32_t> SessionTable::FreeSlot() const {
  std::vector<bool> used(credit_->slots());
  for (const auto& [number, session] : living_) used[session.slot] = true;
  const auto free = std::find(used.begin(), used.end(), false);
  if (free == used.end())
    return absl::ResourceExhaustedError(absl::StrCat(living_.size(), " sessions are live; that is the maximum"));
  return static_cast<uint32_t>(free - used.begin());
}

absl::StatusOr<Session*> SessionTable::Register(const std::string& actor, uint64_t incarnation, uint32_t environments,
                                                std::vector<uint32_t>* ended) {
  RETURN_IF_ERROR(CheckName(actor));
  if (environments == 0 || environments > kMaxEnvironments) {
    return absl::InvalidArgumentError(
        absl::StrCat("environments of actor ", actor, ": ", environments, " is not in 1 to ", kMaxEnvironments));
  }
  const auto same =
      std::find_if(living_.begin(), living_.end(), [&](const auto& entry) { return entry.second.actor == actor; });
  if (same != living_.end()) {
    Session& session = same->second;
    if (session.incarnation == incarnation) return &session;
    if (session.connected()) return Taken(actor);
    if (options_.lockstep) {  // the new process continues the session
      const uint64_t former = std::exchange(session.incarnation, incarnation);
      const absl::Status saved = Save();
      if (!saved.ok()) {
        session.incarnation = former;
        return saved;
      }
      session.stream = 0;
      session.last_seen = options_.clock->Now();
      return &session;
    }
    ended->push_back(session.number);
    replaced_.insert(session.number);
    living_.erase(same);
    unsaved_ = undivided_ = true;
  }
  Session session;
  session.actor = actor;
  session.incarnation = incarnation;
  session.environments = environments;
  session.last_seen = session.last_row = options_.clock->Now();
  return Begin(std::move(session));
}

absl::StatusOr<Session*> SessionTable::Begin(Session session) {
  session.number = next_session_;
  session.lanes.resize(options_.members);
  session.served_since.resize(options_.members);
  session.min_policy_update.resize(options_.members);
  session.last_policy.resize(options_.members, kNoRow);
  if (options_.lockstep) RETURN_IF_ERROR(AssignLockstep(&session));
  ASSIGN_OR_RETURN(session.slot, FreeSlot());
  next_session_ = std::max(next_session_, session.number + 1);
  credit_->Clear(session.slot);
  // Before Save: a saved session must not inherit another one's credit.
  if (options_.sync) RETURN_IF_ERROR(credit_->Sync(session.slot));
  const std::map<uint32_t, Session> before = living_;
  const uint32_t number = session.number;
  actors_[number] = session.actor;
  living_[number] = std::move(session);
  Divide();
  while (actors_.size() > kKeptNames + living_.size()) ForgetName();
  const absl::Status saved = Save();
  if (!saved.ok()) {  // a retry must not get a session, nor an actor a member, that is lost in a restart
    living_ = before;
    actors_.erase(number);
    return saved;
  }
  unsaved_ = undivided_ = false;
  empty_ = false;
  return &living_[number];
}

absl::StatusOr<bool> SessionTable::Expire(std::vector<uint32_t>* ended) {
  if (options_.lockstep) return false;
  const Clock::Time now = options_.clock->Now();
  for (const auto& [number, session] : living_) {
    if (session.silent || (!session.connected() && now - session.last_seen > options_.lease)) ended->push_back(number);
  }
  for (const uint32_t number : *ended) living_.erase(number);
  const bool presence = UpdatePresence();
  unsaved_ = unsaved_ || !ended->empty();
  undivided_ = undivided_ || presence || !ended->empty();
  if (!unsaved_ && !undivided_) return false;
  const std::map<uint32_t, Session> before = living_;
  const bool divided = undivided_ && Divide();
  const absl::Status saved = divided || unsaved_ ? Save() : absl::OkStatus();
  if (!saved.ok()) {  // the next call tries again
    living_ = before;
    return saved;
  }
  unsaved_ = undivided_ = false;
  return divided;
}

void SessionTable::ForgetName() {
  const auto oldest =
      std::find_if(actors_.begin(), actors_.end(), [&](const auto& entry) { return !living_.contains(entry.first); });
  if (oldest != actors_.end()) {
    replaced_.erase(oldest->first);
    actors_.erase(oldest);
  }
}

uint64_t SessionTable::Outstanding(uint32_t member) const {
  uint64_t rows = 0;
  for (const auto& [number, session] : living_) {
    if (!session.serves(member)) continue;
    const CreditFile::Entry& entry = credit(session, member);
    rows += entry.limit - std::min(entry.limit, entry.next_sequence);
  }
  return rows;
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
