// Base class of the replay's insert and draw streams. At most one read and one write are in flight; each reply is taken
// from the store when the stream can write; the stream ends after the write in flight. A stream whose peer sends no
// opening message for kOpenSeconds is ended. Lives until OnDone; shared with OpenStreams, which notifies it.
// Thread-safe; waits only for the store's calls.
#ifndef DATACOM_REPLAY_STORE_STREAM_H_
#define DATACOM_REPLAY_STORE_STREAM_H_

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "replay/open_streams.h"

namespace datacom::replay {

template <typename Request, typename Reply>
class StoreStream : public grpc::ServerBidiReactor<Request, Reply>, public StoreListener {
 public:
  // Creates a Stream and starts to read its first message.
  template <typename Stream>
  static Stream* Start(OpenStreams* streams) {
    std::shared_ptr<Stream> stream(new Stream(streams));
    streams->Add(stream);
    stream->StartRead(&stream->request_);
    return stream.get();
  }

  void OnReadDone(bool ok) final {
    const absl::StatusOr<bool> visible = ok ? Handle(request_) : false;
    if (!ok || !visible.ok()) {
      request_ = Request();
      Close(visible.status());
      return;
    }
    if (request_.ByteSizeLong() > kKeptRequestBytes) request_ = Request();  // frees its memory
    // Read on while streams are notified: this one has a reply, others may have credit or the rows of their draw.
    this->StartRead(&request_);
    if (*visible) {
      streams_->NotifyAll();
    } else {
      Pump(false);
    }
  }
  void OnWriteDone(bool ok) final {
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      if (!ok && finished_) return;
      finished_ = finished_ || !ok;
    }
    if (ok) {
      Pump(false);
    } else {
      this->Finish(grpc::Status::CANCELLED);  // the peer is gone
    }
  }
  void OnCancel() final {}
  void OnDone() final {
    Leave();
    streams_->Remove(this);  // may destroy this
  }
  void OnChange() final { Pump(false); }
  void OnTick() final {
    {
      MutexLock lock(&mutex_);
      if (!Opened() && Seconds(streams_->store()->options().clock->Now() - started_) >= kOpenSeconds) {
        End(absl::DeadlineExceededError(absl::StrCat("no opening message within ", kOpenSeconds, " s")));
      }
    }
    Pump(true);
  }
  void Close(const absl::Status& status) final {
    {
      MutexLock lock(&mutex_);
      End(status);
    }
    Pump(false);
  }

 protected:
  explicit StoreStream(OpenStreams* streams) : streams_(streams), started_(streams->store()->options().clock->Now()) {}
  // Returns whether other streams may see a change now. With replay.sync they see most changes after a commit, which
  // notifies them. An error ends the stream.
  virtual absl::StatusOr<bool> Handle(const Request& request) = 0;
  // Fills reply_ with the next message; returns false when there is none. May End the stream.
  virtual bool Next(bool tick) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual bool Opened() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual void Leave() = 0;  // called when the stream is over
  // The first status counts.
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!closing_) status_ = status;
    closing_ = true;
  }

  OpenStreams* const streams_;
  Mutex mutex_;
  Reply reply_;  // the message of the write in flight
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;

 private:
  static constexpr size_t kKeptRequestBytes = 256 << 10;  // most memory that a stream keeps between two requests
  void Pump(bool tick) {
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      if (writing_ || finished_) return;
      if (Next(tick)) {
        writing_ = true;
        this->StartWrite(&reply_);
        return;
      }
      if (!closing_) return;
      finished_ = true;
      status = status_;
    }
    this->Finish(ToGrpc(status));
  }

  static constexpr int kOpenSeconds = 30;

  const Clock::Time started_;
  Request request_;  // the message of the read in flight
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_STORE_STREAM_H_
// SPDX-License-Identifier: Apache-2.0
