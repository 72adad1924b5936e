// Long runs of every registered task under random policies: $DATACOM_SOAK_STEPS steps each (default 5 million).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"
#include "gtest/gtest.h"

namespace datacom {
namespace {

uint64_t Steps() {
  const char* const text = std::getenv("DATACOM_SOAK_STEPS");
  uint64_t steps = 5000000;
  if (text != nullptr && !absl::SimpleAtoi(text, &steps)) ADD_FAILURE() << "DATACOM_SOAK_STEPS=" << text;
  return steps;
}

// Holds each action for a duration that the episode chooses; every fourth entry is at a bound.
class RandomPolicy {
 public:
  RandomPolicy(const TaskSpec& spec, uint64_t episode)
      : spec_(spec), random_(StreamKey("soak.policy", {episode})), action_(spec.action_dim) {
    constexpr double kRedraw[] = {1, 0.1, 0.02};
    redraw_ = kRedraw[random_.Below(3)];
    Draw();
  }
  const double* Next() {
    if (random_.Uniform() < redraw_) Draw();
    return action_.data();
  }

 private:
  void Draw() {
    for (size_t i = 0; i < action_.size(); ++i) {
      const double low = spec_.action_low[i], high = spec_.action_high[i];
      action_[i] = random_.Below(4) > 0 ? random_.Uniform(low, high) : random_.Below(2) > 0 ? low : high;
    }
  }
  const TaskSpec& spec_;
  RandomStream random_;
  double redraw_;
  std::vector<double> action_;
};

class TaskSoak : public ::testing::TestWithParam<std::string> {};

TEST_P(TaskSoak, ValidStepsStayFinite) {
  const auto task = MakeTask(GetParam(), v1::TaskOptions()).value();
  const TaskSpec& spec = task->spec();
  const uint64_t steps = Steps();
  std::vector<double> observation(spec.obs_dim);
  const auto finite = [&](double reward, double cost) {
    bool all = std::isfinite(reward) && std::isfinite(cost);
    for (const double value : observation) all = all && std::isfinite(static_cast<float>(value));
    return all;
  };
  uint64_t taken = 0, told = 0, episodes = 0, absorbed = 0, succeeded = 0, violating = 0, abandoned = 0;
  const auto report = [&] {
    std::printf("%s: %llu steps, %llu episodes, %llu absorbed, %llu succeeded, %llu violating steps, %llu abandoned\n",
                GetParam().c_str(), static_cast<unsigned long long>(taken), static_cast<unsigned long long>(episodes),
                static_cast<unsigned long long>(absorbed), static_cast<unsigned long long>(succeeded),
                static_cast<unsigned long long>(violating), static_cast<unsigned long long>(abandoned));
    std::fflush(stdout);
  };
  while (taken < steps) {
    RandomStream start(StreamKey("soak.episode", {episodes}));
    RandomPolicy policy(spec, episodes++);
    task->Reset(&start, observation.data());
    ASSERT_TRUE(finite(0, task->Cost())) << "start of episode " << episodes - 1;
    for (int i = 0; i < spec.horizon && taken < steps; ++i) {
      ++taken;
      const StepResult result = task->Step(policy.Next(), observation.data());
      if (!result.valid) {
        ++abandoned;
        break;
      }
      ASSERT_TRUE(finite(result.reward, result.cost)) << "episode " << episodes - 1 << " step " << i;
      violating += result.cost > 0;
      absorbed += result.absorbing;
      if (result.absorbing) break;
    }
    succeeded += task->Success();
    if (taken - told < steps / 10) continue;
    told = taken;
    report();
  }
  report();
  EXPECT_LE(1000 * abandoned, episodes) << "a sound simulation abandons almost no episode";
}

INSTANTIATE_TEST_SUITE_P(AllTasks, TaskSoak, ::testing::ValuesIn(TaskNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
