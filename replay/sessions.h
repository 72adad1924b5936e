// The sessions of actors: the members that each serves, and its lease. Survives restarts of the replay.
//
// A session is one start (incarnation) of one actor; a new incarnation of the same name ends the old session. A session
// without a stream for longer than the lease is ended. Numbers are never reused. In lockstep each actor name has one
// session, which never ends; its number follows from its first member, so that equal runs get equal numbers. Not
// thread-safe (the store's mutex guards it). Register and Expire write a small file and block on the disk.
#ifndef DATACOM_REPLAY_SESSIONS_H_
#define DATACOM_REPLAY_SESSIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "datacom/v1/replay_state.pb.h"
#include "replay/credit_file.h"

namespace datacom {

struct Session {
  uint32_t number = 0;
  std::string actor;
  uint64_t incarnation = 0;
  uint32_t environments = 0;
  uint32_t first_member = 0, member_count = 0;
  uint32_t slot = 0;                        // in the credit file
  uint64_t stream = 0;                      // number of the stream that may insert; 0 = none
  Clock::Time last_seen{};                  // while there is no stream: when it was lost
  Clock::Time last_row{};                   // when it last inserted
  Clock::Time no_credit_since{};            // valid with has_no_credit
  bool has_no_credit = false;               // connected, but all credit is used up
  std::string waiting_for;                  // message for people, once the wait is longer than expected
  uint64_t rows = 0;                        // inserted since this process started
  std::vector<uint64_t> min_policy_update;  // of the newest credit, per served member

  bool connected() const { return stream != 0; }
  bool serves(uint32_t member) const { return member >= first_member && member - first_member < member_count; }
  // Environments per member in this session, at least one.
  uint32_t environments_per_member() const { return environments <= member_count ? 1 : environments / member_count; }
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
  static bool Exists(const std::string& folder);  // Open was called on this folder before
  // What the file of sessions holds; NOT_FOUND when there is none.
  static absl::StatusOr<v1::ReplaySessions> Read(const std::string& folder);
  // Whether no actor has registered yet: there is no file of sessions.
  bool empty() const { return empty_; }
  uint32_t next_session() const { return next_session_; }  // larger than all numbers used so far

  // Returns the session of this start; a retry gets the same one. `ended` receives the sessions that it replaced and
  // that are already removed, also on an error. Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED (too many sessions, or
  // all members are served in lockstep); disk errors (nothing is registered).
  absl::StatusOr<Session*> Register(const std::string& actor, uint64_t incarnation, uint32_t environments,
                                    std::vector<uint32_t>* ended);
  // Removes sessions whose lease ran out. When some member has had no session for longer than a lease, removes all
  // sessions, so that their actors register again for larger shards. `ended` receives the removed sessions, also on an
  // error. Errors are disk errors; the next call writes again.
  absl::Status Expire(std::vector<uint32_t>* ended);

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
  // The credit that may be sent.
  const CreditFile::Entry& durable_credit(const Session& session, uint32_t member) const {
    return credit_->durable(session.slot, member);
  }
  CreditFile* credit_file() { return credit_.get(); }
  // Rows granted to living sessions but not committed.
  uint64_t Outstanding(uint32_t member) const;

 private:
  explicit SessionTable(const Options& options) : options_(options) {}
  absl::Status Load();
  absl::Status Save() const;
  std::string path() const;
  absl::Status Assign(Session* session);   // first_member, member_count
  std::vector<uint32_t> Coverage() const;  // number of sessions per member
  absl::StatusOr<uint32_t> FreeSlot() const;
  void ForgetName();  // of the oldest session that ended

  const Options options_;
  std::unique_ptr<CreditFile> credit_;
  std::map<uint32_t, Session> living_;
  std::map<uint32_t, std::string> actors_;  // by session, including the latest ended ones
  std::set<uint32_t> replaced_;             // ended by a newer start of their actor while this process ran
  bool unsaved_ = false;                    // the file is out of date
  bool empty_ = true;
  uint32_t next_session_ = 1;
  uint32_t shard_size_ = 0;
  Clock::Time covered_at_{};  // when every member last had a session
};

}  // namespace datacom

#endif  // DATACOM_REPLAY_SESSIONS_H_
