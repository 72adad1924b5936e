#include "tests/golden/formats/conversation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "grpcpp/grpcpp.h"
#include "learner/setup.h"
#include "tests/golden/formats/format_files.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"

namespace datacom::golden {
namespace {

using ::datacom::replay::testing::MakeChunk;
using ::datacom::replay::testing::SimpleRows;
using ::datacom::replay::testing::SmallOptions;
using ::datacom::replay::testing::SmallSchema;
using ::datacom::testing::IsOk;

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

// Removes what is not a part of the protocol: the experiment's text has every option of the build, the build's name has
// the revision, and words are for people.
void ClearText(google::protobuf::Message*) {}
void ClearText(v1::RegisterReply* reply) { reply->clear_experiment(); }
void ClearText(v1::LeaseReply* reply) { reply->clear_experiment(); }
void ClearText(v1::ReplayInfo* reply) { reply->clear_build(); }
void ClearText(v1::LearnerInfo* reply) { reply->clear_build(); }
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

// Calls with one request and one reply each.
template <typename Stub, typename Request, typename Reply>
class UnaryCall : public Call {
 public:
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Reply*);
  UnaryCall(Stub* stub, Method method) : stub_(stub), method_(method) {}
  bool Send(const std::string& bytes) override {
    Request request;
    if (!Parse(bytes, &request)) return false;
    grpc::ClientContext context;
    reply_.Clear();
    status_ = (stub_->*method_)(&context, request, &reply_);
    ClearText(&reply_);
    return true;
  }
  absl::StatusOr<std::string> Read() override {
    RETURN_IF_ERROR(FromGrpc(status_));
    return Serialize(reply_);
  }

 private:
  Stub* const stub_;
  const Method method_;
  grpc::Status status_;
  Reply reply_;
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

constexpr uint32_t kEpoch = 3;

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

Message RequestOf(const std::string& call, const google::protobuf::Message& message) {
  return {call, false, Serialize(message)};
}

Message ReplyOf(const std::string& call) { return {call, true, ""}; }

// An evaluator that gets the only item, plays it, and is told to leave; and what `datacom status` asks.
std::vector<Message> EvaluatorScript() {
  v1::LeaseRequest lease;
  *lease.mutable_hello() = GoldenHello();
  lease.set_evaluator("evaluator-0");
  v1::FetchRequest fetch;
  *fetch.mutable_hello() = GoldenHello();
  fetch.set_epoch(kEpoch);
  v1::TaskFileRequest file;
  *file.mutable_hello() = GoldenHello();
  file.set_sha256(std::string(64, 'a'));
  v1::LearnerInfoRequest info;
  *info.mutable_hello() = GoldenHello();
  v1::ReplayInfoRequest replay_info;
  *replay_info.mutable_hello() = GoldenHello();
  v1::ReportRequest report;
  *report.mutable_hello() = GoldenHello();
  report.set_lease(uint64_t{1} << 32 | 1);
  report.set_epoch(kEpoch);
  for (const double value : {0.5, -2.0}) {
    v1::EvaluationEpisode* episode = report.add_episodes();
    episode->set_discounted_return(value);
    episode->set_return_(2 * value);
    episode->set_max_violation(0.25);
    episode->set_sum_cost(0.75);
    episode->set_length(30);
    episode->set_success(value > 0);
    episode->set_reached(true);
    episode->set_absorbed(value < 0);
    episode->set_attempts(1);
  }
  return {RequestOf("Lease", lease),
          ReplyOf("Lease"),  // the item
          RequestOf("Fetch", fetch),
          ReplyOf("Fetch"),
          RequestOf("LearnerInfo", info),
          ReplyOf("LearnerInfo"),
          RequestOf("Report", report),
          ReplyOf("Report"),
          RequestOf("Lease", lease),
          ReplyOf("Lease"),  // finished
          RequestOf("ReplayInfo", replay_info),
          ReplyOf("ReplayInfo"),
          RequestOf("ReadTaskFile", file),
          ReplyOf("ReadTaskFile")};
}

// The run of the learner: one member, and an epoch of two episodes per evaluation.
learner::RunIdentity GoldenRun() {
  v1::Experiment experiment = GoldenExperiment();
  experiment.mutable_run()->set_eval_episodes(2);
  learner::RunSettings settings = learner::MakeRunSettings(ResolveExperiment(experiment));
  const auto resolved = std::make_shared<v1::Experiment>(*settings.resolved);
  v1::TaskFile* const file = resolved->mutable_task_options()->MutableExtension(v1::text_task)->add_file();
  file->set_sha256(std::string(64, 'a'));
  file->set_gzip("compressed");
  settings.resolved = resolved;
  return {"run", 1, settings};
}

std::unique_ptr<learner::ServedState> MakeServed(const std::string& folder, const Clock& clock) {
  auto served = std::make_unique<learner::ServedState>(GoldenRun(), folder, clock);
  served->snapshots.Publish(MakeSnapshot(4));
  EXPECT_THAT(served->policies.Write(kEpoch, {MakeSnapshot(40)}), IsOk());
  v1::EpochRecord epoch;
  epoch.set_epoch(kEpoch);
  epoch.add_members();
  served->evaluations.Add(epoch);
  served->evaluations.Finish();
  return served;
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
  subscription.add_members()->set_member(0);
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
  std::vector<Message> script = {RequestOf("Register", registration),
                                 ReplyOf("Register"),
                                 RequestOf("Subscribe", subscription),
                                 ReplyOf("Subscribe"),
                                 RequestOf("Insert", open),
                                 ReplyOf("Insert"),  // credit
                                 {"Insert", false, Rows(0, 6)},
                                 ReplyOf("Insert"),
                                 {"Insert", false, Rows(8, 1)},
                                 ReplyOf("Insert"),  // a gap
                                 {"Insert", false, Rows(6, 8)},
                                 ReplyOf("Insert"),
                                 RequestOf("Draw", first),
                                 ReplyOf("Draw"),
                                 RequestOf("Draw", MakeDraw(2, 1)),
                                 ReplyOf("Draw"),
                                 RequestOf("ReadRange", range),
                                 ReplyOf("ReadRange")};
  for (Message& message : EvaluatorScript()) script.push_back(std::move(message));
  return script;
}

Peers::Peers(const std::string& folder) {
  auto store =
      replay::Store::Open(SmallSchema(), replay::testing::StoreOptions(SmallOptions(1), folder + "/replay", &clock_));
  store_ = std::move(store).value();
  replay_ = std::make_unique<replay::ReplayService>(store_.get(), metrics_.get(), std::chrono::milliseconds(0));
  served_ = MakeServed(folder, clock_);
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
  using Register = UnaryCall<ReplayStub, v1::RegisterRequest, v1::RegisterReply>;
  using Insert = StreamCall<v1::InsertRequest, v1::InsertReply>;
  using Draw = StreamCall<v1::DrawRequest, v1::DrawReply>;
  using Range = ReadCall<ReplayStub, v1::ReadRangeRequest, v1::RowRange>;
  using ReplayInfo = UnaryCall<ReplayStub, v1::ReplayInfoRequest, v1::ReplayInfo>;
  using Subscription = ReadCall<LearnerStub, v1::SubscribeRequest, v1::SnapshotChunk>;
  using Lease = UnaryCall<LearnerStub, v1::LeaseRequest, v1::LeaseReply>;
  using Fetch = ReadCall<LearnerStub, v1::FetchRequest, v1::SnapshotChunk>;
  using TaskFile = ReadCall<LearnerStub, v1::TaskFileRequest, v1::TaskFileChunk>;
  using Report = UnaryCall<LearnerStub, v1::ReportRequest, v1::ReportReply>;
  using LearnerInfo = UnaryCall<LearnerStub, v1::LearnerInfoRequest, v1::LearnerInfo>;
  const auto replay = [this] { return v1::Replay::NewStub(channel_); };
  const auto learner = [this] { return v1::Learner::NewStub(channel_); };
  if (call == "Register") return std::make_unique<Owning<ReplayStub, Register>>(replay(), &ReplayStub::Register);
  if (call == "Insert") return std::make_unique<Owning<ReplayStub, Insert>>(replay(), &ReplayStub::Insert);
  if (call == "Draw") return std::make_unique<Owning<ReplayStub, Draw>>(replay(), &ReplayStub::Draw);
  if (call == "ReadRange") return std::make_unique<Owning<ReplayStub, Range>>(replay(), &ReplayStub::ReadRange);
  if (call == "ReplayInfo") return std::make_unique<Owning<ReplayStub, ReplayInfo>>(replay(), &ReplayStub::Info);
  if (call == "Lease") return std::make_unique<Owning<LearnerStub, Lease>>(learner(), &LearnerStub::Lease);
  if (call == "Fetch") return std::make_unique<Owning<LearnerStub, Fetch>>(learner(), &LearnerStub::Fetch);
  if (call == "ReadTaskFile") {
    return std::make_unique<Owning<LearnerStub, TaskFile>>(learner(), &LearnerStub::ReadTaskFile);
  }
  if (call == "Report") return std::make_unique<Owning<LearnerStub, Report>>(learner(), &LearnerStub::Report);
  if (call == "LearnerInfo") return std::make_unique<Owning<LearnerStub, LearnerInfo>>(learner(), &LearnerStub::Info);
  return std::make_unique<Owning<LearnerStub, Subscription>>(learner(), &LearnerStub::Subscribe);
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
// SPDX-License-Identifier: Apache-2.0
