// Writes the run's safety ledger (common/records/ledger.h): reads from the replay the rows that the learner has seen
// and records their steps and violations.
//
// The files are a pure function of the first rows() rows of every member. So a checkpoint holds only their ends.
// Rows of episodes that were cut short are included; evaluations make no rows. Rows that the learner has not seen yet
// stay in the replay's rings until a later Advance. Not thread-safe. Advance blocks on the replay and, when a buffer is
// full, on the disk; Flush(true) blocks on the disk.
#ifndef DATACOM_LEARNER_LEDGER_RECORDER_H_
#define DATACOM_LEARNER_LEDGER_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/records/ledger.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::learner {

// Passes the rows [from, to) of a member to `consume`, in order. The errors of ReadRange in
// proto/datacom/v1/replay.proto.
using RowSource = std::function<absl::Status(uint32_t member, uint64_t from, uint64_t to,
                                             const std::function<absl::Status(const v1::RowRange&)>& consume)>;

class LedgerRecorder {
 public:
  // `seeds` belong to the members; `ends` come from the checkpoint that is continued, empty for a new run. The errors
  // of LedgerWriter::Open. Changes nothing before a Flush.
  static absl::StatusOr<std::unique_ptr<LedgerRecorder>> Open(const std::string& run_dir, const std::string& run_id,
                                                              const std::vector<uint64_t>& seeds,
                                                              const RowSchema& schema, const FileEnds& ends,
                                                              RowSource source);

  uint64_t rows() const { return rows_; }  // written, of every member
  // Writes the rows of every member up to `rows`; does nothing if that is less than rows(). Errors:
  //   UNAVAILABLE, DEADLINE_EXCEEDED, OUT_OF_RANGE  the source has no answer yet; whole slices are kept: call again
  //   NOT_FOUND                                     the replay has overwritten the rows; permanent
  //   DATA_LOSS naming member and row               the source sent other rows than were requested
  // and the errors of the disk.
  absl::Status Advance(uint64_t rows);
  absl::Status Flush(bool sync) { return writer_->Flush(sync); }
  FileEnds Ends() const { return writer_->Ends(); }

 private:
  struct Places {  // of columns of RowSchema::stored()
    ColumnPlace observation, next_observation, reward, cost, absorbing, environment, episode, step;
    ColumnPlace policy_update, session, raw, executed, cvar, delta;
  };
  LedgerRecorder(const std::vector<uint64_t>& seeds, const RowSchema& schema, RowSource source);
  absl::Status Read(uint32_t member, uint64_t from, uint64_t to);
  absl::Status Write(uint32_t member, uint64_t row, const v1::RowRange& range, uint32_t index);

  const std::vector<uint64_t> seeds_;  // one per member
  const RowSchema schema_;
  const RowSource source_;
  const bool judged_;  // the acting rule stores CVaR and delta
  size_t row_bytes_ = 0;
  uint64_t slice_ = 1;  // rows of each member that are read at once
  Places places_;
  std::unique_ptr<LedgerWriter> writer_;
  uint64_t rows_ = 0;
  std::vector<std::vector<v1::RowRange>> read_;  // [member] of the slice
  // Workspaces of one row.
  LedgerStep step_;
  std::vector<float> observation_, next_observation_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_LEDGER_RECORDER_H_
// SPDX-License-Identifier: Apache-2.0
