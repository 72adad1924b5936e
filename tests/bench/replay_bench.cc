// Speed of the replay in named workloads (Google Benchmark; --benchmark_format=json):
//   replay/draw          one 64 + 6 draw of one member at the store, rows in memory
//   replay/insert_store  one 64 KiB chunk at the store, without transport
//   replay/insert_empty  64 KiB chunks over gRPC on loopback to a handler that only counts them: the transport's part
//   replay/insert_grpc   the same stream into the real service
// insert_grpc / insert_empty is the service's share of the transport's rate. At most kWindow chunks are in flight. The
// ring has wrapped before the measurement: the first pass over a new file includes the kernel's cost of every page.
#include <atomic>
#include <filesystem>

#include "benchmark/benchmark.h"
#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "grpcpp/grpcpp.h"
#include "replay/replay_service.h"
#include "tests/testing/temporary_folder.h"
#include "tests/testing/tls_files.h"
#include "tests/testing/wire_rows.h"

namespace datacom {
namespace {

constexpr size_t kChunkBytes = 64 << 10;
constexpr uint64_t kWindow = 16;
constexpr uint64_t kFillRows = 400000;  // more than the ring holds

RowSchema BenchSchema() { return RowSchema::For(/*obs_dim=*/16, /*action_dim=*/3); }

uint32_t ChunkRows() {
  static const auto rows = static_cast<uint32_t>(kChunkBytes / BenchSchema().wire_row_bytes());
  return rows;
}

// Makes the chunk's rows those from `first_sequence` on.
void MoveTo(const RowSchema& schema, uint64_t first_sequence, v1::Chunk* chunk) {
  chunk->set_first_sequence(first_sequence);
  testing::NumberRows(schema, "step", first_sequence, ChunkRows(), chunk->mutable_columns());
}

v1::Chunk BenchChunk() {
  const RowSchema schema = BenchSchema();
  v1::Chunk chunk;
  chunk.set_row_count(ChunkRows());
  chunk.set_columns(std::string(ChunkRows() * schema.wire_row_bytes(), '\0'));
  // Every fourth row is a failure (cost > 0).
  const size_t cost = PlaceOf(schema.wire(), "cost").before * ChunkRows();
  const float value = 1;
  for (uint32_t i = 0; i < ChunkRows(); i += 4)
    chunk.mutable_columns()->replace(cost + 4 * i, 4, reinterpret_cast<const char*>(&value), 4);
  return chunk;
}

constexpr uint64_t kMinSize = 10000;  // rows before the first update

// The learner has completed every update that `rows` rows allow: the store grants new credit.
void LearnFrom(replay::Store* store, uint64_t rows) {
  if (rows > kMinSize && !store->Announce(rows - kMinSize).ok()) std::abort();
}

// A store in a new folder, whose ring has wrapped.
class BenchStore {
 public:
  BenchStore() {
    replay::Options options;
    options.members.push_back({.seed = 1});
    options.limits.schedule = {.env_steps = 1000000000000, .min_size = kMinSize, .updates_per_step = 1};
    options.limits.tolerance = 8 * kWindow * ChunkRows();
    options.layout.capacity = 200000;
    options.layout.failure_capacity = 20000;
    options.layout.slack = options.limits.tolerance + 30000;
    options.batch = 64;
    options.failure_batch = 6;
    options.run_id = "run";
    options.folder = folder_.path();
    auto store = replay::Store::Open(BenchSchema(), options);
    if (!store.ok()) {
      std::fprintf(stderr, "replay_bench: %s\n", std::string(store.status().message()).c_str());
      std::exit(1);
    }
    store_ = std::move(*store);
    session_ = store_->Register("bench", 1, 16)->session();
    const uint64_t stream = *store_->Connect(session_, 1);
    v1::Chunk chunk = BenchChunk();
    v1::InsertReply reply;
    for (; rows_ < kFillRows && reply.rejections_size() == 0; rows_ += ChunkRows()) {
      MoveTo(BenchSchema(), rows_, &chunk);
      if (!store_->Insert(session_, stream, chunk, &reply).ok()) break;
      LearnFrom(store_.get(), rows_ + ChunkRows());
    }
    if (rows_ < kFillRows) {
      std::fprintf(stderr, "replay_bench: rows were refused\n");
      std::exit(1);
    }
  }
  replay::Store* store() { return store_.get(); }
  Metrics* metrics() { return metrics_.get(); }
  uint32_t session() const { return session_; }
  uint64_t rows() const { return rows_; }  // stored so far

 private:
  const testing::TemporaryFolder folder_;
  const std::unique_ptr<Metrics> metrics_ = Metrics::Start({"replay", "run", "", "", ""}).value();
  std::unique_ptr<replay::Store> store_;
  uint32_t session_ = 0;
  uint64_t rows_ = 0;
};

void InsertStore(benchmark::State& state) {
  BenchStore bench;
  const uint64_t stream = *bench.store()->Connect(bench.session(), 1);
  const RowSchema schema = BenchSchema();
  v1::Chunk chunk = BenchChunk();
  uint64_t rows = bench.rows();
  for (auto _ : state) {
    MoveTo(schema, rows, &chunk);
    v1::InsertReply reply;
    if (!bench.store()->Insert(bench.session(), stream, chunk, &reply).ok() || reply.rejections_size() > 0)
      state.SkipWithError("refused");
    rows += ChunkRows();
    if (rows / ChunkRows() % kWindow == 0) LearnFrom(bench.store(), rows);
  }
  rows -= bench.rows();
  state.SetItemsProcessed(static_cast<int64_t>(rows));
  state.SetBytesProcessed(static_cast<int64_t>(rows * BenchSchema().wire_row_bytes()));
}

void Draw(benchmark::State& state) {
  BenchStore bench;
  const uint64_t newest = bench.rows() - kMinSize;  // the first update sees min_size + 1 rows
  uint64_t update = newest - 10000;
  v1::DrawReply reply;
  for (auto _ : state) {
    reply.Clear();
    if (!bench.store()->Draw(update, &reply).ok()) state.SkipWithError("no draw");
    update = update < newest ? update + 1 : newest - 10000;
  }
}

class EmptyStream : public grpc::ServerBidiReactor<v1::InsertRequest, v1::InsertReply> {
 public:
  EmptyStream() { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    rows_ += request_.chunk().row_count();
    if (!writing_.exchange(true)) Answer();
    StartRead(&request_);
  }
  void OnWriteDone(bool ok) override {
    writing_ = false;
    if (ok && rows_ != told_ && !writing_.exchange(true)) Answer();
  }
  void OnDone() override { delete this; }

 private:
  void Answer() {
    told_ = rows_.load();
    reply_.Clear();
    reply_.add_committed()->set_next_sequence(told_);
    StartWrite(&reply_);
  }
  v1::InsertRequest request_;
  v1::InsertReply reply_;
  std::atomic<uint64_t> rows_{0};
  std::atomic<uint64_t> told_{0};
  std::atomic<bool> writing_{false};
};

class EmptyService : public v1::Replay::CallbackService {
  grpc::ServerBidiReactor<v1::InsertRequest, v1::InsertReply>* Insert(grpc::CallbackServerContext*) override {
    return new EmptyStream;
  }
};

// Sends chunks, at most kWindow unacknowledged. Returns bytes per second until the last acknowledgement.
// `store`: the service's, if it has one.
double Stream(benchmark::State& state, const std::string& address, uint32_t session, replay::Store* store,
              const Security& security = {}) {
  const auto stub = v1::Replay::NewStub(MakeChannel(address, security));
  grpc::ClientContext context;
  const auto stream = stub->Insert(&context);
  v1::InsertRequest request;
  *request.mutable_open()->mutable_hello() = MakeHello("run", BenchSchema().fingerprint());
  request.mutable_open()->set_session(session);
  request.mutable_open()->set_incarnation(1);
  stream->Write(request);
  const RowSchema schema = BenchSchema();
  *request.mutable_chunk() = BenchChunk();
  uint64_t sent = 0, acknowledged = 0;
  v1::InsertReply reply;
  const auto read = [&] {
    if (!stream->Read(&reply) || reply.rejections_size() > 0) state.SkipWithError("refused");
    for (const auto& committed : reply.committed()) acknowledged = committed.next_sequence();
    if (store != nullptr && acknowledged / ChunkRows() % kWindow == 0) LearnFrom(store, acknowledged);
  };
  read();
  const uint64_t begin = acknowledged;
  sent = begin;
  const Clock::Time start = Clock::Real().Now();
  for (auto _ : state) {
    while (sent - acknowledged >= kWindow * ChunkRows()) read();
    MoveTo(schema, sent, request.mutable_chunk());
    stream->Write(request);
    sent += ChunkRows();
  }
  while (acknowledged < sent) read();
  const double seconds = Seconds(Clock::Real().Now() - start);
  stream->WritesDone();
  while (stream->Read(&reply)) {
  }
  stream->Finish();
  sent -= begin;
  state.SetItemsProcessed(static_cast<int64_t>(sent));
  const double rate = static_cast<double>(sent * BenchSchema().wire_row_bytes()) / seconds;
  state.counters["value"] = rate / 1e6;
  state.SetLabel("MB/s");
  return rate / 1e6;
}

double empty_rate = 0;  // MB/s of the newest InsertEmpty: the peer of InsertGrpc, measured before it in the same run

void InsertEmpty(benchmark::State& state) {
  EmptyService service;
  const auto server = Server::Start("127.0.0.1:0", {&service});
  empty_rate = Stream(state, (*server)->address(), 1, nullptr);
  (*server)->Shutdown(std::chrono::milliseconds(1000));
}

double plain_rate = 0;  // MB/s of the newest InsertGrpc: the peer of InsertTls

void InsertGrpc(benchmark::State& state) {
  BenchStore bench;
  replay::ReplayService service(bench.store(), bench.metrics(), std::chrono::milliseconds(250));
  const auto server = Server::Start("127.0.0.1:0", {&service});
  const double rate = Stream(state, (*server)->address(), bench.session(), bench.store());
  plain_rate = rate;
  if (empty_rate > 0) {
    state.counters["floor"] = empty_rate;
    state.counters["ratio"] = rate / empty_rate;
  }
  state.SetLabel("MB/s, share of an empty handler's");
  service.Drain();
  (*server)->Shutdown(std::chrono::milliseconds(1000));
}

// InsertGrpc over mutual TLS with a token: the cost of transport security.
void InsertTls(benchmark::State& state) {
  const testing::TlsFiles files;
  BenchStore bench;
  replay::ReplayService service(bench.store(), bench.metrics(), std::chrono::milliseconds(250));
  const auto server = Server::Start("127.0.0.1:0", {&service}, {files.security(), ""});
  const double rate = Stream(state, (*server)->address(), bench.session(), bench.store(), files.security());
  if (plain_rate > 0) {
    state.counters["floor"] = plain_rate;
    state.counters["ratio"] = rate / plain_rate;
  }
  state.SetLabel("MB/s, share of plain text's");
  service.Drain();
  (*server)->Shutdown(std::chrono::milliseconds(1000));
}

BENCHMARK(Draw)->Name("replay/draw");
BENCHMARK(InsertStore)->Name("replay/insert_store");
BENCHMARK(InsertEmpty)->Name("replay/insert_empty")->UseRealTime();
BENCHMARK(InsertGrpc)->Name("replay/insert_grpc")->UseRealTime();
BENCHMARK(InsertTls)->Name("replay/insert_tls")->UseRealTime();

}  // namespace
}  // namespace datacom

BENCHMARK_MAIN();
// SPDX-License-Identifier: Apache-2.0
