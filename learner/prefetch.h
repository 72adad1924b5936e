// Fetches draws and decodes them into batches while the training thread computes.
//
// A draw is a pure function of seeds and update, and so is all noise: the numbers do not depend on how many draws are
// requested ahead. Next, Release and Announce belong to one thread, the user's; a thread inside owns stream and
// decoder. waiting_for and decoding are thread-safe. Next and the destructor block.
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
#include "learner/algorithms/algorithm.h"
#include "learner/batch_decoder.h"

namespace datacom::learner {

class Prefetch {
 public:
  struct Options {
    uint64_t first_update = 1, last_update = 0;  // both included
    int ahead = 1;                               // draws requested and not yet trained on
    uint64_t announced_together = 1;             // updates; see Announce
  };
  // At most so many draws are decoded ahead: enough to hide the time of decoding. The other draws hide the time of the
  // network and need no decoding yet.
  static constexpr int kDecoded = 4;
  Prefetch(std::unique_ptr<DrawStream> stream, BatchDecoder decoder, const AlgorithmConfig& config,
           const Options& options);
  ~Prefetch();  // cancels the stream and joins the thread

  // The next update, in order. Blocks up to `timeout`; then DEADLINE_EXCEEDED, and waiting_for() has the reason. Every
  // other error is permanent.
  absl::StatusOr<PreparedUpdate*> Next(std::chrono::milliseconds timeout);
  void Release(PreparedUpdate* prepared);  // gives back what Next returned
  // Tells the replay what is done: of every announced_together updates, of the last one, and when a call of Next ends
  // without a draw. A message for several updates costs replay and actors as much as one.
  void Announce(uint64_t completed_update);
  uint64_t replay_start() const { return stream_->replay_start(); }
  std::string waiting_for() const;  // what the replay waits for; empty: it does not say
  bool decoding() const;            // rows have arrived and are being decoded

 private:
  void Run();
  void SendAnnouncement();
  absl::Status DecodeNext(v1::DrawReply reply, uint64_t expected);

  const Options options_;
  const std::unique_ptr<DrawStream> stream_;
  BatchDecoder decoder_;
  uint64_t completed_, announced_;  // updates; only the user's thread uses them
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
// SPDX-License-Identifier: Apache-2.0
