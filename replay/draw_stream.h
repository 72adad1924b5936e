// One learner's draw stream: answers draws in the order asked, each as soon as every member has the rows it needs.
// Lives until gRPC says it is done; shared with the service, which wakes it. Thread-safe; blocks nowhere.
#ifndef DATACOM_REPLAY_DRAW_STREAM_H_
#define DATACOM_REPLAY_DRAW_STREAM_H_

#include <deque>
#include <memory>
#include <string>

#include "replay/service.h"

namespace datacom {

inline constexpr size_t kMaxQueuedDraws = 64;

class ReplayDrawStream : public grpc::ServerBidiReactor<v1::DrawRequest, v1::DrawReply>, public StoreListener {
 public:
  static ReplayDrawStream* Make(ReplayService* service);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override {}
  void OnDone() override;
  void OnChange() override;
  void OnTick() override;
  void Close(const grpc::Status& status) override;

 private:
  explicit ReplayDrawStream(ReplayService* service) : service_(service) {}
  absl::Status Handle(const v1::DrawRequest& request);
  void Pump(bool tick);
  // What to write now; false: nothing. Sets closing_ on an error.
  bool Next(bool tick) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ReplayService* const service_;
  v1::DrawRequest request_;  // of the read in flight
  Mutex mutex_;
  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<uint64_t> wanted_ ABSL_GUARDED_BY(mutex_);
  Clock::Time waiting_since_ ABSL_GUARDED_BY(mutex_){};
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  std::string told_ ABSL_GUARDED_BY(mutex_);  // last words about the wait
  v1::DrawReply reply_;                       // of the write in flight
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace datacom

#endif  // DATACOM_REPLAY_DRAW_STREAM_H_
