// From draws to host batches, one thread ahead of the training thread.
//
// Draws are pure functions of (seed, member, update), and so is all noise: any depth gives the same numbers.
#ifndef DATACOM_LEARNER_PREFETCH_H_
#define DATACOM_LEARNER_PREFETCH_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/rpc/replay_client.h"
#include "common/safety/control_affine.h"
#include "common/safety/known_rows.h"
#include "common/transitions/row_schema.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

// A training episode that ended, and what its delta step reads.
struct FinishedEpisode {
  int member = 0;
  v1::Episode facts;         // observations and costs moved out
  std::vector<float> z;      // [length + 1, q + x]; empty: no delta step
  std::vector<float> costs;  // [length + 1] raw, costs[0] = 0
};

// Everything of one update. Reused: the arrays keep their memory.
struct PreparedUpdate {
  uint64_t update = 0;
  Batch batch;
  std::vector<FinishedEpisode> episodes;      // by member, then in row order
  std::vector<uint64_t> rows_seen, inserted;  // [M], as the replay counts them (proto MemberBatch)
  std::vector<uint32_t> lanes;                // [M], likewise
};

// Turns a reply of the replay into a batch: columns, control-affine features, noise. Not thread-safe (owns scratch).
class BatchDecoder {
 public:
  // `dynamics` may be null where the algorithm needs none. delta_warmup: [M] rows. `streams`: what the names of the
  // noise's streams begin with.
  BatchDecoder(const AlgorithmConfig& config, const RowSchema& schema, std::shared_ptr<const ControlAffine> dynamics,
               KnownRows known, std::vector<uint64_t> delta_warmup, const std::string& streams = "learner.");
  // DATA_LOSS naming member, column and size when the reply does not fit; `out` is then undefined.
  absl::Status Decode(v1::DrawReply* reply, PreparedUpdate* out);

 private:
  absl::Status DecodeMain(int member, const std::string& bytes, Batch* batch) const;
  absl::Status DecodeFailure(int member, const std::string& bytes, Batch* batch);
  absl::Status DecodeEpisode(int member, v1::Episode* episode, FinishedEpisode* out);
  void Features(int member, const std::vector<float>& observations, ControlAffineBatch* out);
  void Z(const float* observation, float* z);
  void FillNoise(uint64_t update, Batch* batch) const;

  const AlgorithmConfig config_;
  const RowSchema schema_;
  const std::shared_ptr<const ControlAffine> dynamics_;
  KnownRows known_;
  const std::vector<uint64_t> delta_warmup_;
  const std::string noise_actor_, noise_next_, level_, next_level_;  // names of streams
  int z_dim_ = 0;
  std::vector<double> wide_, state_;                       // one observation, one [q, x], float64
  std::vector<float> failure_observation_, failure_next_;  // scratch of one failure batch
};

// Keeps `ahead` draws asked for, at most kDecoded of them decoded. Next/Release: one user thread. The thread inside
// owns stream and decoder.
class Prefetch {
 public:
  struct Options {
    uint64_t first_update = 1, last_update = 0;  // both included
    int ahead = 1;
  };
  static constexpr int kDecoded = 4;  // enough to hide the decoding: what hides the network waits as it came
  Prefetch(std::unique_ptr<DrawStream> stream, BatchDecoder decoder, const AlgorithmConfig& config,
           const Options& options);
  ~Prefetch();  // cancels and joins

  // The next update in order; blocks up to `timeout` (DEADLINE_EXCEEDED: waiting_for() says why). Errors are permanent.
  absl::StatusOr<PreparedUpdate*> Next(std::chrono::milliseconds timeout);
  void Release(PreparedUpdate* prepared);
  void Announce(uint64_t completed_update) { stream_->Announce(completed_update); }
  std::string waiting_for() const;
  bool decoding() const;  // rows are there, their features are being computed

 private:
  void Run();
  absl::Status DecodeNext(v1::DrawReply reply, uint64_t expected);

  const Options options_;
  const std::unique_ptr<DrawStream> stream_;
  BatchDecoder decoder_;
  std::vector<std::unique_ptr<PreparedUpdate>> slots_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<PreparedUpdate*> free_ ABSL_GUARDED_BY(mutex_);
  std::deque<PreparedUpdate*> ready_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::string waiting_for_ ABSL_GUARDED_BY(mutex_);
  bool decoding_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_PREFETCH_H_
