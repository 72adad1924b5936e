// What replay.sync costs: actors send 16 rows at a time over gRPC on loopback into the real service, whose rings lie in
// a real folder, with sync off and on, for 1 and 16 actors. Prints rows/s, msyncs/s and rows per msync.
//
//   datacom-bench-replay-sync [--folder DIR] [--seconds S] [--rounds N]
//
// The rounds measure the four cases in turn; a line has the median of a case and, with sync on, the share of its rate
// with sync off. The program replaces msync in order to count it. An actor holds credit for 64 rows. One row in 16 is a
// failure (cost > 0), so that both rings of the member are written.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "common/rpc/insert_session.h"
#include "replay/replay_service.h"
#include "spdlog/spdlog.h"
#include "tests/testing/temporary_folder.h"
#include "tests/testing/wire_rows.h"

namespace datacom {
namespace {

std::atomic<uint64_t> syncs{0};

}  // namespace
}  // namespace datacom

extern "C" int msync(void* address, size_t bytes, int flags) {
  ++datacom::syncs;
  return static_cast<int>(::syscall(SYS_msync, address, bytes, flags));
}

namespace datacom {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kChunkRows = 16;
constexpr uint64_t kCreditRows = 64;  // per actor

struct Case {
  bool sync = false;
  int actors = 1;
};

struct Rates {
  double rows = 0, syncs = 0;  // per second
};

RowSchema BenchSchema() { return RowSchema::For(/*obs_dim=*/16, /*action_dim=*/3); }

// Columns of zeros; the first row is a failure.
std::string BenchColumns() {
  const RowSchema schema = BenchSchema();
  std::string columns(kChunkRows * schema.wire_row_bytes(), '\0');
  const size_t cost = PlaceOf(schema.wire(), "cost").before * kChunkRows;
  const float value = 1;
  std::memcpy(columns.data() + cost, &value, sizeof value);
  return columns;
}

replay::Options StoreOptions(const Case& one, const std::string& folder) {
  replay::Options options;
  options.members.push_back({.seed = 1});
  options.limits.schedule = {.env_steps = 100000000000, .min_size = 10000000000};  // no learner takes part
  options.limits.tolerance = 2 * kCreditRows * static_cast<uint64_t>(one.actors);
  options.layout.capacity = 100000;
  options.layout.failure_capacity = 20000;
  options.layout.slack = options.limits.tolerance + 30000;
  options.sync = one.sync;
  options.run_id = "run";
  options.folder = folder;
  return options;
}

void Fail(const absl::Status& status) {
  std::fprintf(stderr, "datacom-bench-replay-sync: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

// Sends as fast as its credit allows.
class Actor {
 public:
  Actor(const std::string& address, int number) {
    InsertSession::Options options;
    options.channel = MakeChannel(address);
    options.run_id = "run";
    options.actor = "actor-" + std::to_string(number);
    options.incarnation = 1;
    options.environments = kChunkRows;
    auto session = InsertSession::Register(options);
    if (!session.ok()) Fail(session.status());
    session_ = std::move(*session);
    if (const absl::Status started = session_->Start(BenchSchema().fingerprint()); !started.ok()) Fail(started);
  }
  void Step() {
    if (session_->allowance(0).rows < kChunkRows) {
      session_->changes().Wait(milliseconds(10));
    } else {
      testing::NumberRows(schema_, "step", session_->allowance(0).next_sequence, kChunkRows, &columns_);
      if (const absl::Status sent = session_->Append(0, kChunkRows, columns_, ""); !sent.ok()) Fail(sent);
      session_->Send();
    }
  }
  uint64_t acknowledged() const { return session_->acknowledged(0); }

 private:
  const RowSchema schema_ = BenchSchema();
  std::string columns_ = BenchColumns();
  std::unique_ptr<InsertSession> session_;
};

uint64_t Acknowledged(const std::vector<std::unique_ptr<Actor>>& actors) {
  uint64_t rows = 0;
  for (const auto& actor : actors) rows += actor->acknowledged();
  return rows;
}

Rates MeasureService(const std::string& address, int count, double seconds) {
  std::vector<std::unique_ptr<Actor>> actors;
  for (int i = 0; i < count; ++i) actors.push_back(std::make_unique<Actor>(address, i));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;  // this one is the first actor's
  for (int i = 1; i < count; ++i) {
    threads.emplace_back([&stop, actor = actors[i].get()] {
      while (!stop) actor->Step();
    });
  }
  const auto started = [](const auto& actor) { return actor->acknowledged() > 0; };
  while (!std::all_of(actors.begin(), actors.end(), started)) actors[0]->Step();
  const uint64_t rows = Acknowledged(actors), before = syncs;
  const Clock::Time start = Clock::Real().Now();
  double took = 0;
  while ((took = Seconds(Clock::Real().Now() - start)) < seconds) actors[0]->Step();
  const Rates rates{static_cast<double>(Acknowledged(actors) - rows) / took,
                    static_cast<double>(syncs - before) / took};
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return rates;
}

Rates Measure(const Case& one, const std::string& parent, double seconds) {
  const testing::TemporaryFolder folder(parent);
  auto store = replay::Store::Open(BenchSchema(), StoreOptions(one, folder.path()));
  if (!store.ok()) Fail(store.status());
  Rates rates;
  {
    const std::unique_ptr<Metrics> metrics = Metrics::Start({"replay", "run", "", "", ""}).value();
    replay::ReplayService service(store->get(), metrics.get(), milliseconds(250));
    const auto server = Server::Start("127.0.0.1:0", {&service});
    if (!server.ok()) Fail(server.status());
    rates = MeasureService((*server)->address(), one.actors, seconds);
    service.Drain();
    (*server)->Shutdown(milliseconds(1000));
  }
  return rates;
}

Rates Median(std::vector<Rates> rates) {
  std::sort(rates.begin(), rates.end(), [](const Rates& a, const Rates& b) { return a.rows < b.rows; });
  return rates[rates.size() / 2];
}

int Main(int argc, char** argv) {
  std::string folder = std::filesystem::temp_directory_path().string();
  double seconds = 2;
  int rounds = 3;
  CLI::App app("What replay.sync costs.");
  app.add_option("--folder", folder, "Folder on the disk to measure")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
  app.add_option("--seconds", seconds, "Of each measurement")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds, "Measurements of each case")->capture_default_str()->check(CLI::Range(1, 100));
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::err);
  const Case cases[] = {{false, 1}, {true, 1}, {false, 16}, {true, 16}};
  std::vector<Rates> measured[std::size(cases)];
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < std::size(cases); ++i) measured[i].push_back(Measure(cases[i], folder, seconds));
  }
  std::printf("folder %s, %d rounds of %.1f s\n", folder.c_str(), rounds, seconds);
  std::printf("sync  actors    rows/s  msyncs/s  rows/msync  share of sync off\n");
  double off = 0;
  for (size_t i = 0; i < std::size(cases); ++i) {
    const Rates rates = Median(measured[i]);
    if (!cases[i].sync) off = rates.rows;
    std::printf("%-4s  %6d  %8.0f  %8.0f", cases[i].sync ? "on" : "off", cases[i].actors, rates.rows, rates.syncs);
    if (cases[i].sync) std::printf("  %10.1f  %17.3f", rates.rows / rates.syncs, rates.rows / off);
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) { return datacom::Main(argc, argv); }
// SPDX-License-Identifier: Apache-2.0
