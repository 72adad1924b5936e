// The streams of the replay's service: those of actors, which insert, and the learner's, which draws.
#ifndef DATACOM_REPLAY_STREAMS_H_
#define DATACOM_REPLAY_STREAMS_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "replay/replay_metrics.h"
#include "replay/store.h"

namespace datacom::replay {

// A stream that is notified when the store changes.
class StoreListener {
 public:
  virtual ~StoreListener() = default;
  virtual void OnChange() = 0;                         // anything may have changed; must not block
  virtual void OnTick() = 0;                           // some time passed
  virtual void Close(const absl::Status& status) = 0;  // end the stream after the write in flight
};

// The streams that a replay's peers have open, and what the streams share: the store, the metrics, and whether the
// replay still accepts rows. The service owns it; the streams and the service notify each other through it.
// Thread-safe; shares the ownership of each stream until Remove. NotifyAll and TickAll run in the caller's thread;
// Drain blocks on the disk with replay.sync.
class OpenStreams {
 public:
  OpenStreams(Store* store, Metrics* metrics) : store_(store), metrics_(metrics, store->options().folder) {}

  Store* store() { return store_; }
  ReplayMetrics* metrics() { return &metrics_; }
  void Add(const std::shared_ptr<StoreListener>& listener);
  void Remove(StoreListener* listener);
  void NotifyAll();
  void TickAll();
  absl::Status CheckOpen() const;  // UNAVAILABLE while draining and after the disk failed
  bool draining() const;
  // Accepts no more rows, actors or learners, commits what is staged, sends what is committed and ends the streams with
  // UNAVAILABLE. Idempotent.
  void Drain();

 private:
  std::vector<std::shared_ptr<StoreListener>> Listeners() const;

  Store* const store_;
  ReplayMetrics metrics_;
  mutable Mutex mutex_;
  std::map<StoreListener*, std::shared_ptr<StoreListener>> listeners_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

// Base class of the replay's insert and draw streams. At most one read and one write are in flight; each reply is taken
// from the store when the stream can write; the stream ends after the write in flight. A stream whose peer sends no
// opening message for kOpenSeconds is ended. Lives until OnDone; shared with OpenStreams, which notifies it.
// Thread-safe; waits only for the store's calls.
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
    const absl::StatusOr<Heard> heard = ok ? Handle(request_) : Heard::kNobody;
    if (!ok || !heard.ok()) {
      request_ = Request();
      Close(heard.status());
      streams_->NotifyAll();  // of the chunks whose last one is missing
      return;
    }
    if (request_.ByteSizeLong() > kKeptRequestBytes) request_ = Request();  // frees its memory
    // Read on while streams are notified: this one has a reply, others may have credit or the rows of their draw.
    this->StartRead(&request_);
    if (*heard == Heard::kAll) streams_->NotifyAll();
    if (*heard == Heard::kPeer) Pump(false);
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
    {
      MutexLock lock(&mutex_);
      Leave();
    }
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
  enum class Heard { kNobody, kPeer, kAll };  // whose streams look for a reply after a request
  explicit StoreStream(OpenStreams* streams) : streams_(streams), started_(streams->store()->options().clock->Now()) {}
  // Nobody looks before the last of several requests. With replay.sync other streams see most changes after a commit,
  // which notifies them. An error ends the stream.
  virtual absl::StatusOr<Heard> Handle(const Request& request) = 0;
  // Fills reply_ with the next message; returns false when there is none. May End the stream.
  virtual bool Next(bool tick) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual bool Opened() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual void Leave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;  // called when the stream is over
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

// One actor's insert stream. With replay.sync its rows are acknowledged after the next commit of a group.
class InsertStream final : public StoreStream<v1::InsertRequest, v1::InsertReply> {
 private:
  friend class StoreStream<v1::InsertRequest, v1::InsertReply>;
  explicit InsertStream(OpenStreams* streams) : StoreStream(streams) {}
  absl::StatusOr<Heard> Handle(const v1::InsertRequest& request) override;
  absl::Status Open(const v1::InsertOpen& open);
  bool Next(bool tick) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Opened() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stream_ != 0; }
  void Leave() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  uint32_t session_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t stream_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not open yet
  InsertProgress sent_ ABSL_GUARDED_BY(mutex_);
  v1::InsertReply rejections_ ABSL_GUARDED_BY(mutex_);  // not sent yet
};

// One learner's draw stream: answers draws in the order of the requests, each once every member has enough rows.
class ReplayDrawStream final : public StoreStream<v1::DrawRequest, v1::DrawReply> {
 private:
  friend class StoreStream<v1::DrawRequest, v1::DrawReply>;
  explicit ReplayDrawStream(OpenStreams* streams) : StoreStream(streams) {}
  absl::StatusOr<Heard> Handle(const v1::DrawRequest& request) override;
  bool Next(bool tick) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Opened() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return greeted_; }
  void Leave() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t incarnation_ ABSL_GUARDED_BY(mutex_) = 0;     // the learner's, from its first message
  uint64_t completed_ ABSL_GUARDED_BY(mutex_) = 0;       // the newest update that it has announced
  std::deque<uint64_t> queued_ ABSL_GUARDED_BY(mutex_);  // updates to draw
  DrawPlace place_ ABSL_GUARDED_BY(mutex_);              // how far the replies to the first draw have come
  double draw_seconds_ ABSL_GUARDED_BY(mutex_) = 0;      // time spent on these replies
  Clock::Time waiting_since_ ABSL_GUARDED_BY(mutex_){};
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  std::string sent_wait_ ABSL_GUARDED_BY(mutex_);  // newest wait message sent for the first draw
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_STREAMS_H_
// SPDX-License-Identifier: Apache-2.0
