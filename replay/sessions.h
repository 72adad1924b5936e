// The sessions of actors: the members that each serves, and its lease. Survives restarts of the replay.
//
// A session is one start (incarnation) of one actor; a new incarnation of the same name ends the old session, unless
// that has a stream. A session without a stream for longer than the lease is ended, and so is a silent one
// (replay/waits.h). Numbers are never reused.
//
// The members are divided over the sessions (replay/division.h) when one comes or goes. A session without a stream for
// a third of the lease counts as absent: it gets no lanes until it is back. A member that leaves a session remains
// served by it, with 0 lanes, until the actor releases it or the session ends. A division counts once it is in the
// file.
//
// In lockstep each actor name has one session, which never ends and keeps its members; its number follows from its
// first member, so that equal runs get equal numbers. Not thread-safe (the store's mutex guards it). Register and
// Expire write a small file and block on the disk.
#ifndef DATACOM_REPLAY_SESSIONS_H_
#define DATACOM_REPLAY_SESSIONS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "datacom/v1/replay.pb.h"
#include "datacom/v1/replay_state.pb.h"
#include "replay/credit_file.h"

namespace datacom::replay {

// At least so many names of ended sessions are kept; their rows are overwritten long before.
inline constexpr int kKeptNames = 4096;
inline constexpr uint64_t kNoRow = UINT64_MAX;  // Session::last_policy

struct Session {
  uint32_t number = 0;
  std::string actor;
  uint64_t incarnation = 0;
  uint32_t environments = 0;
  uint32_t slot = 0;                        // place in the credit file
  std::vector<uint32_t> lanes;              // per member of the run; 0 also for a member that leaves
  std::vector<uint64_t> served_since;       // per member: the assignment that brought it; 0 = not served
  uint64_t assignment = 1;                  // number of the newest assignment
  uint64_t revision = 1;                    // grows with each change of `assignment` or of the members that are served
  bool present = true;                      // counts when members are divided
  uint64_t stream = 0;                      // number of the stream that may insert; 0 = none
  Clock::Time last_seen{};                  // when the stream was lost; valid without a stream
  Clock::Time last_row{};                   // when it last inserted
  Clock::Time no_credit_since{};            // valid with has_no_credit
  bool silent = false;                      // to be ended: others wait for rows that it could send
  bool has_no_credit = false;               // connected, but all credit is used up
  std::string waiting_for;                  // message for people, once the wait is longer than expected
  uint64_t rows = 0;                        // rows inserted since this process started
  std::vector<uint64_t> min_policy_update;  // per member of the run: oldest policy that the newest credit allows
  std::vector<uint64_t> last_policy;        // per member of the run: policy of its newest row; kNoRow before the first

  bool connected() const { return stream != 0; }
  bool serves(uint32_t member) const { return member < served_since.size() && served_since[member] != 0; }
  std::vector<uint32_t> members() const;  // the members that it serves
  // Environments that act for a served member, at least one: they finish their episodes when the member leaves.
  uint32_t environments_of(uint32_t member) const { return lanes[member] > 0 ? lanes[member] : 1; }
  v1::Assignment Assigned() const;
};

class SessionTable {
 public:
  struct Options {
    std::string folder;
    std::string run_id;
    uint32_t members = 1;
    bool lockstep = false;
    bool sync = false;  // see CreditFile
    Clock::Time::duration lease{};
    const Clock* clock = nullptr;
  };
  static absl::StatusOr<std::unique_ptr<SessionTable>> Open(const Options& options);
  static bool Exists(const std::string& folder);  // whether Open was called on this folder before
  // The content of the file of sessions; NOT_FOUND when there is none.
  static absl::StatusOr<v1::ReplaySessions> Read(const std::string& folder);
  // The numbers of the living sessions that Open refuses in a run of so many members: number, slot, environments or
  // members are invalid, or an earlier session has the same number or slot.
  static std::vector<uint32_t> Invalid(const v1::ReplaySessions& sessions, uint32_t members);
  // Whether no replay has started yet: there was no file of sessions.
  bool empty() const { return empty_; }
  bool lockstep() const { return options_.lockstep; }
  const std::vector<uint64_t>& starts() const { return starts_; }  // replay/starts.h
  absl::Status CheckStart(const std::string& part, uint64_t start) const;
  absl::Status CheckCreditStart() const;
  // Adds this start to the file of sessions, then to the credit. On a full disk the start before counts as this one, if
  // there is one. Blocks on the disk.
  absl::Status Start(uint64_t start);
  uint32_t next_session() const { return next_session_; }  // larger than all numbers used so far

  // Returns the session of this start, and divides the members; a retry gets the same session. `ended` receives the
  // sessions that it replaced and that are already removed, also on an error. Errors: INVALID_ARGUMENT;
  // RESOURCE_EXHAUSTED (too many sessions, or all members are served in lockstep); disk errors (nothing is registered).
  absl::StatusOr<Session*> Register(const std::string& actor, uint64_t incarnation, uint32_t environments,
                                    std::vector<uint32_t>* ended);
  // Removes sessions whose lease ran out, and divides the members when sessions came, went or were away for too long.
  // `ended` receives the removed sessions, also on an error. Returns whether assignments changed. Errors are disk
  // errors: the assignments are as before, and the next call tries again.
  absl::StatusOr<bool> Expire(std::vector<uint32_t>* ended);
  // Removes members that have left the session (proto Release), and their unused credit. Returns those removed. A crash
  // may undo it; then the actor releases them again.
  std::vector<uint32_t> Release(Session* session, const v1::Release& release);

  // NOT_FOUND: the session ended. ALREADY_EXISTS: another start of the same actor replaced it.
  absl::StatusOr<Session*> Find(uint32_t number);
  absl::StatusOr<Session*> Find(uint32_t number, uint64_t incarnation);
  // Name of the session's actor, living or among the latest 4096; empty for another number.
  std::string ActorOf(uint32_t number) const;
  std::map<uint32_t, Session>& living() { return living_; }
  const std::map<uint32_t, Session>& living() const { return living_; }
  const CreditFile::Entry& credit(const Session& session, uint32_t member) const {
    return credit_->at(session.slot, member);
  }
  void SetCredit(const Session& session, uint32_t member, const CreditFile::Entry& entry) {
    credit_->Set(session.slot, member, entry);
  }
  // The credit that may be sent: it is durable, and no release has returned it since.
  CreditFile::Entry durable_credit(const Session& session, uint32_t member) const {
    CreditFile::Entry entry = credit_->durable(session.slot, member);
    entry.limit = std::min(entry.limit, credit(session, member).limit);
    return entry;
  }
  CreditFile* credit_file() { return credit_.get(); }
  // Rows granted to living sessions but not committed.
  uint64_t Outstanding(uint32_t member) const;

 private:
  explicit SessionTable(const Options& options) : options_(options) {}
  absl::Status Load();
  absl::Status Save() const;
  std::string path() const;
  absl::Status AssignLockstep(Session* session) const;
  bool Divide();  // divides the members over the living sessions; returns whether assignments changed
  bool UpdatePresence();
  absl::StatusOr<uint32_t> FreeSlot() const;
  absl::StatusOr<Session*> Begin(Session session);  // adds it, divides, saves; on an error nothing has changed
  void ForgetName();                                // forgets the oldest session that ended

  const Options options_;
  std::unique_ptr<CreditFile> credit_;
  std::map<uint32_t, Session> living_;
  std::map<uint32_t, std::string> actors_;  // names by session, including the latest ended ones
  std::set<uint32_t> replaced_;             // sessions that newer starts of their actors have ended in this process
  std::vector<uint64_t> starts_;            // the newest last
  bool unsaved_ = false;                    // whether the file is out of date
  bool undivided_ = false;                  // whether sessions came or went since the members were divided
  bool empty_ = true;
  uint32_t next_session_ = 1;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_SESSIONS_H_
// SPDX-License-Identifier: Apache-2.0
