#include "replay/insert_stream.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::replay {
namespace {

// Bounds the memory when every chunk is rejected and the sender reads no replies; the oldest rejections are enough.
constexpr int kMaxRejections = 64;

// A sender that reads such a rejection sends the member's rows again.
bool HasRejection(const v1::InsertReply& reply, uint32_t member) {
  return std::any_of(reply.rejections().begin(), reply.rejections().end(),
                     [member](const v1::Rejection& rejection) { return rejection.member() == member; });
}

}  // namespace

absl::Status InsertStream::Open(const v1::InsertOpen& open) {
  Store* store = streams_->store();
  RETURN_IF_ERROR(CheckHello(open.hello(), store->options().run_id, store->schema().fingerprint()));
  RETURN_IF_ERROR(streams_->CheckOpen());
  ASSIGN_OR_RETURN(const uint64_t stream, store->Connect(open.session(), open.incarnation()));
  MutexLock lock(&mutex_);
  session_ = open.session();
  stream_ = stream;
  return absl::OkStatus();
}

absl::StatusOr<bool> InsertStream::Handle(const v1::InsertRequest& request) {
  uint32_t session = 0;
  uint64_t stream = 0;
  {
    MutexLock lock(&mutex_);
    session = session_;
    stream = stream_;
  }
  if (request.has_open() != (stream == 0)) {
    return absl::InvalidArgumentError("an insert stream begins with one open, then chunks and releases follow");
  }
  if (request.has_open()) {
    RETURN_IF_ERROR(Open(request.open()));
    return true;  // it replaces an older stream of its session
  }
  RETURN_IF_ERROR(streams_->CheckOpen());
  const bool visible = !streams_->store()->options().sync;
  if (request.has_release()) {
    RETURN_IF_ERROR(streams_->store()->Release(session, stream, request.release()));
    return visible;
  }
  const Clock::Time start = Clock::Real().Now();
  v1::InsertReply reply;
  RETURN_IF_ERROR(streams_->store()->Insert(session, stream, request.chunk(), &reply));
  streams_->metrics()->ObserveInsert(Seconds(Clock::Real().Now() - start));
  if (reply.rejections().empty()) return visible;
  MutexLock lock(&mutex_);
  const v1::Rejection& rejection = reply.rejections(0);
  const bool retried = rejection.code() != static_cast<int32_t>(absl::StatusCode::kInvalidArgument);
  if (rejections_.rejections_size() < kMaxRejections || (retried && !HasRejection(rejections_, rejection.member())))
    rejections_.MergeFrom(reply);
  return visible;
}

bool InsertStream::Next(bool tick) {
  bool any = rejections_.rejections_size() > 0;
  reply_.Clear();
  reply_.Swap(&rejections_);
  if (stream_ == 0) return any;
  const auto changed = streams_->store()->Progress(session_, stream_, &sent_, &reply_);
  if (!changed.ok()) {
    End(changed.status());
    return any;
  }
  return any || *changed;
}

void InsertStream::Leave() {
  uint32_t session = 0;
  uint64_t stream = 0;
  {
    MutexLock lock(&mutex_);
    session = session_;
    stream = stream_;
  }
  if (stream != 0) streams_->store()->Disconnect(session, stream);
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
