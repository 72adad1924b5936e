// Calls the C interface in this process and tests its refusals and guarantees.
#include "deploy/robot/datacom_policy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "common/acting/policy_file.h"
#include "common/base/files.h"
#include "common/tasks/task.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/counting_allocator.h"
#include "tests/testing/framed_files.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/snapshots.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PolicyInterface : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = ::testing::TempDir() + "/interface.policy";
    policy_.snapshot = testing::SafeMapSnapshot(5, 1, 4, {8, 8}, 3);
    policy_.snapshot.task = "cartpole";
    policy_.about.set_experiment("cartpole/test");
    ASSERT_THAT(WritePolicyFile(file_, policy_), IsOk());
    content_ = *ReadFile(file_);
  }
  void TearDown() override { datacom_policy_free(loaded_); }

  int Load(const std::string& file) {
    datacom_policy_free(loaded_);
    return datacom_policy_load(file.c_str(), &loaded_, why_, sizeof why_);
  }
  int LoadContent(const std::string& content) {
    std::ofstream(file_, std::ios::binary) << content;
    const int code = Load(file_);
    EXPECT_EQ(loaded_ == nullptr, code != DATACOM_POLICY_OK);
    EXPECT_TRUE(code == DATACOM_POLICY_OK || std::strstr(why_, file_.c_str()) != nullptr) << why_;
    return code;
  }
  int LoadPolicy() {
    EXPECT_THAT(WritePolicyFile(file_, policy_), IsOk());
    return LoadContent(*ReadFile(file_));
  }

  Policy policy_;
  std::string file_, content_;
  datacom_policy* loaded_ = nullptr;
  char why_[512] = "";
};

TEST_F(PolicyInterface, DescribesTheFile) {
  ASSERT_EQ(Load(file_), DATACOM_POLICY_OK);
  const datacom_policy_info* const info = datacom_policy_describe(loaded_);
  EXPECT_STREQ(info->task, "cartpole");
  EXPECT_STREQ(info->experiment, "cartpole/test");
  EXPECT_STREQ(info->acting_rule, "safe_map");
  EXPECT_EQ(info->observation_dim, 5);
  EXPECT_EQ(info->action_dim, 1);
  EXPECT_EQ(info->noise_dim, 1);
  const TaskSpec spec = MakeTaskModel("cartpole", {})->spec;
  EXPECT_EQ(info->control_period, spec.control_dt);
  EXPECT_EQ(info->action_low[0], spec.action_low[0]);
  EXPECT_EQ(info->action_high[0], spec.action_high[0]);
}

TEST_F(PolicyInterface, EveryTruncatedFileIsDamaged) {
  for (size_t bytes = 0; bytes < content_.size(); bytes += bytes < 64 ? 1 : 97) {
    ASSERT_EQ(LoadContent(content_.substr(0, bytes)), DATACOM_POLICY_DAMAGED) << bytes << " bytes: " << why_;
  }
  EXPECT_EQ(LoadContent(content_ + "x"), DATACOM_POLICY_DAMAGED) << why_;
}

TEST_F(PolicyInterface, EveryChangedByteIsDetected) {
  for (size_t at = 0; at < content_.size(); at += at < 64 ? 1 : 61) {
    std::string changed = content_;
    changed[at] ^= 0x10;
    ASSERT_EQ(LoadContent(changed), DATACOM_POLICY_DAMAGED) << "byte " << at << ": " << why_;
  }
}

TEST_F(PolicyInterface, AnotherFileFormatIsRefusedNamingBothVersions) {
  for (const uint32_t version : {2, 4}) {
    EXPECT_EQ(LoadContent(testing::WithVersion(content_, version)), DATACOM_POLICY_UNSUPPORTED);
    EXPECT_THAT(why_, AllOf(HasSubstr("format version " + std::to_string(version)), HasSubstr("reads version 3")));
  }
}

TEST_F(PolicyInterface, AnUnknownTaskOrRuleIsUnsupportedAndNamed) {
  policy_.snapshot.task = "juggling";
  EXPECT_EQ(LoadPolicy(), DATACOM_POLICY_UNSUPPORTED);
  EXPECT_THAT(why_, HasSubstr("juggling"));
  policy_.snapshot.task = "cartpole";
  policy_.snapshot.acting_rule = "telepathy";
  EXPECT_EQ(LoadPolicy(), DATACOM_POLICY_UNSUPPORTED);
  EXPECT_THAT(why_, HasSubstr("telepathy"));
}

TEST_F(PolicyInterface, AMissingFileOrNullIsRefused) {
  EXPECT_EQ(Load(file_ + ".none"), DATACOM_POLICY_UNREADABLE);
  EXPECT_THAT(why_, HasSubstr(".none"));
  EXPECT_EQ(datacom_policy_load(nullptr, &loaded_, why_, sizeof why_), DATACOM_POLICY_BAD_INPUT);
  EXPECT_EQ(datacom_policy_load(file_.c_str(), nullptr, nullptr, 0), DATACOM_POLICY_BAD_INPUT);
  EXPECT_EQ(datacom_policy_load((file_ + ".none").c_str(), &loaded_, nullptr, 0), DATACOM_POLICY_UNREADABLE);
  char little[8];
  EXPECT_EQ(datacom_policy_load((file_ + ".none").c_str(), &loaded_, little, sizeof little), DATACOM_POLICY_UNREADABLE);
  EXPECT_EQ(std::strlen(little), sizeof little - 1);
}

TEST_F(PolicyInterface, BadInputDoesNotChangeTheAction) {
  ASSERT_EQ(Load(file_), DATACOM_POLICY_OK);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> observation = {0, 0.1, 0.99, 0, 0};
  float noise = 0.5f;
  double action = 77;
  datacom_policy_input input = {observation.data(), &noise, 0};
  for (const double bad : {nan, 1e300}) {  // 1e300 is infinite in float32
    observation[3] = bad;
    EXPECT_EQ(datacom_policy_act(loaded_, &input, &action, nullptr), DATACOM_POLICY_BAD_INPUT);
    observation[3] = 0;
    noise = static_cast<float>(bad);
    EXPECT_EQ(datacom_policy_act(loaded_, &input, &action, nullptr), DATACOM_POLICY_BAD_INPUT);
    noise = 0.5f;
    input.previous_cost = bad;
    EXPECT_EQ(datacom_policy_act(loaded_, &input, &action, nullptr), DATACOM_POLICY_BAD_INPUT);
    input.previous_cost = 0;
  }
  EXPECT_EQ(datacom_policy_act(nullptr, &input, &action, nullptr), DATACOM_POLICY_BAD_INPUT);
  EXPECT_EQ(datacom_policy_act(loaded_, nullptr, &action, nullptr), DATACOM_POLICY_BAD_INPUT);
  EXPECT_EQ(datacom_policy_act(loaded_, &input, nullptr, nullptr), DATACOM_POLICY_BAD_INPUT);
  EXPECT_EQ(action, 77);
  EXPECT_EQ(datacom_policy_act(loaded_, &input, &action, nullptr), DATACOM_POLICY_OK);
  EXPECT_LT(std::abs(action), 77);
}

// A text task with one joint: observations are [angle | state: angle, angle_velocity | f | G].
v1::TaskOptions OneJoint() {
  v1::TaskOptions options;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(definition { name: "pivot" model: "pivot.xml" reward: "0" cost { name: "c" value: "0" } }
         resolved { observation: "angle" state: ["angle", "angle_velocity"] start_state: [0, 0] action: "motor"
                    control_dt: 0.02 joint { kind: SCALAR } })",
      options.MutableExtension(v1::text_task)));
  return options;
}

TEST_F(PolicyInterface, AnObservationWithoutTheRobotsModelIsRefusedAndSaysWhichNumbersAreMissing) {
  policy_.snapshot = testing::SafeMapSnapshot(1, 1, 2, {8, 8}, 3);
  policy_.snapshot.task = "pivot";
  *policy_.about.mutable_task_options() = OneJoint();
  ASSERT_EQ(LoadPolicy(), DATACOM_POLICY_OK) << why_;
  const datacom_policy_info* const info = datacom_policy_describe(loaded_);
  EXPECT_EQ(info->seen_dim, 1);
  ASSERT_EQ(info->observation_dim, 5);
  const std::vector<std::string> names(info->observation_names, info->observation_names + 5);
  EXPECT_THAT(names, ElementsAre("angle", "state angle", "state angle_velocity", "acceleration 0 without action",
                                 "acceleration 0 by motor"));
  EXPECT_STREQ(info->action_names[0], "motor");
  std::vector<double> observation = {0.3, 0, 0, 0, 0};
  const datacom_policy_input input = {observation.data(), nullptr, 0};
  double action = 77;
  EXPECT_EQ(datacom_policy_act(loaded_, &input, &action, nullptr), DATACOM_POLICY_NO_MODEL);
  EXPECT_EQ(action, 77);
  EXPECT_THAT(datacom_policy_why(loaded_), HasSubstr("numbers 1 to 4 of the observation, from state angle on"));
  observation = {0.3, 0.3, 0.1, -2, 12};
  int status = DATACOM_POLICY_FAILED;
  EXPECT_EQ(testing::CountAllocations([&] { status = datacom_policy_act(loaded_, &input, &action, nullptr); }), 0u);
  EXPECT_EQ(status, DATACOM_POLICY_OK);
  EXPECT_STREQ(datacom_policy_why(loaded_), "");
  EXPECT_LE(std::abs(action), 10);
  observation[2] = std::nan("");
  EXPECT_EQ(datacom_policy_act(loaded_, &input, &action, nullptr), DATACOM_POLICY_BAD_INPUT);
  EXPECT_THAT(datacom_policy_why(loaded_), HasSubstr("number 2 of the observation, state angle_velocity, is nan"));
}

TEST_F(PolicyInterface, APolicyThatReadsNoModelAsksForNone) {
  for (const char* const rule : {"gaussian_policy", "normalised_gaussian", "safe_layer"}) {
    policy_.snapshot = testing::SnapshotForRule(rule, 1, 1, 2, {8, 8}, 3);
    policy_.snapshot.task = "pivot";
    *policy_.about.mutable_task_options() = OneJoint();
    ASSERT_EQ(LoadPolicy(), DATACOM_POLICY_OK) << why_;
    EXPECT_EQ(datacom_policy_describe(loaded_)->observation_dim, 1) << rule;
    EXPECT_EQ(datacom_policy_describe(loaded_)->seen_dim, 1) << rule;
    const double observation[1] = {0.3};
    const datacom_policy_input input = {observation, nullptr, 0};
    double action = 77;
    EXPECT_EQ(datacom_policy_act(loaded_, &input, &action, nullptr), DATACOM_POLICY_OK) << rule;
  }
}

TEST_F(PolicyInterface, AWeightThatIsNotFiniteIsRefusedByName) {
  for (NamedArray& array : policy_.snapshot.arrays) {
    if (array.name == "actor.mean.2.bias") array.values[0] = std::numeric_limits<float>::quiet_NaN();
  }
  EXPECT_EQ(LoadPolicy(), DATACOM_POLICY_DAMAGED);
  EXPECT_NE(std::string(why_).find("array actor.mean.2.bias holds nan"), std::string::npos) << why_;
}

TEST_F(PolicyInterface, AnActionThatIsNotFiniteIsNotReturned) {
  constexpr float kLarge = 3e38f;
  for (NamedArray& array : policy_.snapshot.arrays) {
    if (array.name == "actor.mean.0.bias") std::fill(array.values.begin(), array.values.end(), kLarge);
    if (array.name != "actor.mean.1.weight") continue;  // the sum of inf and -inf is no number
    for (size_t i = 0; i < array.values.size(); ++i) {
      array.values[i] = i / array.shape[1] % 2 == 0 ? kLarge : -kLarge;
    }
  }
  ASSERT_EQ(LoadPolicy(), DATACOM_POLICY_OK) << why_;
  const std::vector<double> observation = {0, 0.1, 0.99, 0, 0};
  const datacom_policy_input input = {observation.data(), nullptr, 0};
  double action = 77;
  EXPECT_EQ(datacom_policy_act(loaded_, &input, &action, nullptr), DATACOM_POLICY_FAILED);
  EXPECT_EQ(action, 77);
}

TEST_F(PolicyInterface, NullNoiseIsZeroNoiseAndActingAllocatesNothing) {
  policy_.snapshot.scalars["delta"] = 8;  // far from the constraint, so that the policy matters
  ASSERT_EQ(LoadPolicy(), DATACOM_POLICY_OK);
  const std::vector<double> observation = {0.2, 0.1, 0.99, -0.3, 0.4};
  const float zero = 0, one = 1;
  datacom_policy_input input = {observation.data(), nullptr, 0};
  double centre = 0, zeros = 0, noisy = 0;
  datacom_policy_judgement judgement;
  ASSERT_EQ(datacom_policy_act(loaded_, &input, &centre, &judgement), DATACOM_POLICY_OK);
  EXPECT_NEAR(judgement.cvar - judgement.constraint, 8, 1e-12);
  input.noise = &zero;
  int status = DATACOM_POLICY_FAILED;
  EXPECT_EQ(testing::CountAllocations([&] { status = datacom_policy_act(loaded_, &input, &zeros, &judgement); }), 0u);
  ASSERT_EQ(status, DATACOM_POLICY_OK);
  input.noise = &one;
  ASSERT_EQ(datacom_policy_act(loaded_, &input, &noisy, nullptr), DATACOM_POLICY_OK);
  EXPECT_EQ(centre, zeros);
  EXPECT_NE(centre, noisy);
}

TEST_F(PolicyInterface, WithoutItsShieldAPolicyGivesTheSampleThatTheFilterWouldHaveChanged) {
  policy_.snapshot = testing::SafeMapSnapshot(16, 3, 6, {8, 8}, 3);
  policy_.snapshot.task = "air_hockey";
  policy_.snapshot.scalars["delta"] = 0;
  ASSERT_EQ(LoadPolicy(), DATACOM_POLICY_OK) << why_;
  const std::vector<double> observation(16, 0.2);
  const datacom_policy_input input = {observation.data(), nullptr, 0};
  datacom_policy_judgement judgement;
  std::vector<double> with(3), without(3), again(3);
  ASSERT_EQ(datacom_policy_act(loaded_, &input, with.data(), &judgement), DATACOM_POLICY_OK);
  EXPECT_GT(judgement.intervention, 1e-3);
  EXPECT_EQ(datacom_policy_use_shield(loaded_, 0), DATACOM_POLICY_OK);
  ASSERT_EQ(datacom_policy_act(loaded_, &input, without.data(), &judgement), DATACOM_POLICY_OK);
  EXPECT_EQ(judgement.intervention, 0);
  EXPECT_NE(without, with);
  EXPECT_EQ(datacom_policy_use_shield(loaded_, 1), DATACOM_POLICY_OK);
  ASSERT_EQ(datacom_policy_act(loaded_, &input, again.data(), nullptr), DATACOM_POLICY_OK);
  EXPECT_EQ(again, with);
  EXPECT_EQ(datacom_policy_use_shield(nullptr, 1), DATACOM_POLICY_BAD_INPUT);
}

TEST_F(PolicyInterface, AProposedActionGoesThroughTheFilterInPlaceOfThePolicysOwn) {
  for (const char* const rule : {"safe_map", "cbf_qp", "safe_layer", "atacom_fi"}) {
    policy_.snapshot = testing::SnapshotForRule(rule, 16, 3, 6, {8, 8}, 3);
    policy_.snapshot.task = "air_hockey";
    ASSERT_EQ(LoadPolicy(), DATACOM_POLICY_OK) << why_;
    const datacom_policy_info* const info = datacom_policy_describe(loaded_);
    const std::vector<double> observation(16, 0.2);
    const datacom_policy_input input = {observation.data(), nullptr, 0.5};
    const auto filter = [&](const std::vector<double>& proposed, datacom_policy_judgement* judgement) {
      std::vector<double> action(3);
      int code = DATACOM_POLICY_FAILED;
      const auto call = [&] {
        code = datacom_policy_filter(loaded_, &input, proposed.data(), action.data(), judgement);
      };
      EXPECT_EQ(testing::CountAllocations(call), 0u) << rule;
      EXPECT_EQ(code, DATACOM_POLICY_OK) << rule;
      return action;
    };
    datacom_policy_judgement own, said;
    std::vector<double> unfiltered(3), filtered(3);
    ASSERT_EQ(datacom_policy_act(loaded_, &input, filtered.data(), &own), DATACOM_POLICY_OK);
    if (datacom_policy_use_shield(loaded_, 0) == DATACOM_POLICY_OK) {  // the map for all actions has no such switch
      ASSERT_EQ(datacom_policy_act(loaded_, &input, unfiltered.data(), nullptr), DATACOM_POLICY_OK);
      datacom_policy_use_shield(loaded_, 1);
      EXPECT_EQ(filter(unfiltered, &said), filtered) << rule;
      EXPECT_EQ(said.intervention, own.intervention) << rule;
    }
    // The task's environment would limit it, too.
    const std::vector<double> high(info->action_high, info->action_high + 3);
    EXPECT_EQ(filter({high[0] * 7, high[1], high[2]}, &said), filter(high, nullptr)) << rule;
    EXPECT_NE(filter(high, nullptr), filter({0, 0, 0}, nullptr)) << rule;
  }
}

TEST_F(PolicyInterface, AProposedActionIsRefusedWithoutAFilterOrIfItIsNotFinite) {
  ASSERT_EQ(Load(file_), DATACOM_POLICY_OK);
  const std::vector<double> observation = {0, 0.1, 0.99, 0, 0};
  const datacom_policy_input input = {observation.data(), nullptr, 0};
  double proposed = std::nan(""), action = 77;
  EXPECT_EQ(datacom_policy_filter(loaded_, &input, &proposed, &action, nullptr), DATACOM_POLICY_BAD_INPUT);
  EXPECT_THAT(datacom_policy_why(loaded_), HasSubstr("number 0 of the proposed action is nan"));
  EXPECT_EQ(datacom_policy_filter(loaded_, &input, nullptr, &action, nullptr), DATACOM_POLICY_BAD_INPUT);
  policy_.snapshot = testing::SnapshotForRule("gaussian_policy", 5, 1, 4, {8, 8}, 3);
  policy_.snapshot.task = "cartpole";
  ASSERT_EQ(LoadPolicy(), DATACOM_POLICY_OK) << why_;
  proposed = 0.5;
  EXPECT_EQ(datacom_policy_filter(loaded_, &input, &proposed, &action, nullptr), DATACOM_POLICY_UNSUPPORTED);
  EXPECT_THAT(datacom_policy_why(loaded_), HasSubstr("the rule gaussian_policy has no filter"));
  EXPECT_EQ(action, 77);
}

TEST_F(PolicyInterface, ARuleThatLearnsNoFilterHasNoShield) {
  policy_.snapshot = testing::PlannerSnapshot(16, 3, {8, 8}, 3);
  policy_.snapshot.task = "air_hockey";
  ASSERT_EQ(LoadPolicy(), DATACOM_POLICY_OK) << why_;
  EXPECT_EQ(datacom_policy_use_shield(loaded_, 0), DATACOM_POLICY_UNSUPPORTED);
}

TEST_F(PolicyInterface, AnEpisodeBeginsWithoutThePlanOfTheOneBefore) {
  policy_.snapshot = testing::PlannerSnapshot(16, 3, {8, 8}, 3);
  policy_.snapshot.task = "air_hockey";
  ASSERT_EQ(LoadPolicy(), DATACOM_POLICY_OK) << why_;
  const std::vector<double> observation(16, 0.2);
  const std::vector<float> noise = {0.3f, -0.6f};
  const datacom_policy_input input = {observation.data(), noise.data(), 0};
  const auto act = [&] {
    std::vector<double> action(3);
    EXPECT_EQ(datacom_policy_act(loaded_, &input, action.data(), nullptr), DATACOM_POLICY_OK);
    return action;
  };
  const std::vector<double> first = act();
  EXPECT_NE(act(), first) << "the second decision starts from the plan of the first";
  datacom_policy_begin(loaded_);
  EXPECT_EQ(act(), first);
  datacom_policy_begin(nullptr);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
