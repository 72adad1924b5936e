#include "common/config/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/config/experiment.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/sweep.pb.h"
#include "datacom/v1/task.pb.h"

namespace datacom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Explain, ASettingHasItsFormItsMeaningAndItsReaders) {
  const std::string text = Explain("hyper.accepted_risk").value();
  EXPECT_EQ(text,
            "hyper.accepted_risk: number, default 0.9, above 0, below 1\n"
            "  rho = 1 - alpha of the paper\n"
            "  read by datacom, iqn_datacom, wcsac\n");
  EXPECT_THAT(Explain("hyper.multiplier_limit").value(),
              HasSubstr("read by datacom, iqn_datacom, if multiplier_mode=pi"));
}

TEST(Explain, AFieldWithoutACommentHasThatOfTheFieldAboveThatNamesIt) {
  EXPECT_THAT(Explain("hyper.reward_scale").value(), HasSubstr("Rewards are multiplied by reward_scale."));
  EXPECT_THAT(Explain("hyper.actor_lr").value(), Not(HasSubstr("reward")));
}

TEST(Explain, AGroupListsItsFieldsWithTheFirstSentenceOfEach) {
  const std::string text = Explain("pretrain").value();
  EXPECT_THAT(text,
              AllOf(StartsWith("pretrain: group\n  absent = none"), HasSubstr("Before training, the value functions"),
                    HasSubstr("\n  pretrain.updates: whole number, required, at least 1, at most 1e+12; not counted")));
  EXPECT_THAT(Explain("").value(), AllOf(HasSubstr("  hyper: group"), HasSubstr("  replay: group")));
}

TEST(Explain, SweepsAndTaskFilesHavePrefixesAndABareNameIsEnoughWhereItIsTheOnlyOne) {
  const std::string hyper = Explain("hyper").value(), said = "Every scalar that may differ between members";
  EXPECT_NE(hyper.find(said), std::string::npos);
  EXPECT_EQ(hyper.find(said), hyper.rfind(said)) << "a group's comment is said once";
  EXPECT_THAT(Explain("sweep.axes").value(), StartsWith("sweep.axes: list of groups"));
  EXPECT_THAT(Explain("task_file.cost").value(), HasSubstr("task_file.cost.value: text"));
  EXPECT_EQ(Explain("cost_budget").value().substr(0, 18), "hyper.cost_budget:");
  EXPECT_THAT(Explain("members[1].hyper.tau").status().message(), HasSubstr("did you mean learner.tau?"));
}

TEST(Explain, AWrongPathNamesTheNearestOnes) {
  EXPECT_EQ(Explain("hyper.cost_bugdet").status().message(),
            "there is no setting \"hyper.cost_bugdet\"; did you mean hyper.cost_budget?");
  EXPECT_EQ(Explain("zzzzzz").status().message(), "there is no setting \"zzzzzz\"");
  v1::Experiment experiment;
  EXPECT_THAT(ApplyOverride("hyper.init_detla=3", &experiment).message(), HasSubstr("did you mean hyper.init_delta?"));
}

TEST(Explain, WhatOnlyATestReadsIsNamedNowhere) {
  EXPECT_THAT(Explain("hyper").value(), Not(HasSubstr("toy")));
  EXPECT_THAT(Explain("toy_weight").status().message(), HasSubstr("there is no setting"));
  v1::Experiment experiment;
  EXPECT_THAT(ApplyOverride("hyper.speed=3", &experiment).message(),
              AllOf(HasSubstr("multiplier_limit, cost_unit, rate_half_life"), Not(HasSubstr("toy"))));
}

TEST(Explain, AMessageNamesTheCommandThatListsItsFields) {
  const auto* const hyper = v1::Hyper::descriptor();
  EXPECT_EQ(WhereListed(*hyper), " (datacom explain hyper)");
  EXPECT_EQ(WhereListed(*v1::Experiment::descriptor()), " (datacom explain)");
  EXPECT_EQ(WhereListed(*v1::Signal::descriptor()), " (datacom explain task_file.observation)");
  EXPECT_EQ(WhereListed(*v1::TextTask::descriptor()), "");
}

// Whatever a user can write has words.
TEST(Explain, EverySettingHasAMeaningOrIsPlainFromItsName) {
  std::vector<std::string> silent;
  const auto check = [&](const auto& self, const google::protobuf::Descriptor& message) -> void {
    for (int i = 0; i < message.field_count(); ++i) {
      const google::protobuf::FieldDescriptor& field = *message.field(i);
      if (MeaningOf(field).empty()) silent.push_back(field.full_name());
      if (field.message_type() != nullptr && field.message_type() != &message) self(self, *field.message_type());
    }
  };
  check(check, *v1::Experiment::descriptor());
  check(check, *v1::Sweep::descriptor());
  check(check, *v1::TaskDefinition::descriptor());
  std::sort(silent.begin(), silent.end());
  silent.erase(std::unique(silent.begin(), silent.end()), silent.end());
  EXPECT_EQ(absl::StrJoin(silent, "\n"), "");
}

TEST(Explain, ACommentedExperimentIsTheSameExperiment) {
  const v1::Experiment experiment = LoadExperiment("cartpole/datacom", ExperimentFolder()).value();
  const v1::Experiment resolved = ResolveExperiment(experiment);
  const std::string text = PrintExperiment(resolved), commented = WithComments(text);
  EXPECT_THAT(commented, HasSubstr("  # rho = 1 - alpha of the paper\n  accepted_risk: "));
  const v1::Experiment again = ParseExperiment(commented, "commented").value();
  EXPECT_EQ(PrintExperiment(again), text);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
