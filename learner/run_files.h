// The files that the learner writes for a run: records and ledger, which a checkpoint continues, checkpoints, and the
// count of updates.
//
// A checkpoint holds the ends of records and ledger, with a checksum of what comes before. A resumed run continues
// there, so that it writes every row once. Not thread-safe; Open, Begin and Save block on the disk.
#ifndef DATACOM_LEARNER_RUN_FILES_H_
#define DATACOM_LEARNER_RUN_FILES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/records/checkpoint.h"
#include "common/records/updates_made.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/checkpoint.pb.h"
#include "learner/ledger_recorder.h"
#include "learner/run_records.h"
#include "learner/run_settings.h"

namespace datacom::learner {

class RunFiles {
 public:
  // Continues the files of the checkpoint; begins new ones if it is empty. `source`: where the ledger reads rows. A
  // resumed run changes nothing before Begin. The errors of RunRecords::Open and LedgerRecorder::Open.
  static absl::StatusOr<std::unique_ptr<RunFiles>> Open(const std::string& run_dir, const std::string& run_id,
                                                        const RunSettings& settings, const RowSchema& schema,
                                                        const v1::LearnerCheckpoint& checkpoint, RowSource source);
  static std::string CheckpointFolder(const std::string& run_dir) { return run_dir + "/checkpoints"; }

  absl::Status Begin();  // cuts the files to their ends, counts the updates that this start repeats

  RunRecords& records() { return *records_; }
  LedgerRecorder& ledger() { return *ledger_; }
  UpdatesMadeWriter& updates() { return *updates_; }  // after Begin
  // Notes the policies of an epoch that has ended for the next checkpoint. Not those of an epoch that the run's end cut
  // short: a longer run writes them again. Reads the file.
  absl::Status KeepPolicies(uint32_t epoch);
  // Syncs records and ledger to the disk and writes the checkpoint with their ends.
  absl::Status Save(Checkpoint checkpoint);

 private:
  RunFiles(const std::string& run_dir, uint64_t resumed)
      : run_dir_(run_dir), resumed_(resumed), checkpoints_(CheckpointFolder(run_dir)) {}

  const std::string run_dir_;
  const uint64_t resumed_;  // updates of the checkpoint
  const CheckpointStore checkpoints_;
  std::unique_ptr<RunRecords> records_;
  std::unique_ptr<LedgerRecorder> ledger_;
  std::unique_ptr<UpdatesMadeWriter> updates_;
  FileEnds policies_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RUN_FILES_H_
// SPDX-License-Identifier: Apache-2.0
