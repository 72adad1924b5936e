// The replay without transport: the rows of every member, sessions, credit and draws (proto/datacom/v1/replay.proto).
// Tables holds the state, GroupCommit brings it to the disk, Draws answers the learner, Statistics counts; Store checks
// and stores what actors send, and guards all of them.
//
// With replay.sync rows and credit are committed in groups (replay/group_commit.h). Insert stages rows and returns; one
// Commit writes all rows and credit that wait, with the same number of syncs for one chunk as for many, and without the
// mutex. Acknowledgements, credit and draws know only what is committed, so no peer is ever ahead of the disk. Commit
// belongs to a thread of the service: Insert and Announce run in callbacks of gRPC, which must not block, and a caller
// that committed for all others could not read its own stream during that time.
//
// Thread-safe: one mutex guards everything. Calls take microseconds, except that these block on the disk: Open, Commit,
// beginning and ending a session (a small file is written), and, with replay.sync, an Insert that finds
// Options::guard_rows rows staged. AwaitStaged waits for other calls; Commit, Insert and Register may wait for a group
// that another thread writes. The service repeats a call after a change.
// Time comes from Options::clock; only leases, rates and wait messages depend on it.
#ifndef DATACOM_REPLAY_STORE_H_
#define DATACOM_REPLAY_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/replay.pb.h"
#include "replay/counters.h"
#include "replay/draws.h"
#include "replay/group_commit.h"
#include "replay/settings.h"
#include "replay/tables.h"

namespace datacom::replay {

// The state that a stream has sent to its actor; Progress adds the rest.
struct InsertProgress {
  std::vector<uint64_t> next_sequence, limit;  // per member of the run
  std::vector<uint64_t> served_since;          // per member: the assignment that these values belong to; 0 = not served
  uint64_t revision = 0;                       // Session::revision
  std::string waiting_for;
  bool finished = false;
  bool opened = false;
};

class Store {
 public:
  // Creates or recovers the folder. Errors: those of Tables::Open; INVALID_ARGUMENT when a member's samples are
  // larger than kMaxDrawBytes.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const RowSchema& schema, const Options& options);

  // Calls for actors. A session that Register or Tick ended loses its stream: the next call for it returns the error of
  // SessionTable::Find.
  absl::StatusOr<v1::RegisterReply> Register(const std::string& actor, uint64_t incarnation, uint32_t environments);
  // Returns the number of the only stream that may insert for the session from now on; older streams no longer may.
  // NOT_FOUND and ALREADY_EXISTS as SessionTable::Find.
  absl::StatusOr<uint64_t> Connect(uint32_t session, uint64_t incarnation);
  void Disconnect(uint32_t session, uint64_t stream);
  // Commits the rows of the chunk that are new; with replay.sync, stages them. For an unacceptable chunk it adds a
  // Rejection to `reply` and returns OK. An error ends the stream: NOT_FOUND (the session ended), ALREADY_EXISTS
  // (another start replaced it), ABORTED (another stream took over), UNAVAILABLE (the disk failed).
  absl::Status Insert(uint32_t session, uint64_t stream, const v1::Chunk& chunk, v1::InsertReply* reply);
  // The session's actor is done with members that left (proto Release). Errors as Insert.
  absl::Status Release(uint32_t session, uint64_t stream, const v1::Release& release);
  // Adds to `reply` what changed since `sent`, and updates `sent`. Returns whether anything changed. Errors as Insert.
  absl::StatusOr<bool> Progress(uint32_t session, uint64_t stream, InsertProgress* sent, v1::InsertReply* reply);

  // Calls for the learner.
  void SetLearnerConnected(bool connected);
  // Call it with every request of a learner, whose start has this `incarnation`. ALREADY_EXISTS when a later start has
  // called; INVALID_ARGUMENT beyond the run's last update; FAILED_PRECONDITION, naming both positions, when the update
  // has seen more rows than the replay holds: the replay is older than the learner's checkpoint.
  absl::Status Announce(uint64_t completed_update, uint32_t incarnation = 0);
  // The learner has written all records of the run. With Options::end_with_run it blocks once on the disk. Errors as
  // Announce, and FAILED_PRECONDITION when the run is not complete.
  absl::Status Finish(uint64_t completed_update, uint32_t incarnation);
  bool WasFinished() const;           // by a former process, with Options::end_with_run; blocks on the disk
  bool Ready(uint64_t update) const;  // every member has n(update) rows
  // INVALID_ARGUMENT beyond the last update; FAILED_PRECONDITION when rows are overwritten; UNAVAILABLE when not Ready,
  // or after the disk failed. It fills one reply with what comes after `place` and moves `place`; `more` says
  // whether anything is left.
  absl::Status Draw(uint64_t update, v1::DrawReply* reply, DrawPlace* place);
  absl::Status Draw(uint64_t update, v1::DrawReply* reply) {  // the first reply
    DrawPlace place;
    return Draw(update, reply, &place);
  }
  std::string DescribeMissingRows(uint64_t update) const;  // which members lack rows for the draw, for people

  absl::Status ReadRange(uint32_t member, uint64_t from, uint64_t to, v1::RowRange* range) const;
  void Info(v1::ReplayInfo* info) const;
  // Ends expired sessions and updates wait messages; call a few times per second. Errors are disk errors.
  absl::Status Tick();
  // With replay.sync: returns once all that was inserted and granted before the call is on the disk. UNAVAILABLE after
  // the disk failed: what was not acknowledged is lost or committed, which the next Open finds out.
  absl::Status Commit();
  // Waits until something must be committed. False without replay.sync, after StopCommits, and after the disk failed.
  bool AwaitStaged();
  void StopCommits();
  // The number of the group that is written now, from 1; 0 when there is none. It does not change while a disk hangs.
  uint64_t GroupInProgress() const;
  // Not OK after the disk failed: inserts and draws fail, committed rows stay readable.
  absl::Status health() const;
  bool Complete() const;  // all rows are committed and the last update is done
  StoreCounters counters() const;
  const RowSchema& schema() const { return schema_; }
  const Options& options() const { return options_; }
  uint64_t start() const { return start_; }  // the newest start (replay/starts.h)
  absl::Status CheckStart(const std::string& part, uint64_t start) const;

 private:
  Store(const RowSchema& schema, const Options& options, std::unique_ptr<Tables> tables);
  // Grants credit that rows, updates or sessions have made possible.
  void Grant(uint32_t member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GrantAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndSessions(const std::vector<uint32_t>& ended, bool divided) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Session*> FindStream(uint32_t session, uint64_t stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Why the chunk is rejected.
  absl::Status CheckChunk(const Session& session, const v1::Chunk& chunk) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckCredit(const Session& session, const v1::Chunk& chunk) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the chunk's rows, those that are stored already.
  uint64_t KnownRows(const Session& session, const v1::Chunk& chunk) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reject(const v1::Chunk& chunk, const absl::Status& why, v1::InsertReply* reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Commits the rows of [next sequence, end of the chunk) for which the member's ring has room, or stages them.
  absl::Status StoreRows(Session* session, const v1::Chunk& chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RowSchema schema_;
  const Options options_;
  mutable Mutex mutex_;
  const std::unique_ptr<Tables> tables_ ABSL_PT_GUARDED_BY(mutex_);
  const uint64_t start_;
  GroupCommit commit_ ABSL_GUARDED_BY(mutex_);
  Draws draws_ ABSL_GUARDED_BY(mutex_);
  Statistics statistics_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_stream_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_STORE_H_
// SPDX-License-Identifier: Apache-2.0
