// The learner's side of the store: which start of the learner draws, which updates it has completed, and its draws.
//
// A completed update is one of the run, and every member has the rows that it has seen; a draw is a pure function of
// its update (except MemberBatch::inserted and lanes). Not thread-safe (the store's mutex guards it); blocks nowhere.
#ifndef DATACOM_REPLAY_DRAWS_H_
#define DATACOM_REPLAY_DRAWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/replay.pb.h"
#include "replay/settings.h"
#include "replay/tables.h"

namespace datacom::replay {

inline constexpr uint32_t kMostSkippedStarts = 1000;  // of the learner, between two of its starts that draw
// Rows in one reply to a draw of new rows: few, because the mutex is held while they are copied.
inline constexpr uint64_t kNewRowsBytes = 1 << 20;

// How far the replies to a draw have come: they held all rows of the members before `member`, and of new rows `rows`
// rows of this member.
struct DrawPlace {
  uint32_t member = 0;
  uint64_t rows = 0;
};

class Draws {
 public:
  Draws(Tables* tables, const RowSchema& schema, const Options& options);

  // The functions of the same names of Store.
  void SetLearnerConnected(bool connected);
  absl::Status Announce(uint64_t completed_update, uint32_t incarnation);
  bool Ready(uint64_t update) const { return tables_.AllHold(tables_.schedule().RowsSeen(update)); }
  absl::Status Draw(uint64_t update, v1::DrawReply* reply, DrawPlace* place);

  uint64_t completed_update() const { return completed_update_; }
  bool complete() const { return completed_update_ >= tables_.schedule().LastUpdate(); }
  bool learner_connected() const { return learners_ > 0; }
  uint64_t waiting() const { return waiting_; }    // the update whose draw lacked rows; 0: none
  uint64_t answered() const { return answered_; }  // draws since this process started

 private:
  absl::Status DrawSample(uint64_t update, uint64_t seen, uint64_t before, v1::DrawReply* reply, DrawPlace* place);
  absl::Status DrawNewRows(uint64_t update, uint64_t seen, uint64_t before, v1::DrawReply* reply, DrawPlace* place);
  v1::MemberBatch* AddBatch(uint64_t update, uint32_t member, v1::DrawReply* reply) const;

  Tables& tables_;
  const bool new_rows_;
  const uint64_t sample_bytes_;    // most bytes of a member's samples
  const uint64_t rows_per_reply_;  // most rows in a reply to a draw of new rows
  uint64_t completed_update_ = 0;
  uint64_t waiting_ = 0;
  uint64_t answered_ = 0;
  int learners_ = 0;          // connected streams
  uint32_t incarnation_ = 0;  // the newest start that called
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_DRAWS_H_
// SPDX-License-Identifier: Apache-2.0
