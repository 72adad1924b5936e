#include "common/config/algorithms.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/acting/acting_rule.h"
#include "datacom/v1/experiment.pb.h"
#include "gmock/gmock.h"
#include "tests/common/config/testing.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::Contains;
using ::testing::ElementsAre;

TEST(Algorithms, HaveAllFacts) {
  std::set<std::string> names, titles;
  for (const AlgorithmInfo& algorithm : Algorithms()) {
    SCOPED_TRACE(algorithm.name);
    EXPECT_TRUE(names.insert(algorithm.name).second);
    EXPECT_TRUE(titles.insert(algorithm.title).second);
    EXPECT_NE(algorithm.title, "");
    EXPECT_NE(algorithm.summary, "");
    EXPECT_THAT(algorithm.colour, ::testing::MatchesRegex("#[0-9a-f]{6}"));
    EXPECT_THAT(ActingRuleNames(), Contains(algorithm.acting_rule));
    if (!algorithm.extends.empty()) {
      EXPECT_NE(FindAlgorithm(algorithm.extends), nullptr);
    }
    if (algorithm.on_policy) {
      EXPECT_TRUE(algorithm.new_rows);
    }
    EXPECT_FALSE(algorithm.test_only);
  }
}

TEST(Algorithms, ThoseForTestsAreFoundButNotListed) {
  ASSERT_NE(FindAlgorithm("toy"), nullptr);
  EXPECT_TRUE(FindAlgorithm("toy")->test_only);
  const std::vector<std::string> names = AlgorithmNames();
  EXPECT_THAT(names, ::testing::IsSupersetOf({"datacom", "sac", "ppo_lag"}));
  EXPECT_THAT(names, ::testing::Not(Contains("toy")));
  v1::Experiment experiment = Minimal();
  experiment.set_algorithm("toy");
  ExpectInvalid(Validate(experiment), {"algorithm: \"toy\" is not one of " + absl::StrJoin(names, ", ")});
}

TEST(Algorithms, ReadTheSettingsOfTheAlgorithmThatTheyExtend) {
  EXPECT_THAT(HyperParametersOf(*FindAlgorithm("sac")),
              ElementsAre("actor_lr", "critic_lr", "alpha_lr", "target_entropy", "return_floor", "return_ceiling",
                          "reward_scale", "critic_pessimism", "rate_half_life"));
  EXPECT_THAT(HyperParametersOf(*FindAlgorithm("wcsac")), ::testing::IsSupersetOf({"actor_lr", "cost_damping"}));
}

TEST(Algorithms, EveryUserOfASettingExists) {
  std::vector<const google::protobuf::Descriptor*> messages{v1::Experiment::descriptor()};
  std::set<const google::protobuf::Descriptor*> seen;
  int named = 0;
  while (!messages.empty()) {
    const google::protobuf::Descriptor* const message = messages.back();
    messages.pop_back();
    if (!seen.insert(message).second) continue;
    for (int i = 0; i < message->field_count(); ++i) {
      if (message->field(i)->message_type() != nullptr) messages.push_back(message->field(i)->message_type());
      for (const std::string& user : message->field(i)->options().GetExtension(v1::rule).used_by()) {
        EXPECT_NE(FindAlgorithm(user), nullptr) << message->field(i)->full_name() << " is used by " << user;
        ++named;
      }
    }
  }
  EXPECT_GT(named, 0);
}

TEST(Algorithms, ASettingThatTheAlgorithmDoesNotReadIsRefused) {
  v1::Experiment experiment = Minimal("hyper { barrier_margin: 1 }");
  experiment.set_algorithm("sac");
  ExpectInvalid(Validate(experiment),
                {"hyper.barrier_margin: sac does not read it (cbf_sac does); the hyper-parameters that sac reads are "
                 "actor_lr, critic_lr, alpha_lr, target_entropy, return_floor, return_ceiling, reward_scale, "
                 "critic_pessimism"});
  ExpectInvalid(Validate(Minimal("members { seed: 1 } members { seed: 2 hyper { clip_ratio: 0.1 } }")),
                {"members[1].hyper.clip_ratio: datacom does not read it"});
  ExpectInvalid(Validate(Minimal("planning { samples: 3 }")), {"planning: datacom does not read it (safe_loop does)"});
  // A setting of an algorithm for tests has no shipped reader to name.
  ExpectInvalid(Validate(Minimal("hyper { toy_weight: 1 }")),
                {"hyper.toy_weight: datacom does not read it; the hyper-parameters that datacom reads are "});
  ExpectInvalid(Validate(Minimal("schedule { policy_delay: 3 }")), {"schedule.policy_delay: datacom"});
}

TEST(Algorithms, OnlySacAndTheAlgorithmsThatExtendItNormaliseTheirCritics) {
  std::vector<std::string> reading;
  for (const AlgorithmInfo& info : Algorithms()) {
    v1::Experiment experiment = Minimal("network { critic_layer_norm: true }");
    experiment.set_algorithm(info.name);
    const absl::Status status = CheckSettingsAreRead(experiment);
    if (status.ok()) {
      reading.push_back(info.name);
    } else {
      ExpectInvalid(status, {"network.critic_layer_norm: " + info.name + " does not read it"});
    }
  }
  EXPECT_THAT(reading, ::testing::IsSupersetOf({"sac", "datacom", "wcsac"}));
  EXPECT_THAT(reading, ::testing::Not(Contains(::testing::AnyOf("safe_layer_td3", "safe_loop", "ppo_lag", "rcpo"))));
}

TEST(Algorithms, ResolvingFillsOnlyWhatTheAlgorithmReads) {
  v1::Experiment experiment = Minimal();
  experiment.set_algorithm("sac");
  const v1::Experiment resolved = ResolveExperiment(experiment);
  EXPECT_TRUE(resolved.hyper().has_actor_lr());
  EXPECT_FALSE(resolved.hyper().has_barrier_margin());
  EXPECT_FALSE(resolved.has_planning());
  EXPECT_THAT(Validate(resolved), IsOk());
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
