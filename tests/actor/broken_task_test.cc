// Tests what the acting loop does with a task whose steps are invalid.
#include <cmath>

#include "actor/rollout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actor/rollout_fixture.h"
#include "tests/testing/is_ok.h"

namespace datacom::actor {
namespace {

using datacom::testing::IsOk;
using testing::Actor;
using ::testing::HasSubstr;
using testing::SteadyTask;

// The cost becomes a number that is not finite after some episodes.
class BrokenCost : public SteadyTask {
 public:
  explicit BrokenCost(int sound_steps) : sound_steps_(sound_steps) {}
  StepResult Step(const double* action, double* observation) override {
    StepResult result = SteadyTask::Step(action, observation);
    if (sound_steps_-- <= 0) result.cost = std::nan("");
    return result;
  }

 private:
  int sound_steps_;
};

TEST(BrokenTask, GivesUpATaskThatNeverGivesARowAndNamesWhatIsNotFinite) {
  Actor actor(1, 4);
  actor.parts.make_task = []() -> absl::StatusOr<std::unique_ptr<Task>> { return std::make_unique<BrokenCost>(0); };
  const absl::Status status = actor.RunFor(100);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("1000 episodes were abandoned and none gave a row"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the cost is not finite"));
  EXPECT_EQ(actor.session.rows.size(), 0u);
}

TEST(BrokenTask, DoesNotGiveUpATaskThatHasGivenARow) {
  Actor actor(1, 1);
  actor.parts.make_task = []() -> absl::StatusOr<std::unique_ptr<Task>> { return std::make_unique<BrokenCost>(1); };
  actor.options.stop = [&actor] { return actor.series.abandoned_invalid.Value() >= 2500; };
  EXPECT_EQ(actor.RunFor(100).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(actor.series.rows.Value(), 1);
}

// Every episode breaks in its second step.
class BrokenSecondStep : public SteadyTask {
 public:
  void Reset(RandomStream* stream, double* observation) override {
    steps_ = 0;
    SteadyTask::Reset(stream, observation);
  }
  StepResult Step(const double* action, double* observation) override {
    StepResult result = SteadyTask::Step(action, observation);
    if (++steps_ == 2) result.cost = std::nan("");
    return result;
  }

 private:
  int steps_ = 0;
};

TEST(BrokenTask, ItsRowsSayInWhichStepAnEpisodeWasAbandonedAndWhy) {
  Actor actor(1, 1);
  actor.parts.make_task = []() -> absl::StatusOr<std::unique_ptr<Task>> {
    return std::make_unique<BrokenSecondStep>();
  };
  EXPECT_THAT(actor.RunFor(5), IsOk());
  EXPECT_EQ(actor.session.fault, "in step 2 the cost is not finite or above 1e+18");
}

}  // namespace
}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
