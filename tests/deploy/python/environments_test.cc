// Environments without Python, so that the sanitizers see them. What they compute is tested from Python (envs_test.py).
#include "deploy/python/native/environments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace datacom::python {
namespace {

// The arrays of `count` environments.
struct Arrays {
  Arrays(int count, const TaskSpec& spec)
      : observation(count * spec.obs_dim, -1.0f),
        final_observation(count * spec.obs_dim, -1.0f),
        reward(count),
        cost(count),
        flags(4 * count) {
    out = {observation.data(), final_observation.data(), reward.data(),     cost.data(),      nullptr,
           flags.data(),       &flags[1 * count],        &flags[2 * count], &flags[3 * count]};
  }
  std::vector<float> observation, final_observation;
  std::vector<double> reward, cost;
  std::vector<uint8_t> flags;  // terminated, truncated, success, invalid
  datacom_env_result out;
};

std::unique_ptr<Environments> Make(const Environments::Settings& settings) {
  absl::StatusOr<std::unique_ptr<Environments>> made = Environments::Make(settings);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// Resets the environments where the mask is not 0, with these start values.
absl::Status ResetTo(Environments* environments, const uint8_t* mask, const std::vector<const char*>& names,
                     const std::vector<double>& values, const Arrays& arrays) {
  return environments->Reset({mask, nullptr, nullptr, static_cast<int>(names.size()), names.data(), values.data()},
                             arrays.out);
}

TEST(Environments, StepOnManyThreadsThroughSeveralEpisodes) {
  for (const int mode : {DATACOM_ENV_NEXT_STEP, DATACOM_ENV_SAME_STEP}) {
    const std::unique_ptr<Environments> one = Make({"air_hockey", "horizon: 7", 9, 1, mode});
    const std::unique_ptr<Environments> many = Make({"air_hockey", "horizon: 7", 9, 4, mode});
    Arrays told(9, one->model().spec), same(9, one->model().spec);
    std::vector<uint64_t> seeds(9, 3);
    ASSERT_TRUE(one->Reset({nullptr, seeds.data(), nullptr, 0, nullptr, nullptr}, told.out).ok());
    ASSERT_TRUE(many->Reset({nullptr, seeds.data(), nullptr, 0, nullptr, nullptr}, same.out).ok());
    std::vector<float> action(27);
    int ends = 0;
    for (int step = 0; step < 40; ++step) {
      for (size_t i = 0; i < action.size(); ++i) action[i] = 0.1f * static_cast<float>((step + 3 * i) % 19) - 0.9f;
      ASSERT_TRUE(one->Step(action.data(), told.out).ok());
      ASSERT_TRUE(many->Step(action.data(), same.out).ok());
      ASSERT_EQ(told.observation, same.observation) << step;
      ASSERT_EQ(told.cost, same.cost) << step;
      ends += told.out.truncated[4];
    }
    EXPECT_EQ(ends, 5);  // 40 steps; the mode next_step spends one of eight on a reset
  }
}

TEST(Environments, AreUntouchedWhenAStepIsRefused) {
  const std::unique_ptr<Environments> environments = Make({"cartpole", "horizon: 2", 2, 2, DATACOM_ENV_DISABLED});
  Arrays told(2, environments->model().spec);
  const std::vector<float> push = {1, 1};
  EXPECT_EQ(environments->Step(push.data(), told.out).code(), absl::StatusCode::kFailedPrecondition);  // no reset yet
  ASSERT_TRUE(environments->Reset({}, told.out).ok());
  const std::vector<float> start = told.observation;
  const std::vector<float> broken = {1, std::numeric_limits<float>::infinity()};
  EXPECT_THAT(std::string(environments->Step(broken.data(), told.out).message()),
              testing::HasSubstr("environment 1 has the value inf"));
  EXPECT_EQ(told.observation, start);
  ASSERT_TRUE(environments->Step(push.data(), told.out).ok());
  ASSERT_TRUE(environments->Step(push.data(), told.out).ok());
  EXPECT_EQ(environments->Step(push.data(), told.out).code(), absl::StatusCode::kFailedPrecondition);
  const uint8_t second[] = {0, 1};
  const float kept = told.observation[0];
  ASSERT_TRUE(ResetTo(environments.get(), second, {"x"}, {0.5}, told).ok());
  EXPECT_EQ(told.observation[0], kept);
  EXPECT_EQ(told.observation[5], 0.5f);
}

TEST(Environments, NamesWhatCannotBeMade) {
  EXPECT_THAT(std::string(Environments::Make({"cartpole", "", 2, 0}).status().message()),
              testing::HasSubstr("threads is 0"));
  EXPECT_THAT(std::string(Environments::Make({"tennis", ""}).status().message()), testing::HasSubstr("\"tennis\""));
}

constexpr int kWidth = 96, kHeight = 54;  // of a picture

TEST(Environments, DrawTheirOwnStates) {
  const std::unique_ptr<Environments> two = Make({"cartpole", "", 2, 1, DATACOM_ENV_DISABLED});
  std::vector<uint8_t> rgb(3 * kWidth * kHeight);
  const auto draw = [&](int index, int width = kWidth) { return two->Draw(index, {"", width, kHeight}, rgb.data()); };
  EXPECT_TRUE(absl::IsInternal(draw(0))) << "there is no state yet";
  Arrays told(2, two->model().spec);
  const std::vector<uint8_t> first = {1, 0}, second = {0, 1};
  ASSERT_TRUE(ResetTo(two.get(), first.data(), {"x", "theta"}, {-1, 0}, told).ok());
  ASSERT_TRUE(ResetTo(two.get(), second.data(), {"x", "theta"}, {1, 0}, told).ok());
  ASSERT_TRUE(draw(0).ok());
  const std::vector<uint8_t> left = rgb;
  ASSERT_TRUE(draw(1).ok());
  EXPECT_NE(rgb, left);
  ASSERT_TRUE(draw(0).ok());
  EXPECT_EQ(rgb, left);
  EXPECT_TRUE(absl::IsInvalidArgument(draw(2)));
  EXPECT_TRUE(absl::IsInvalidArgument(draw(0, 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(draw(0, 5000)));
}

}  // namespace
}  // namespace datacom::python
// SPDX-License-Identifier: Apache-2.0
