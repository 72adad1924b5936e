#include "common/rpc/replay_client.h"

#include "common/rpc/channel.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "gtest/gtest.h"

namespace datacom {
namespace {

constexpr std::chrono::milliseconds kPatience{60000};  // far longer than a busy machine needs

// A message, then the status of a stream that was reset.
class CutRange : public v1::Replay::Service {
 public:
  grpc::Status ReadRange(grpc::ServerContext*, const v1::ReadRangeRequest*,
                         grpc::ServerWriter<v1::RowRange>* writer) override {
    writer->Write(v1::RowRange());
    return grpc::Status::CANCELLED;
  }
};

// The caller would take CANCELLED for a request to stop.
TEST(ReadRange, ACallCancelledByThePeerIsTransient) {
  CutRange service;
  const auto server = Server::Start("127.0.0.1:0", {&service}).value();
  int messages = 0;
  const absl::Status status = ReadRange(server->InProcessChannel(), {}, kPatience, [&](const v1::RowRange&) {
    ++messages;
    return absl::OkStatus();
  });
  EXPECT_EQ(messages, 1);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(ReadRange, ReturnsTheConsumersErrorUnchanged) {
  CutRange service;
  const auto server = Server::Start("127.0.0.1:0", {&service}).value();
  const absl::Status status = ReadRange(server->InProcessChannel(), {}, kPatience,
                                        [](const v1::RowRange&) { return absl::DataLossError("a row too many"); });
  EXPECT_EQ(status, absl::DataLossError("a row too many"));
}

}  // namespace
}  // namespace datacom
