// One actor's insert stream. With replay.sync its rows are acknowledged after the next commit of a group.
#ifndef DATACOM_REPLAY_INSERT_STREAM_H_
#define DATACOM_REPLAY_INSERT_STREAM_H_

#include "replay/store_stream.h"

namespace datacom::replay {

class InsertStream final : public StoreStream<v1::InsertRequest, v1::InsertReply> {
 private:
  friend class StoreStream<v1::InsertRequest, v1::InsertReply>;
  explicit InsertStream(OpenStreams* streams) : StoreStream(streams) {}
  absl::StatusOr<bool> Handle(const v1::InsertRequest& request) override;
  absl::Status Open(const v1::InsertOpen& open);
  bool Next(bool tick) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Opened() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stream_ != 0; }
  void Leave() override;

  uint32_t session_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t stream_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not open yet
  InsertProgress sent_ ABSL_GUARDED_BY(mutex_);
  v1::InsertReply rejections_ ABSL_GUARDED_BY(mutex_);  // not sent yet
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_INSERT_STREAM_H_
// SPDX-License-Identifier: Apache-2.0
