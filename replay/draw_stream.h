// One learner's draw stream: answers draws in the order of the requests, each once every member has enough rows.
#ifndef DATACOM_REPLAY_DRAW_STREAM_H_
#define DATACOM_REPLAY_DRAW_STREAM_H_

#include <deque>
#include <string>

#include "replay/store_stream.h"

namespace datacom::replay {

class ReplayDrawStream final : public StoreStream<v1::DrawRequest, v1::DrawReply> {
 private:
  friend class StoreStream<v1::DrawRequest, v1::DrawReply>;
  explicit ReplayDrawStream(OpenStreams* streams) : StoreStream(streams) {}
  absl::StatusOr<bool> Handle(const v1::DrawRequest& request) override;
  bool Next(bool tick) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Opened() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return greeted_; }
  void Leave() override;

  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t incarnation_ ABSL_GUARDED_BY(mutex_) = 0;     // the learner's, from its first message
  std::deque<uint64_t> queued_ ABSL_GUARDED_BY(mutex_);  // updates to draw
  DrawPlace place_ ABSL_GUARDED_BY(mutex_);              // how far the replies to the first draw have come
  double draw_seconds_ ABSL_GUARDED_BY(mutex_) = 0;      // time spent on these replies
  Clock::Time waiting_since_ ABSL_GUARDED_BY(mutex_){};
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  std::string sent_wait_ ABSL_GUARDED_BY(mutex_);  // newest wait message sent for the first draw
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_DRAW_STREAM_H_
// SPDX-License-Identifier: Apache-2.0
