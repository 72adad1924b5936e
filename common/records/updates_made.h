// checkpoints/updates in the run folder: how far a run came, and how many updates it had to make again.
//
//   reached 00000000000000041230     updates that the present start has reached, pre-training included
//   repeated 00000000000000000730    updates that earlier starts had made and that no checkpoint held
//
// A learner that ends without a checkpoint is started again from an older one and makes the updates between them again.
// The file is written at every update but synced only at a start, so it is exact after kill -9; after lost power it may
// be older, and then it counts too few. It decides no number of the run.
#ifndef DATACOM_COMMON_RECORDS_UPDATES_MADE_H_
#define DATACOM_COMMON_RECORDS_UPDATES_MADE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace datacom {

struct UpdatesMade {
  uint64_t reached = 0, repeated = 0;
};

// The file of a run folder.
std::string UpdatesMadeFile(const std::string& run_dir);
// NOT_FOUND without a file, as before the first start and in a run of an older build; DATA_LOSS when it is something
// else.
absl::StatusOr<UpdatesMade> ReadUpdatesMade(const std::string& path);
// The share of repeated updates in all that were made; `done` are those of the run's state. 0 when none were made.
double RepeatedShare(uint64_t repeated, uint64_t done);

// The file of a learner that runs. Not thread-safe.
class UpdatesMadeWriter {
 public:
  // The start continues a state with `resumed` updates: what the file has beyond it is repeated. A file that is damaged
  // is begun again. Blocks on the disk.
  static absl::StatusOr<std::unique_ptr<UpdatesMadeWriter>> Open(const std::string& path, uint64_t resumed);
  ~UpdatesMadeWriter();
  UpdatesMadeWriter(const UpdatesMadeWriter&) = delete;
  UpdatesMadeWriter& operator=(const UpdatesMadeWriter&) = delete;

  // One small write into the kernel's cache. If it fails, the next one makes up for it.
  void Reach(uint64_t updates);
  uint64_t repeated() const { return made_.repeated; }

 private:
  UpdatesMadeWriter(int file, UpdatesMade made) : file_(file), made_(made) {}
  const int file_;
  UpdatesMade made_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_UPDATES_MADE_H_
// SPDX-License-Identifier: Apache-2.0
