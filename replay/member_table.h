// The data of one member: a ring of rows, a ring with copies of its failures (rows with cost > 0), which outlive the
// rows in the main ring, and its episodes. Failures and episodes are derived from rows; Open restores them.
//
// Staged rows are written but not committed: only staged() and the episodes know them, draws do not see them. Not
// thread-safe (the store's mutex guards it), except that SyncRows and SyncCursors run without the mutex, by one thread
// at a time. Open, SyncRows and SyncCursors, and Commit with `sync`, block on the disk.
#ifndef DATACOM_REPLAY_MEMBER_TABLE_H_
#define DATACOM_REPLAY_MEMBER_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transitions/replay_layout.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/replay.pb.h"
#include "replay/episodes.h"
#include "replay/ring.h"
#include "replay/row_order.h"
#include "replay/settings.h"

namespace datacom::replay {

// Counters of the ring of rows: the episodes that ended, and the failures, within the rows [0, kCountedUpTo). Of both
// rings: the newest start of the replay (replay/starts.h).
enum RowsCounter { kFinishedEpisodes = 0, kCountedUpTo = 1, kFailures = 2, kStart = 3 };

class MemberTable {
 public:
  // Creates or opens the files of this member in options.folder. DATA_LOSS, naming the file, when it lacks copies of
  // failures whose rows are overwritten. Does not change a file that holds something; call Complete before other
  // functions.
  static absl::StatusOr<std::unique_ptr<MemberTable>> Open(const RowSchema& schema, const Options& options,
                                                           uint32_t member);

  // FAILED_PRECONDITION, naming the file, if its start is none of `known` (replay/starts.h).
  absl::Status CheckStarts(const std::vector<uint64_t>& known) const;
  uint64_t start() const { return rows_->counter(kStart); }  // the newest one that the rows name
  // Drops copies of rows that were not committed, adds the copies that a crash has left out, and names this start.
  absl::Status Complete(uint64_t start);

  uint64_t inserted() const { return rows_->cursor(); }  // rows committed since the start of the run
  uint64_t staged() const { return staged_; }            // rows committed or waiting for a commit
  uint64_t room() const { return rows_->guard() - (staged_ - rows_->cursor()); }  // rows that may be staged now
  uint64_t failures() const { return std::min(failures_->cursor(), layout_.failure_capacity); }
  uint64_t held() const { return rows_->cursor() - rows_->first(); }
  const EpisodeTracker& episodes() const { return episodes_; }
  EpisodeTracker* mutable_episodes() { return &episodes_; }
  void SetFault(const std::string& fault) {  // the first one stays
    if (fault_.empty()) fault_ = fault;
  }
  // Whether rows [from, count) of a chunk can follow the rows of this session. The errors of RowOrder::Check.
  absl::Status CheckOrder(uint32_t session, const std::string& columns, uint32_t count, uint32_t from) {
    return order_.Check(episodes_, session, columns, count, from);
  }
  // Next sequence of a session according to the rows that Open found; 0 when it had none.
  uint64_t NextSequence(uint32_t session) const;

  // The largest session number among the rows that Open found; 0 without rows.
  uint32_t LastSession() const { return next_sequences_.empty() ? 0 : next_sequences_.rbegin()->first; }

  // Stages rows [from, to) of a chunk (columns as in proto Chunk, `count` rows, already validated); the row at `from`
  // has `sequence` in its session. REQUIRES to - from <= room().
  void Stage(uint32_t session, uint64_t sequence, const std::string& columns, uint32_t count, uint32_t from,
             uint32_t to);
  // Commits what is staged. After a disk error the table must be opened again; draws may then lack failures.
  absl::Status Commit();
  // The steps of Commit. Rows may be staged between Prepare and Finish; they belong to the next commit.
  bool Prepare();  // false: nothing is staged
  absl::Status SyncRows() const;
  absl::Status SyncCursors();
  void Finish();

  // Batches and episodes of an update whose rows are all committed (`seen` = n(update), `seen_before` = n(update - 1)).
  // FAILED_PRECONDITION naming the rows when some were overwritten.
  absl::Status Draw(uint64_t update, uint64_t seen, uint64_t seen_before, v1::MemberBatch* batch);
  struct RowInterval {
    uint64_t from = 0, to = 0;
  };
  // The same for an algorithm that takes all rows (seen_before, seen]; `rows` is the part of them that this reply
  // holds. Episodes come with the last part.
  absl::Status DrawNew(uint64_t update, uint64_t seen, uint64_t seen_before, RowInterval rows, v1::MemberBatch* batch);
  // One message of proto ReadRange: as many of rows [from, to) as fit in about 1 MiB. `sessions` receives the sessions
  // of these rows, each once.
  absl::Status ReadRange(uint64_t from, uint64_t to, v1::RowRange* range, std::vector<uint32_t>* sessions) const;
  // float32 [length, action_dim] of an open episode, as stored.
  std::string Actions(const EpisodeSummary& episode) const;
  // The memory of its last row; empty if the acting rule has none.
  std::string Memory(const EpisodeSummary& episode) const;

 private:
  MemberTable(const RowSchema& schema, const Options& options, uint32_t member);
  absl::Status Recover();
  // The failures among the rows [from, inserted()).
  uint64_t CountFailures(uint64_t from) const;
  // DATA_LOSS if `failures`, which are all that can be restored, are fewer than were made.
  absl::Status CheckAllRestored(uint64_t failures) const;
  // Writes rows [from, from + rows) of a chunk of `count` rows as row `number` and following, which must be contiguous
  // in the ring.
  void Transpose(const std::string& columns, uint32_t count, uint32_t from, uint32_t rows, uint64_t number,
                 uint32_t session, uint64_t sequence);
  void Index(uint64_t from, uint64_t to);  // copies the failures of rows [from, to) into the ring of failures
  absl::Status CheckReadable(uint64_t update, uint64_t oldest, uint64_t seen) const;
  absl::Status Overwritten(uint64_t update, const std::string& what) const;  // its error
  uint64_t FailuresBelow(uint64_t row) const;                                // failures among rows [0, row)
  // Replaces `columns` by the learning columns of `rows`.
  void Gather(const std::vector<const char*>& rows, std::string* columns) const;
  // What DrawNew and Draw say of the episodes that ended at rows (after, up_to].
  void AddEpisodes(uint64_t after, uint64_t up_to, uint64_t oldest, v1::MemberBatch* batch) const;
  // Leaves out observations and costs if the episode began before row `oldest`: a draw reads no row below it.
  void AddEpisode(const EpisodeSummary& summary, uint64_t oldest, v1::MemberBatch* batch) const;
  template <typename Visit>
  void VisitRows(const EpisodeSummary& episode, const Visit& visit) const;

  const RowSchema schema_;
  const RowOffsets offsets_;
  const ReplayLayout layout_;
  const Options::Member settings_;
  const uint32_t member_;   // for messages
  const std::string path_;  // prefix of its two files
  const uint32_t batch_, failure_batch_;
  const uint64_t run_seed_;
  std::vector<size_t> column_offsets_;  // per stored column
  std::unique_ptr<Ring> rows_;
  std::unique_ptr<Ring> failures_;  // record: u64 row number, row
  EpisodeTracker episodes_;
  std::string fault_;                            // proto MemberBatch
  std::map<uint32_t, uint64_t> next_sequences_;  // by session; Recover takes them from rows
  RowOrder order_;
  uint64_t staged_ = 0;
  uint64_t staged_failures_ = 0;  // records in failures_, including copies of staged rows
  uint64_t indexed_ = 0;          // rows whose failures were copied when Open found them
  struct {
    uint64_t rows = 0, failures = 0, finished_episodes = 0;
  } prepared_;
  std::vector<uint64_t> numbers_;  // scratch memory for draws
  std::vector<const char*> pointers_;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_MEMBER_TABLE_H_
// SPDX-License-Identifier: Apache-2.0
