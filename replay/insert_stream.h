// One actor's insert stream. Lives until gRPC says it is done; shared with the service, which wakes it.
// Thread-safe; blocks nowhere (with replay.sync an insert waits for the disk).
#ifndef DATACOM_REPLAY_INSERT_STREAM_H_
#define DATACOM_REPLAY_INSERT_STREAM_H_

#include <memory>

#include "replay/service.h"

namespace datacom {

class InsertStream : public grpc::ServerBidiReactor<v1::InsertRequest, v1::InsertReply>, public StoreListener {
 public:
  static InsertStream* Make(ReplayService* service);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override {}
  void OnDone() override;
  void OnChange() override;
  void OnTick() override { OnChange(); }
  void Close(const grpc::Status& status) override;

 private:
  explicit InsertStream(ReplayService* service) : service_(service) {}
  absl::Status Handle(const v1::InsertRequest& request);
  absl::Status Open(const v1::InsertOpen& open);
  void Pump();  // writes what there is to say, or finishes

  ReplayService* const service_;
  v1::InsertRequest request_;  // of the read in flight
  Mutex mutex_;
  uint32_t session_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t stream_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not open yet
  InsertProgress sent_ ABSL_GUARDED_BY(mutex_);
  v1::InsertReply rejections_ ABSL_GUARDED_BY(mutex_);  // not told yet
  v1::InsertReply reply_;                               // of the write in flight
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace datacom

#endif  // DATACOM_REPLAY_INSERT_STREAM_H_
