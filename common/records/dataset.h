// Recorded transitions in a folder of their own (layout: proto/datacom/v1/dataset.proto): written from the rings of a
// run that has ended, read whole before a run that pre-trains on them.
//
// Functions block on the disk. A Dataset is immutable after Read: safe to share between threads.
#ifndef DATACOM_COMMON_RECORDS_DATASET_H_
#define DATACOM_COMMON_RECORDS_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rows/row_schema.h"
#include "datacom/v1/dataset.pb.h"

namespace datacom {

inline constexpr uint32_t kDatasetLayout = 1;

// Writes a folder that is whole or absent, readable as soon as this returns OK. rows[i]: stored rows (row_schema.h) of
// manifest.members(i), in the order they are to have; the manifest brings run_id, experiment and the members' member,
// seed, first_row, end_row and episodes, and gets the rest. INVALID_ARGUMENT when there is something at `folder`
// already, RESOURCE_EXHAUSTED with the numbers when the disk is too small.
absl::Status WriteDataset(const std::string& folder, const RowSchema& schema,
                          const std::vector<std::vector<const char*>>& rows, v1::DatasetManifest* manifest);

// INVALID_ARGUMENT naming the folder: none, no manifest in it, or one that does not parse; FAILED_PRECONDITION: another
// layout; DATA_LOSS: its numbers contradict each other.
absl::StatusOr<v1::DatasetManifest> ReadManifest(const std::string& folder);
// Whether a run of this task with rows of this schema can learn from it. Columns that no learner reads may differ: rows
// of SAC serve D-ATACOM, both of which store the action that was executed. INVALID_ARGUMENT naming what differs.
absl::Status CheckDataset(const std::string& folder, const v1::DatasetManifest& manifest, const std::string& task,
                          const RowSchema& schema);
uint64_t RowsOf(const v1::DatasetManifest& manifest);      // of all members
uint64_t FailuresOf(const v1::DatasetManifest& manifest);  // of them, rows with cost > 0

// The learning columns of all members' rows in memory, member after member.
class Dataset {
 public:
  // As ReadManifest and CheckDataset; DATA_LOSS naming the file and both values: missing, truncated or too long, a
  // wrong checksum, a value that no row may hold, another number of failures than the manifest says.
  static absl::StatusOr<Dataset> Read(const std::string& folder, const std::string& task, const RowSchema& schema);

  const v1::DatasetManifest& manifest() const { return manifest_; }
  uint64_t rows() const { return count_; }
  const std::vector<uint64_t>& failures() const { return failures_; }  // numbers of the rows with cost > 0
  // The learning columns of rows `numbers`, as a draw carries them (row_schema.h).
  void Gather(const std::vector<uint64_t>& numbers, std::string* columns) const;

 private:
  absl::Status ReadMember(const std::string& path, const v1::DatasetMember& member);
  absl::Status AddChunk(const std::string& chunk, uint64_t count);

  v1::DatasetManifest manifest_;
  RowSchema schema_;
  std::vector<Column> columns_;  // of the files
  std::string rows_;             // learning columns of a row one after the other, row after row
  uint64_t count_ = 0;
  std::vector<uint64_t> failures_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_DATASET_H_
