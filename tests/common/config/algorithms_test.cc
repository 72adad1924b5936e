#include "common/config/algorithms.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "common/acting/acting_rule.h"
#include "datacom/v1/experiment.pb.h"
#include "gmock/gmock.h"
#include "tests/common/config/testing.h"

namespace datacom {
namespace {

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
  EXPECT_THAT(AlgorithmNames(), ::testing::Not(Contains("toy")));
  v1::Experiment experiment = Minimal();
  experiment.set_algorithm("toy");
  ExpectInvalid(Validate(experiment), {"algorithm: \"toy\" is not one of"});
}

struct Lab {
  double l, a, b;
};

// sRGB "#rrggbb" to CIELAB with the white point D65.
Lab LabOf(const std::string& colour) {
  double linear[3];
  for (int i = 0; i < 3; ++i) {
    const double value = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    linear[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  const auto part = [&](double r, double g, double b, double white) {
    const double t = (r * linear[0] + g * linear[1] + b * linear[2]) / white;
    return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116;
  };
  const double x = part(0.4124564, 0.3575761, 0.1804375, 0.95047), y = part(0.2126729, 0.7151522, 0.0721750, 1),
               z = part(0.0193339, 0.1191920, 0.9503041, 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

TEST(Algorithms, NoTwoHaveSimilarColours) {
  EXPECT_NEAR(LabOf("#ff0000").a, 80.09, 0.01);
  for (const AlgorithmInfo& one : Algorithms()) {
    ASSERT_THAT(one.colour, ::testing::MatchesRegex("#[0-9a-f]{6}"));
    for (const AlgorithmInfo& other : Algorithms()) {
      if (one.name >= other.name) continue;
      const Lab a = LabOf(one.colour), b = LabOf(other.colour);
      EXPECT_GE(std::hypot(a.l - b.l, a.a - b.a, a.b - b.b), 20) << one.name << " and " << other.name;
    }
  }
}

TEST(Algorithms, ReadTheSettingsOfTheAlgorithmThatTheyExtend) {
  EXPECT_THAT(HyperParametersOf(*FindAlgorithm("sac")),
              ElementsAre("actor_lr", "critic_lr", "alpha_lr", "target_entropy", "return_floor"));
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
                 "actor_lr, critic_lr, alpha_lr, target_entropy, return_floor"});
  ExpectInvalid(Validate(Minimal("members { seed: 1 } members { seed: 2 hyper { clip_ratio: 0.1 } }")),
                {"members[1].hyper.clip_ratio: datacom does not read it"});
  ExpectInvalid(Validate(Minimal("planning { samples: 3 }")), {"planning: datacom does not read it (safe_loop does)"});
  ExpectInvalid(Validate(Minimal("schedule { policy_delay: 3 }")), {"schedule.policy_delay: datacom"});
}

TEST(Algorithms, ResolvingFillsOnlyWhatTheAlgorithmReads) {
  v1::Experiment experiment = Minimal();
  experiment.set_algorithm("sac");
  const v1::Experiment resolved = ResolveExperiment(experiment);
  EXPECT_TRUE(resolved.hyper().has_actor_lr());
  EXPECT_FALSE(resolved.hyper().has_barrier_margin());
  EXPECT_FALSE(resolved.has_planning());
  EXPECT_TRUE(Validate(resolved).ok()) << Validate(resolved);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
