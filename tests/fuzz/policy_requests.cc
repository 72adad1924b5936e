// Requests for policies, handed to the learner's service as gRPC does (learner/learner_service.h): a request is refused
// with a reason, or answered with the whole snapshots of the members that it names.
//
// Input: a byte of flags, then the bytes of a SubscribeRequest or, with kFetch, of a FetchRequest. With kGreeted it
// gets a sound greeting. Bytes that are not such a message are refused.
#include <map>
#include <set>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/base/version.h"
#include "common/rpc/channel.h"
#include "learner/learner_service.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/snapshot_inputs.h"
#include "tests/testing/manual_clock.h"

namespace datacom::fuzz {
namespace {

enum Flags { kFetch = 1, kGreeted = 2 };
constexpr uint32_t kMembers = 2, kEpoch = 3;

// gRPC's side of a stream of chunks. Write is called by the service's threads.
class Writer final : public grpc::ServerCallbackWriter<grpc::ByteBuffer> {
 public:
  void Bind(grpc::ServerWriteReactor<grpc::ByteBuffer>* reactor) { BindReactor(reactor); }
  void Write(const grpc::ByteBuffer* chunk, grpc::WriteOptions) override {
    pending = chunk;
    if (!written.HasBeenNotified()) written.Notify();
  }
  void Finish(grpc::Status status) override {
    finished = true;
    end = FromGrpc(status);
  }
  void WriteAndFinish(const grpc::ByteBuffer*, grpc::WriteOptions, grpc::Status) override { MUST(false); }
  void SendInitialMetadata() override {}

  const grpc::ByteBuffer* pending = nullptr;
  bool finished = false;
  absl::Status end;
  absl::Notification written;

 private:
  grpc::internal::ServerReactor* reactor() override { return nullptr; }
  void CallOnDone() override {}
};

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

v1::SnapshotChunk ChunkOf(grpc::ByteBuffer bytes) {
  v1::SnapshotChunk chunk;
  MUST(grpc::SerializationTraits<v1::SnapshotChunk>::Deserialize(&bytes, &chunk).ok());
  return chunk;
}

Snapshot SnapshotOf(uint32_t member) {
  Snapshot snapshot = SmallSnapshot();
  snapshot.member = member;
  return snapshot;
}

// A learner that has published a snapshot of each member and written an epoch.
class Learner {
 public:
  Learner() {
    MustAccept(state_.policies.Write(kEpoch, {SnapshotOf(0), SnapshotOf(1)}));
    // The thread of the subscriptions has seen all publications before the first input, and sleeps from then on.
    for (uint32_t member = 0; member < kMembers; ++member) {
      Writer probe;
      Stream* const stream = Open(member, &probe);
      state_.snapshots.Publish(SnapshotOf(member));
      probe.written.WaitForNotification();
      Leave(stream, &probe);
    }
  }

  // The snapshots that arrive, by member, and how the call ended.
  absl::Status Subscribe(const std::string& request, std::map<uint32_t, Snapshot>* arrived) {
    Writer writer;
    const grpc::ByteBuffer buffer = BufferOf(request);
    Stream* const stream = service_.Subscribe(nullptr, &buffer);
    writer.Bind(stream);
    Receive(stream, &writer, arrived);
    if (!writer.finished) {
      stream->OnCancel();
      MUST(absl::IsCancelled(writer.end));
      writer.end = absl::OkStatus();
    }
    stream->OnDone();
    MUST(subscribers_ == 0);
    return writer.end;
  }

  absl::Status Fetch(const std::string& request, std::map<uint32_t, Snapshot>* arrived) {
    Writer writer;
    const grpc::ByteBuffer buffer = BufferOf(request);
    Stream* const stream = service_.Fetch(nullptr, &buffer);
    writer.Bind(stream);
    Receive(stream, &writer, arrived);
    MUST(writer.finished);
    stream->OnDone();
    return writer.end;
  }

 private:
  using Stream = grpc::ServerWriteReactor<grpc::ByteBuffer>;

  Stream* Open(uint32_t member, Writer* writer) {
    v1::SubscribeRequest request;
    *request.mutable_hello() = MakeHello("run", 0);
    request.add_members()->set_member(member);
    const grpc::ByteBuffer buffer = BufferOf(request.SerializeAsString());
    Stream* const stream = service_.Subscribe(nullptr, &buffer);
    writer->Bind(stream);
    return stream;
  }

  static void Leave(Stream* stream, Writer* writer) {
    stream->OnWriteDone(false);
    MUST(absl::IsCancelled(writer->end));
    stream->OnDone();
  }

  static void Receive(Stream* stream, Writer* writer, std::map<uint32_t, Snapshot>* arrived) {
    v1::SnapshotManifest manifest;
    std::string data;
    bool whole = true;
    while (const grpc::ByteBuffer* bytes = std::exchange(writer->pending, nullptr)) {
      const v1::SnapshotChunk chunk = ChunkOf(*bytes);
      MUST(!writer->finished && chunk.has_manifest() == whole);
      if (whole) manifest = chunk.manifest();
      data = (whole ? "" : data) + chunk.data();
      whole = chunk.last();
      if (whole) {
        auto snapshot = SnapshotFromManifest(manifest, data);
        MustAccept(snapshot.status());
        MUST(arrived->emplace(snapshot->member, *snapshot).second);
      }
      stream->OnWriteDone(true);
    }
    MUST(whole);
  }

  static learner::RunIdentity Run() {
    learner::RunSettings settings;
    const auto resolved = std::make_shared<v1::Experiment>();
    for (uint32_t member = 0; member < kMembers; ++member) resolved->add_members();
    resolved->mutable_run()->set_eval_episodes(25);
    settings.resolved = resolved;
    return {"run", 1, settings};
  }

  ManualClock clock_;
  learner::ServedState state_{Run(), Folder(), clock_};
  int subscribers_ = 0;
  learner::LearnerService service_{"run", state_, [this](int count) { subscribers_ = count; }};
};

bool Greeted(const v1::Hello& hello) { return hello.protocol() == kProtocolVersion && hello.run_id() == "run"; }

// These members, in snapshots as they were published.
void MustHold(const std::map<uint32_t, Snapshot>& arrived, const std::set<uint32_t>& members) {
  MUST(arrived.size() == members.size());
  for (const uint32_t member : members) MUST(EncodeSnapshot(arrived.at(member)) == EncodeSnapshot(SnapshotOf(member)));
}

// Returns whether each member exists and is named once; `*missing` receives those whose published version is not named.
bool Members(const v1::SubscribeRequest& request, std::set<uint32_t>* missing) {
  std::set<uint32_t> named;
  for (const v1::Subscription& subscription : request.members()) {
    const uint32_t member = subscription.member();
    if (member >= kMembers || !named.insert(member).second) return false;
    const SnapshotVersion published = SnapshotOf(member).version;
    const v1::PolicyVersion& held = subscription.version();
    const bool has =
        subscription.has_version() && held.incarnation() == published.incarnation && held.update() == published.update;
    if (!has) missing->insert(member);
  }
  return !named.empty();
}

// Returns whether the bytes are a request; with kGreeted, `*bytes` becomes that request with a sound greeting.
template <typename Request>
bool Parse(uint8_t flags, std::string* bytes, Request* request) {
  if (!request->ParseFromString(*bytes)) return false;
  if (flags & kGreeted) {
    *request->mutable_hello() = MakeHello("run", 0);
    *bytes = request->SerializeAsString();
  }
  return Greeted(request->hello());
}

void Subscribe(Learner* learner, uint8_t flags, std::string bytes) {
  v1::SubscribeRequest request;
  const bool sound = Parse(flags, &bytes, &request);
  std::set<uint32_t> missing;
  std::map<uint32_t, Snapshot> arrived;
  const absl::Status ended = learner->Subscribe(bytes, &arrived);
  if (sound && Members(request, &missing)) {
    MustAccept(ended);
    return MustHold(arrived, missing);
  }
  MustRefuse(ended);
  MUST(arrived.empty());
}

void Fetch(Learner* learner, uint8_t flags, std::string bytes) {
  v1::FetchRequest request;
  const bool sound = Parse(flags, &bytes, &request);
  std::map<uint32_t, Snapshot> arrived;
  const absl::Status ended = learner->Fetch(bytes, &arrived);
  if (sound && request.epoch() == kEpoch && request.member() < kMembers) {
    MustAccept(ended);
    return MustHold(arrived, {request.member()});
  }
  MustRefuse(ended);
  MUST(arrived.empty());
}

}  // namespace

static void Run(absl::string_view bytes) {
  static Learner* const learner = new Learner;  // never deleted: its thread ends with the process
  Input input(bytes);
  const uint8_t flags = input.Byte();
  const std::string request(input.Rest());
  if (flags & kFetch) {
    Fetch(learner, flags, request);
  } else {
    Subscribe(learner, flags, request);
  }
}

static std::vector<Seed> Seeds() {
  const auto flags = [](int bits) { return std::string(1, static_cast<char>(bits)); };
  v1::SubscribeRequest subscribe;
  for (uint32_t member = 0; member < kMembers; ++member) subscribe.add_members()->set_member(member);
  v1::FetchRequest fetch;
  fetch.set_member(1);
  fetch.set_epoch(kEpoch);
  std::vector<Seed> seeds = {{"subscribe", flags(kGreeted) + subscribe.SerializeAsString()},
                             {"fetch", flags(kGreeted | kFetch) + fetch.SerializeAsString()}};
  v1::PolicyVersion* const held = subscribe.mutable_members(0)->mutable_version();
  held->set_incarnation(SnapshotOf(0).version.incarnation);
  held->set_update(SnapshotOf(0).version.update);
  seeds.push_back({"subscribe_changed", flags(kGreeted) + subscribe.SerializeAsString()});
  subscribe.mutable_members(1)->set_member(UINT32_MAX);
  seeds.push_back({"last_member", flags(kGreeted) + subscribe.SerializeAsString()});
  subscribe.mutable_members(1)->set_member(1);
  *subscribe.mutable_hello() = MakeHello("run", 0);
  seeds.push_back({"greeting", flags(0) + subscribe.SerializeAsString()});
  fetch.set_member(kMembers);
  seeds.push_back({"fetch_no_member", flags(kGreeted | kFetch) + fetch.SerializeAsString()});
  return seeds;
}

static const Target kTarget("policy_requests", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0
