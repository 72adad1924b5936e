// A folder of recorded transitions (layout: proto/datacom/v1/dataset.proto): written from the rings of a run that has
// ended, read into memory by a run that pre-trains on them.
//
// Functions block on the disk. A Dataset is immutable after Read: safe to share between threads.
#ifndef DATACOM_COMMON_RECORDS_DATASET_H_
#define DATACOM_COMMON_RECORDS_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/dataset.pb.h"

namespace datacom {

inline constexpr uint32_t kDatasetLayout = 3;

// Writes the folder; it is complete or absent. rows[i]: stored rows (row_schema.h) of manifest.members(i), in the order
// to write. The caller sets run_id, experiment and the members' member, seed, first_row, end_row and episodes in the
// manifest; this function sets the rest. INVALID_ARGUMENT when `folder` exists; RESOURCE_EXHAUSTED, naming the bytes
// needed and free, when the disk is too small.
absl::Status WriteDataset(const std::string& folder, const RowSchema& schema,
                          const std::vector<std::vector<const char*>>& rows, v1::DatasetManifest* manifest);

// INVALID_ARGUMENT, naming the folder: it or its manifest does not exist, or the manifest does not parse;
// FAILED_PRECONDITION: another layout; DATA_LOSS: the manifest is inconsistent.
absl::StatusOr<v1::DatasetManifest> ReadManifest(const std::string& folder);
// Checks that a run of this task with rows of this schema can learn from the dataset. Columns that no learner reads may
// differ: D-ATACOM can learn from rows of SAC, because both store the executed action as the action. INVALID_ARGUMENT,
// naming what differs.
absl::Status CheckDataset(const std::string& folder, const v1::DatasetManifest& manifest, const std::string& task,
                          const RowSchema& schema);
// Checks that the rows mean the same in the run: observations, rewards, costs and steps are made alike. Only the
// horizon, where episodes start and how they are disturbed may differ. What a dataset does not state, such as the
// definition of a text task when the rows come from another program, is not compared; nor is a Python environment,
// which common/tasks/python/identity.h compares. INVALID_ARGUMENT, naming the first difference and both values.
absl::Status CheckDatasetOptions(const std::string& folder, const v1::DatasetManifest& manifest,
                                 const v1::TaskOptions& wanted);
uint64_t RowsOf(const v1::DatasetManifest& manifest);  // of all members

// The learning columns of all members' rows in memory, member after member.
class Dataset {
 public:
  // The errors of ReadManifest and CheckDataset; DATA_LOSS, naming the file and both values, when a file is missing,
  // has the wrong length, checksum or number of failures, or holds an invalid value.
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
// SPDX-License-Identifier: Apache-2.0
