// A replay that serves streams inside the test's process. Not thread-safe.
#ifndef DATACOM_TESTS_REPLAY_SERVED_REPLAY_H_
#define DATACOM_TESTS_REPLAY_SERVED_REPLAY_H_

#include <chrono>
#include <memory>
#include <string>

#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "common/rpc/insert_session.h"
#include "gtest/gtest.h"
#include "replay/replay_service.h"
#include "tests/replay/replay_fixture.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/patience.h"

namespace datacom::replay::testing {

using ::datacom::testing::IsOk;
using ::datacom::testing::kPatience;
using ::datacom::testing::WaitUntil;

class ServedReplay : public ::testing::Test {
 protected:
  // channel_ is a connection over loopback. gRPC's in-process channel is not used: in 1.51 a call that begins while the
  // server stops calls a null function, and sessions connect again until they are destroyed.
  void Serve(const Options& options, const std::string& address = "127.0.0.1:0") {
    auto store = Store::Open(SmallSchema(), StoreOptions(options, folder_.path(), &clock_));
    ASSERT_THAT(store, IsOk());
    store_ = std::move(*store);
    service_ = std::make_unique<ReplayService>(store_.get(), metrics_.get(), std::chrono::milliseconds(0));
    auto server = Server::Start(address, {service_.get()});
    ASSERT_THAT(server, IsOk());
    server_ = std::move(*server);
    channel_ = MakeChannel(server_->address());
  }
  void Stop() {
    if (server_ == nullptr) return;
    service_->Drain();
    server_->Shutdown(std::chrono::milliseconds(2000));
    server_.reset();
    service_.reset();
    store_.reset();
  }
  void TearDown() override { Stop(); }

  std::unique_ptr<InsertSession> Join(const std::string& name, uint64_t incarnation = 1) {
    InsertSession::Options options;
    options.channel = channel_;
    options.run_id = "run";
    options.actor = name;
    options.incarnation = incarnation;
    auto session = InsertSession::Register(options);
    EXPECT_THAT(session, IsOk());
    EXPECT_THAT((*session)->Start(SmallSchema().fingerprint()), IsOk());
    return std::move(*session);
  }

  // Appends rows within the credit until there are `rows` in total.
  void Produce(InsertSession* session, uint64_t rows) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      const auto allowance = session->allowance(0);
      if (allowance.next_sequence >= rows) break;
      const auto count = static_cast<uint32_t>(std::min<uint64_t>({allowance.rows, rows - allowance.next_sequence, 7}));
      if (count == 0) {
        session->changes().Wait(std::chrono::milliseconds(100));
        continue;
      }
      const auto chunk = MakeChunk(0, 0, SimpleRows(allowance.next_sequence, count));
      ASSERT_THAT(session->Append(0, count, chunk.columns(), ""), IsOk());
      session->Send();
    }
    const absl::Status flushed = session->Flush(kPatience);
    ASSERT_THAT(flushed, IsOk());
  }

  TemporaryFolder folder_;
  ManualClock clock_;
  const std::unique_ptr<Metrics> metrics_ = Metrics::Start({"replay", "run", "", "", ""}).value();
  std::unique_ptr<Store> store_;
  std::unique_ptr<ReplayService> service_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace datacom::replay::testing

#endif  // DATACOM_TESTS_REPLAY_SERVED_REPLAY_H_
// SPDX-License-Identifier: Apache-2.0
