// The end of a run, as the learner tells the replay.
#include "common/rpc/replay_client.h"
#include "gmock/gmock.h"
#include "tests/replay/served_replay.h"

namespace datacom::replay::testing {
namespace {

using ::testing::HasSubstr;
using FinishTest = ServedReplay;

TEST_F(FinishTest, ARunFinishesOnlyWithAllRowsAndItsLastUpdateAndALaterProcessKnowsIt) {
  Options options = SmallOptions(1);
  options.limits.schedule.env_steps = 12;  // updates 1 and 2
  options.end_with_run = true;
  Serve(options);
  auto session = Join("actor-0");
  Produce(session.get(), 11);
  v1::FinishRequest request;
  *request.mutable_hello() = MakeHello("run", 0);
  request.set_incarnation(1);
  request.set_completed_update(1);
  absl::Status finished = FinishRun(channel_, request, kPatience);
  EXPECT_EQ(finished.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(finished.message()), HasSubstr("not complete at update 1 of 2"));
  EXPECT_FALSE(service_->finished());
  v1::ReplayInfo info;
  store_->Info(&info);
  EXPECT_EQ(info.completed_update(), 0) << "a call that fails takes no learner to another update";
  Produce(session.get(), 12);
  request.set_completed_update(2);
  *request.mutable_hello() = MakeHello("another", 0);
  EXPECT_FALSE(FinishRun(channel_, request, kPatience).ok());
  EXPECT_FALSE(service_->finished() || store_->WasFinished());
  *request.mutable_hello() = MakeHello("run", 0);
  for (int time = 0; time < 2; ++time) ASSERT_THAT(FinishRun(channel_, request, kPatience), IsOk());
  EXPECT_TRUE(service_->finished());
  session.reset();

  Stop();
  Serve(options);
  EXPECT_TRUE(store_->WasFinished());
  EXPECT_FALSE(service_->finished());
  Stop();
  options.limits.schedule.env_steps = 13;  // the run was extended
  Serve(options);
  EXPECT_FALSE(store_->WasFinished());
}

}  // namespace
}  // namespace datacom::replay::testing
// SPDX-License-Identifier: Apache-2.0
