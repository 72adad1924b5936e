// What the replay keeps of one member: the ring of rows, the ring of copies of its failures (rows with cost > 0, which
// so outlive the main ring), its episodes. Failures and episodes are derived from rows and made whole again when
// opened. Not thread-safe (the store's mutex guards it). Append with sync blocks on the disk.
#ifndef DATACOM_REPLAY_MEMBER_TABLE_H_
#define DATACOM_REPLAY_MEMBER_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rows/replay_layout.h"
#include "common/rows/row_schema.h"
#include "datacom/v1/replay.pb.h"
#include "replay/episodes.h"
#include "replay/ring.h"
#include "replay/sampler.h"

namespace datacom {

class MemberTable {
 public:
  struct Options {
    std::string path;  // prefix of its two files
    std::string run_id;
    uint32_t member = 0;  // for messages
    ReplayLayout layout;  // row_bytes are the schema's
    uint32_t batch = 0, failure_batch = 0;
    double discount = 0.99;
    uint64_t run_seed = 0, member_seed = 0;
    bool episode_rows = false;  // episodes carry observations and costs ...
    uint64_t delta_warmup = 0;  // ... once last_row - 1 exceeds this
    bool sync = false;
  };
  static absl::StatusOr<std::unique_ptr<MemberTable>> Open(const RowSchema& schema, const Options& options);

  // No file of rows was there before this Open.
  bool fresh() const { return rows_->fresh(); }
  uint64_t inserted() const { return rows_->cursor(); }
  uint64_t failures() const {
    return failures_->cursor() < options_.layout.failure_capacity ? failures_->cursor()
                                                                  : options_.layout.failure_capacity;
  }
  uint64_t held() const { return rows_->cursor() - rows_->first(); }
  const EpisodeTracker& episodes() const { return episodes_; }
  EpisodeTracker* mutable_episodes() { return &episodes_; }
  // next sequence of a session as its kept rows tell; 0 when it has none.
  uint64_t NextSequence(uint32_t session) const;

  // Commits rows [from, count) of a chunk (columns as in proto Chunk, `count` rows, already validated); the row at
  // `from` has `sequence` in its session. On an error of the disk nothing beyond the rows already committed is
  // promised.
  absl::Status Append(uint32_t session, uint64_t sequence, const std::string& columns, uint32_t count, uint32_t from);

  // Batches and episodes of an update whose rows are all there (`seen` = n(update), `seen_before` = n(update - 1)).
  // FAILED_PRECONDITION naming the rows when some were overwritten.
  absl::Status Draw(uint64_t update, uint64_t seen, uint64_t seen_before, v1::MemberBatch* batch);
  // As proto ReadRange says, for one message: rows [from, min(to, from + what fits in about 1 MiB)). `sessions`: those
  // the rows are of, each once.
  absl::Status ReadRange(uint64_t from, uint64_t to, v1::RowRange* range, std::vector<uint32_t>* sessions) const;
  // float32 [length, action_dim] of an open episode, as stored.
  std::string Actions(const EpisodeSummary& episode) const;

 private:
  MemberTable(const RowSchema& schema, const Options& options);
  absl::Status Recover();
  // Writes rows [from, from + rows) of a chunk of `count` as rows `number`, ..., which lie one after the other in the
  // ring.
  void Transpose(const std::string& columns, uint32_t count, uint32_t from, uint32_t rows, uint64_t number,
                 uint32_t session, uint64_t sequence);
  void Index(uint64_t from, uint64_t to);  // copies failures of rows [from, to) beyond the failure cursor
  absl::Status CheckReadable(uint64_t update, uint64_t seen) const;
  uint64_t FailuresBelow(uint64_t row) const;  // failures among rows [0, row)
  // Appends the learning columns of `count` rows.
  void Gather(const std::vector<const char*>& rows, std::string* columns) const;
  absl::Status AddEpisode(const EpisodeSummary& summary, v1::MemberBatch* batch) const;
  template <typename Visit>
  void VisitRows(const EpisodeSummary& episode, const Visit& visit) const;

  const RowSchema schema_;
  const RowLayout layout_;
  const Options options_;
  std::vector<size_t> offsets_;  // of stored columns
  std::unique_ptr<Ring> rows_;
  std::unique_ptr<Ring> failures_;  // record: u64 row number, row
  EpisodeTracker episodes_;
  std::map<uint32_t, uint64_t> next_sequences_;  // from rows, filled by Recover
  uint64_t pending_failures_ = 0;                // failure records written, committed after their rows
  std::vector<uint64_t> numbers_;                // scratch of draws
  std::vector<const char*> pointers_;
};

}  // namespace datacom

#endif  // DATACOM_REPLAY_MEMBER_TABLE_H_
