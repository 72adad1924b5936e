// The records of a run for people: progress.csv, episodes.csv, TensorBoard events, build.txt.
//
// The learner is the only writer. A checkpoint holds the files' lengths (Offsets) and Open cuts them to those, so that
// a resumed run writes every row once. Not thread-safe; appending blocks on the disk cache, Sync on the disk.
#ifndef DATACOM_LEARNER_RECORDS_H_
#define DATACOM_LEARNER_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::learner {

class RunRecords {
 public:
  // `offsets`: of the checkpoint resumed from; empty for a new run. DATA_LOSS naming a file shorter than its offset.
  static absl::StatusOr<std::unique_ptr<RunRecords>> Open(const std::string& run_dir, const v1::Experiment& resolved,
                                                          const std::vector<v1::FileOffset>& offsets);
  virtual ~RunRecords() = default;
  virtual absl::Status AppendEpisode(int member, const v1::Episode& episode) = 0;
  virtual absl::Status AppendEpoch(const v1::EpochRecord& record) = 0;  // a row a member
  virtual absl::Status Sync() = 0;  // to the disk, before a checkpoint names the lengths
  virtual std::vector<v1::FileOffset> Offsets() const = 0;
};

// build.txt, a line each: versions of this build and its libraries, what computes on this processor, the machine, the
// day of this start (UTC).
std::string BuildText();

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RECORDS_H_
