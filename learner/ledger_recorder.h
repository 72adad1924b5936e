// Keeps the run's safety ledger (common/records/ledger.h): reads the rows that the learner has seen from the replay and
// writes what they say of steps and violations.
//
// What is written is a pure function of the first rows() rows of every member: nothing is kept but the files' lengths,
// which checkpoints hold. Violations of episodes that were cut are rows like any other. Evaluations make no rows. Rows
// that no learner has seen yet are in the replay's rings and come with the next Advance. Not thread-safe. Advance
// blocks on the replay and the disk cache, Sync on the disk.
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
#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::learner {

// Hands the rows [from, to) of a member to `consume`, in order (proto ReadRange; its errors).
using RowSource = std::function<absl::Status(uint32_t member, uint64_t from, uint64_t to,
                                             const std::function<absl::Status(const v1::RowRange&)>& consume)>;

class LedgerRecorder {
 public:
  // `offsets`: of the checkpoint resumed from; empty for a new run. The errors of LedgerWriter::Open.
  static absl::StatusOr<std::unique_ptr<LedgerRecorder>> Open(const std::string& run_dir,
                                                              const v1::Experiment& resolved, const RowSchema& schema,
                                                              const std::vector<v1::FileOffset>& offsets,
                                                              RowSource source);

  uint64_t rows() const { return rows_; }  // of every member, written
  // Writes up to `rows` rows of every member; fewer than rows(): nothing. The source's errors (UNAVAILABLE,
  // DEADLINE_EXCEEDED, OUT_OF_RANGE: whole slices before are written, call again; NOT_FOUND: rows are overwritten, for
  // good); DATA_LOSS naming member and row when what came is not what was asked for; the disk's.
  absl::Status Advance(uint64_t rows);
  absl::Status Flush(bool sync) { return writer_->Flush(sync); }
  std::vector<v1::FileOffset> Offsets() const;

 private:
  // A column of RowSchema::stored(): where it begins in a range of r rows (r * before), and its bytes a row.
  struct Place {
    size_t before = 0, bytes = 0;
  };
  struct Places {
    Place observation, next_observation, reward, cost, absorbing, environment, episode, step, policy_update, session;
    Place raw, executed, cvar, delta;
  };
  LedgerRecorder(const v1::Experiment& resolved, const RowSchema& schema, RowSource source);
  Place Find(absl::string_view column) const;
  absl::Status Read(uint32_t member, uint64_t from, uint64_t to);
  absl::Status Write(uint32_t member, uint64_t row, const v1::RowRange& range, uint32_t index);

  const v1::Experiment experiment_;
  const RowSchema schema_;
  const RowSource source_;
  const bool judged_;  // the rule has a learned constraint
  size_t row_bytes_ = 0;
  uint64_t slice_ = 1;  // rows read at a time
  Places places_;
  std::unique_ptr<LedgerWriter> writer_;
  uint64_t rows_ = 0;
  std::vector<std::vector<v1::RowRange>> read_;  // of the slice, [member]
  LedgerStep step_;                              // workspace of a row, with
  std::vector<float> observation_, next_observation_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_LEDGER_RECORDER_H_
