#include "tests/golden/formats/conversation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "tests/replay/replay_fixture.h"

namespace datacom::golden {
namespace {

using ::datacom::testing::MakeChunk;
using ::datacom::testing::SimpleRows;
using ::datacom::testing::SmallExperiment;
using ::datacom::testing::SmallSchema;

std::string Serialize(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

// Whether this build knows the bytes as such a message. It would keep fields that it does not know, so these are
// dropped.
template <typename Message>
bool Parse(const std::string& bytes, Message* message) {
  if (!message->ParseFromString(bytes)) return false;
  message->DiscardUnknownFields();
  return Serialize(*message) == bytes;
}

// What is not a part of the protocol: the experiment's text has every option of the build, and words are for people.
void ClearText(google::protobuf::Message*) {}
void ClearText(v1::RegisterReply* reply) { reply->clear_experiment(); }
void ClearText(v1::InsertReply* reply) {
  for (v1::Rejection& rejection : *reply->mutable_rejections()) rejection.clear_message();
}

// OK would mean that the call ended although a reply was expected.
template <typename Stream>
absl::Status FinalStatus(Stream* stream) {
  absl::Status status = FromGrpc(stream->Finish());
  return status.ok() ? absl::OutOfRangeError("the call ended without a reply") : status;
}

template <typename Stream, typename Reply>
absl::StatusOr<std::string> ReadReply(Stream* stream, Reply reply) {
  if (!stream->Read(&reply)) return FinalStatus(stream);
  ClearText(&reply);
  return Serialize(reply);
}

class RegisterCall : public Call {
 public:
  explicit RegisterCall(v1::Replay::Stub* stub) : stub_(stub) {}
  bool Send(const std::string& bytes) override {
    v1::RegisterRequest request;
    if (!Parse(bytes, &request)) return false;
    status_ = stub_->Register(&context_, request, &reply_);
    ClearText(&reply_);
    return true;
  }
  absl::StatusOr<std::string> Read() override {
    RETURN_IF_ERROR(FromGrpc(status_));
    return Serialize(reply_);
  }

 private:
  v1::Replay::Stub* const stub_;
  grpc::ClientContext context_;
  grpc::Status status_;
  v1::RegisterReply reply_;
};

// A call with one request and many replies.
template <typename Stub, typename Request, typename Reply>
class ReadCall : public Call {
 public:
  using Start = std::unique_ptr<grpc::ClientReader<Reply>> (Stub::*)(grpc::ClientContext*, const Request&);
  ReadCall(Stub* stub, Start start) : stub_(stub), start_(start) {}
  ~ReadCall() override { context_.TryCancel(); }
  bool Send(const std::string& bytes) override {
    Request request;
    if (!Parse(bytes, &request)) return false;
    stream_ = (stub_->*start_)(&context_, request);
    return true;
  }
  absl::StatusOr<std::string> Read() override { return ReadReply(stream_.get(), Reply()); }

 private:
  Stub* const stub_;
  const Start start_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<Reply>> stream_;
};

// A call with many requests and many replies.
template <typename Request, typename Reply>
class StreamCall : public Call {
 public:
  using Start = std::unique_ptr<grpc::ClientReaderWriter<Request, Reply>> (v1::Replay::Stub::*)(grpc::ClientContext*);
  StreamCall(v1::Replay::Stub* stub, Start start) : stream_((stub->*start)(&context_)) {}
  ~StreamCall() override { context_.TryCancel(); }
  bool Send(const std::string& bytes) override {
    Request request;
    return Parse(bytes, &request) && stream_->Write(request);
  }
  absl::StatusOr<std::string> Read() override { return ReadReply(stream_.get(), Reply()); }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<Request, Reply>> stream_;
};

// Keeps the stub for as long as the call.
template <typename Stub, typename Inner>
class Owning : public Call {
 public:
  template <typename... Arguments>
  explicit Owning(std::unique_ptr<Stub> stub, Arguments... arguments)
      : stub_(std::move(stub)), inner_(stub_.get(), arguments...) {}
  bool Send(const std::string& bytes) override { return inner_.Send(bytes); }
  absl::StatusOr<std::string> Read() override { return inner_.Read(); }

 private:
  const std::unique_ptr<Stub> stub_;
  Inner inner_;
};

v1::Hello GoldenHello() {
  v1::Hello hello = MakeHello("run", SmallSchema().fingerprint());
  hello.set_build("golden");
  return hello;
}

Snapshot MakeSnapshot(uint64_t update) {
  Snapshot snapshot;
  snapshot.run_id = "run";
  snapshot.version = {1, update};
  snapshot.task = "cartpole";
  snapshot.acting_rule = "safe_map";
  snapshot.arrays = {{"actor.mean.0.bias", {3}, {1, 2, 3}}};
  snapshot.scalars = {{"atacom_gain", 60}, {"delta", 0.75}};
  return snapshot;
}

v1::DrawRequest MakeDraw(uint64_t update, uint64_t completed) {
  v1::DrawRequest request;
  request.set_draw_update(update);
  request.set_completed_update(completed);
  return request;
}

// A chunk in an insert stream.
std::string Rows(uint64_t first, uint32_t count) {
  v1::InsertRequest request;
  *request.mutable_chunk() = MakeChunk(0, first, SimpleRows(first, count));
  return Serialize(request);
}

}  // namespace

std::string Encode(const std::vector<Message>& messages) {
  std::string content;
  for (const Message& message : messages) {
    PutSized(message.call, &content);
    PutSized(message.reply ? "reply" : "request", &content);
    PutSized(message.bytes, &content);
  }
  return content;
}

absl::StatusOr<std::vector<Message>> Decode(absl::string_view content) {
  std::vector<Message> messages;
  while (!content.empty()) {
    absl::string_view call, kind, bytes;
    if (!TakeSized(&content, &call) || !TakeSized(&content, &kind) || !TakeSized(&content, &bytes)) {
      return absl::DataLossError(absl::StrCat("the conversation ends inside message ", messages.size()));
    }
    messages.push_back({std::string(call), kind == "reply", std::string(bytes)});
  }
  return messages;
}

std::vector<Message> Script() {
  v1::RegisterRequest registration;
  *registration.mutable_hello() = GoldenHello();
  registration.set_actor("actor-0");
  registration.set_incarnation(7);
  registration.set_environments(1);
  v1::SubscribeRequest subscription;
  *subscription.mutable_hello() = GoldenHello();
  subscription.set_member_count(1);
  v1::InsertRequest open;
  *open.mutable_open()->mutable_hello() = GoldenHello();
  open.mutable_open()->set_session(1);
  open.mutable_open()->set_incarnation(7);
  v1::DrawRequest first = MakeDraw(1, 0);
  *first.mutable_hello() = GoldenHello();
  first.set_incarnation(1);
  v1::ReadRangeRequest range;
  *range.mutable_hello() = GoldenHello();
  range.set_from(2);
  range.set_to(5);
  const auto request = [](const std::string& call, const google::protobuf::Message& message) {
    return Message{call, false, Serialize(message)};
  };
  const auto reply = [](const std::string& call) { return Message{call, true, ""}; };
  return {request("Register", registration),
          reply("Register"),
          request("Subscribe", subscription),
          reply("Subscribe"),
          request("Insert", open),
          reply("Insert"),  // credit
          {"Insert", false, Rows(0, 6)},
          reply("Insert"),
          {"Insert", false, Rows(8, 1)},
          reply("Insert"),  // a gap
          {"Insert", false, Rows(6, 8)},
          reply("Insert"),
          request("Draw", first),
          reply("Draw"),
          request("Draw", MakeDraw(2, 1)),
          reply("Draw"),
          request("ReadRange", range),
          reply("ReadRange")};
}

Peers::Peers(const std::string& folder) {
  auto store = Store::Open(SmallSchema(), testing::StoreOptions(SmallExperiment(1), folder + "/replay", &clock_));
  store_ = std::move(store).value();
  replay_ = std::make_unique<ReplayService>(store_.get(), nullptr, std::chrono::milliseconds(0));
  learner::RunIdentity run{"run", 1, ResolveExperiment(SmallExperiment(1))};
  served_ = std::make_unique<learner::ServedState>(run, folder, clock_);
  served_->snapshots.Publish(MakeSnapshot(4));
  learner_ = std::make_unique<learner::LearnerService>("run", *served_, [](int) {});
  auto server = Server::Start("127.0.0.1:0", {replay_.get(), learner_.get()});
  server_ = std::move(server).value();
  channel_ = server_->InProcessChannel();
}

Peers::~Peers() {
  replay_->Drain();
  served_->snapshots.Close();
  channel_.reset();
  server_->Shutdown(std::chrono::milliseconds(2000));
  server_.reset();
}

std::unique_ptr<Call> Peers::Open(const std::string& call) {
  using ReplayStub = v1::Replay::Stub;
  using LearnerStub = v1::Learner::Stub;
  using Range = ReadCall<ReplayStub, v1::ReadRangeRequest, v1::RowRange>;
  using Subscription = ReadCall<LearnerStub, v1::SubscribeRequest, v1::SnapshotChunk>;
  using Insert = StreamCall<v1::InsertRequest, v1::InsertReply>;
  using Draw = StreamCall<v1::DrawRequest, v1::DrawReply>;
  auto replay = v1::Replay::NewStub(channel_);
  if (call == "Register") return std::make_unique<Owning<ReplayStub, RegisterCall>>(std::move(replay));
  if (call == "Insert") return std::make_unique<Owning<ReplayStub, Insert>>(std::move(replay), &ReplayStub::Insert);
  if (call == "Draw") return std::make_unique<Owning<ReplayStub, Draw>>(std::move(replay), &ReplayStub::Draw);
  if (call == "ReadRange")
    return std::make_unique<Owning<ReplayStub, Range>>(std::move(replay), &ReplayStub::ReadRange);
  return std::make_unique<Owning<LearnerStub, Subscription>>(v1::Learner::NewStub(channel_), &LearnerStub::Subscribe);
}

absl::StatusOr<std::vector<Message>> Peers::Replay(const std::vector<Message>& messages) {
  std::map<std::string, std::unique_ptr<Call>> calls;
  std::vector<Message> answered;
  for (const Message& message : messages) {
    std::unique_ptr<Call>& call = calls[message.call];
    if (call == nullptr) call = Open(message.call);
    answered.push_back(message);
    if (message.reply) {
      ASSIGN_OR_RETURN(answered.back().bytes, call->Read());
    } else if (!call->Send(message.bytes)) {
      return absl::InvalidArgumentError(absl::StrCat("message ", answered.size() - 1, ", a request of ", message.call,
                                                     ", is not one that this build knows in all its fields"));
    }
  }
  return answered;
}

absl::StatusOr<std::string> Peers::FirstReply(const std::string& call, const std::string& request) {
  const std::unique_ptr<Call> opened = Open(call);
  if (!opened->Send(request)) return absl::InvalidArgumentError(call + ": not a request that this build knows");
  return opened->Read();
}

}  // namespace datacom::golden
