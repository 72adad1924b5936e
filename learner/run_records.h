// The records of a run for people: progress.csv, episodes.csv, TensorBoard events, build.txt.
//
// The learner is the only writer. A checkpoint holds the lengths of the files (Offsets), and Open cuts the files to
// them, so that a resumed run writes every row once. Not thread-safe. Appending blocks when a buffer is full, Sync
// blocks on the disk.
#ifndef DATACOM_LEARNER_RUN_RECORDS_H_
#define DATACOM_LEARNER_RUN_RECORDS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/records/csv.h"
#include "common/records/tensorboard.h"
#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::learner {

class RunRecords {
 public:
  // Writes build.txt (build_text.h). `cost_names`: RowSchema::named_costs. `offsets` are those of the checkpoint that
  // is continued, empty for a new run. DATA_LOSS naming a file that is shorter than its offset.
  static absl::StatusOr<std::unique_ptr<RunRecords>> Open(const std::string& run_dir, const v1::Experiment& resolved,
                                                          const std::vector<std::string>& cost_names,
                                                          const std::vector<v1::FileOffset>& offsets);
  absl::Status AppendEpisode(int member, const v1::Episode& episode);
  absl::Status AppendEpoch(const v1::EpochRecord& record);  // one row and one event per member
  absl::Status Sync();                                      // before a checkpoint holds the lengths
  std::vector<v1::FileOffset> Offsets() const;

 private:
  using Events =
      std::vector<std::pair<std::string, std::unique_ptr<EventWriter>>>;  // [member]: relative folder, writer
  RunRecords(const v1::Experiment& experiment, std::vector<std::string> cost_names, std::unique_ptr<CsvWriter> progress,
             std::unique_ptr<CsvWriter> episodes, Events events);
  absl::Status Flush(bool sync);

  const v1::Experiment experiment_;
  const std::vector<std::string> cost_names_;
  const std::unique_ptr<CsvWriter> progress_, episodes_;
  const Events events_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RUN_RECORDS_H_
