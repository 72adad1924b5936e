#include "replay/insert_stream.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"

namespace datacom {
namespace {

// A sender whose every chunk is refused and who reads no answers must not fill the memory: the oldest words are enough.
constexpr int kMaxRejections = 64;

}  // namespace

InsertStream* InsertStream::Make(ReplayService* service) {
  std::shared_ptr<InsertStream> stream(new InsertStream(service));
  service->Add(stream);
  stream->StartRead(&stream->request_);
  return stream.get();
}

absl::Status InsertStream::Open(const v1::InsertOpen& open) {
  Store* store = service_->store();
  RETURN_IF_ERROR(CheckHello(open.hello(), store->options().run_id, store->schema().fingerprint()));
  RETURN_IF_ERROR(service_->CheckOpen());
  ASSIGN_OR_RETURN(const uint64_t stream, store->Connect(open.session()));
  MutexLock lock(&mutex_);
  session_ = open.session();
  stream_ = stream;
  return absl::OkStatus();
}

absl::Status InsertStream::Handle(const v1::InsertRequest& request) {
  uint32_t session = 0;
  uint64_t stream = 0;
  {
    MutexLock lock(&mutex_);
    session = session_;
    stream = stream_;
  }
  if (request.has_open() != (stream == 0)) {
    return absl::InvalidArgumentError("an insert stream begins with one open, then chunks follow");
  }
  if (request.has_open()) return Open(request.open());
  RETURN_IF_ERROR(service_->CheckOpen());
  const Clock::Time start = Clock::Real().Now();
  v1::InsertReply reply;
  RETURN_IF_ERROR(service_->store()->Insert(session, stream, request.chunk(), &reply));
  service_->metrics()->ObserveInsert(Seconds(Clock::Real().Now() - start));
  if (reply.rejections().empty()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  if (rejections_.rejections_size() < kMaxRejections) rejections_.MergeFrom(reply);
  return absl::OkStatus();
}

void InsertStream::OnReadDone(bool ok) {
  if (!ok) {
    Close(grpc::Status::OK);
    return;
  }
  const absl::Status status = Handle(request_);
  if (!status.ok()) {
    Close(ToGrpc(status));
    return;
  }
  // The next chunk arrives while everybody is told: this stream's acknowledgement, others' credit, draws that waited
  // for the rows. From StartRead on this object may be gone.
  ReplayService* const service = service_;
  StartRead(&request_);
  service->NotifyAll();
}

void InsertStream::OnChange() { Pump(); }

void InsertStream::Close(const grpc::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (!closing_) status_ = status;
    closing_ = true;
  }
  Pump();
}

void InsertStream::Pump() {
  grpc::Status status;
  {
    MutexLock lock(&mutex_);
    if (writing_ || finished_) return;
    bool any = rejections_.rejections_size() > 0;
    reply_.Clear();
    reply_.Swap(&rejections_);
    if (stream_ != 0) {
      const auto changed = service_->store()->Progress(session_, stream_, &sent_, &reply_);
      if (changed.ok()) {
        any |= *changed;
      } else {
        if (!closing_) status_ = ToGrpc(changed.status());
        closing_ = true;
      }
    }
    if (any) {
      writing_ = true;
      StartWrite(&reply_);
      return;
    }
    if (!closing_) return;
    finished_ = true;
    status = status_;
  }
  Finish(status);
}

void InsertStream::OnWriteDone(bool ok) {
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok && finished_) return;
    finished_ = finished_ || !ok;
  }
  if (ok) {
    Pump();
  } else {
    Finish(grpc::Status::CANCELLED);  // the peer is gone
  }
}

void InsertStream::OnDone() {
  uint32_t session = 0;
  uint64_t stream = 0;
  {
    MutexLock lock(&mutex_);
    session = session_;
    stream = stream_;
  }
  if (stream != 0) service_->store()->Disconnect(session, stream);
  service_->Remove(this);  // may destroy this
}

}  // namespace datacom
