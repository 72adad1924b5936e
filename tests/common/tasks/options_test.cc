#include "common/tasks/register_task.h"

#include "common/tasks/task.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

TEST(RejectOtherOptions, NamesTheOptionTheTaskAndItsOptions) {
  v1::TaskOptions options;
  options.set_horizon(7);
  options.mutable_randomisation();
  options.set_action_repeat(2);
  EXPECT_THAT(RejectOtherOptions("cartpole", options, {}), IsOk()) << "every task has these three";
  options.set_puck_region("original");
  EXPECT_EQ(RejectOtherOptions("cartpole", options, {}),
            absl::InvalidArgumentError("task_options.puck_region: task cartpole has no such option; it has: horizon, "
                                       "randomisation, action_repeat"));
  EXPECT_THAT(RejectOtherOptions("air_hockey", options, {"puck_region"}), IsOk());
  options.set_reward("paper");
  EXPECT_EQ(RejectOtherOptions("air_hockey", options, {"puck_region"}),
            absl::InvalidArgumentError("task_options.reward: task air_hockey has no such option; it has: horizon, "
                                       "randomisation, action_repeat, puck_region"));
}

TEST(RejectOtherOptions, CartPoleHasNoOptionsOfItsOwn) {
  v1::TaskOptions options;
  options.set_mismatch_sigma(0.1);
  EXPECT_THAT(MakeTaskModel("cartpole", options).status().ToString(), ::testing::HasSubstr("mismatch_sigma"));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
