// A server's answer that is a stream of messages: one is written at a time, and the next one is made when the write is
// done, so that a slow reader keeps one message in memory. Deletes itself when the call is over. gRPC calls it from one
// thread at a time.
#ifndef DATACOM_COMMON_RPC_MESSAGE_WRITER_H_
#define DATACOM_COMMON_RPC_MESSAGE_WRITER_H_

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/channel.h"
#include "grpcpp/grpcpp.h"

namespace datacom {

template <typename Message>
class MessageWriter final : public grpc::ServerWriteReactor<Message> {
 public:
  // Returns the next message, which lives until the next call; null after the last one. An error ends the call.
  using Next = std::function<absl::StatusOr<const Message*>()>;

  explicit MessageWriter(Next next) : next_(std::move(next)) { Write(); }
  void OnWriteDone(bool ok) override {
    if (ok) {
      Write();
    } else {
      this->Finish(grpc::Status::CANCELLED);
    }
  }
  void OnDone() override { delete this; }

 private:
  void Write() {
    const absl::StatusOr<const Message*> message = next_();
    if (message.ok() && *message != nullptr) {
      this->StartWrite(*message);
    } else {
      this->Finish(ToGrpc(message.status()));
    }
  }

  const Next next_;
};

// Ends a call that has one reply, which is already filled in.
inline grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_MESSAGE_WRITER_H_
// SPDX-License-Identifier: Apache-2.0
