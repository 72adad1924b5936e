#include "common/config/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/experiment.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/rule.pb.h"
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
  EXPECT_THAT(
      Explain("network.critic_hidden").value(),
      StartsWith("network.critic_hidden: list of whole numbers, default [128,128], at least 1, at most 8192\n"));
  EXPECT_THAT(Explain("hyper.multiplier_limit").value(),
              HasSubstr("read by datacom, iqn_datacom, if multiplier_mode=pi"));
}

TEST(Explain, AGroupWithoutACommentHasThatOfItsMessage) {
  EXPECT_THAT(Explain("task_file.known.sphere").value(), HasSubstr("Positions within a ball, or outside of it."));
  EXPECT_THAT(Explain("schedule").value(), HasSubstr("schedule: group\n  The defaults are for one machine: "));
}

TEST(Explain, ATableKeepsItsLines) {
  EXPECT_THAT(
      Explain("task_file.control.dynamics").value(),
      AllOf(HasSubstr("\n  Where f and G come from.\n    instantaneous      the forms that `mode` names. Contacts, "
                      "joint limits, equality constraints, friction loss and\n                       limits of "
                      "forces are no part of them\n    finite_difference  the task simulates"),
            Not(HasSubstr("\n\n"))));
  EXPECT_THAT(Explain("task_file.observation").value(),
              HasSubstr("\n  joint (hinge)     angle               one, wrapped to [-pi, pi]\n"));
  EXPECT_THAT(Explain("constraints.known").value(),
              HasSubstr("Empty = the published method.\n    air_hockey: groups joint_position, end_effector, "
                        "joint_velocity\n    navigation: groups wall, opponent, approach\n  An unknown name"));
}

TEST(Explain, AGroupListsItsFieldsWithTheFirstSentenceOfEach) {
  const std::string text = Explain("pretrain").value();
  EXPECT_THAT(text,
              AllOf(StartsWith("pretrain: group\n  updates before the run, from recorded transitions; absent = none"),
                    HasSubstr("Before training, the value functions"),
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
  EXPECT_EQ(Explain("zzzzzz.").status().message(), "there is no setting \"zzzzzz.\"");
  EXPECT_EQ(Explain("hyper.").value(), Explain("hyper").value());
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

TEST(Explain, ARefusalSaysWhatTheSettingMeansAndWhereToReadMore) {
  const auto* const hyper = v1::Hyper::descriptor();
  const std::string risk = " (datacom explain hyper.accepted_risk: rho = 1 - alpha of the paper)";
  EXPECT_EQ(InWords("hyper.accepted_risk", *hyper->FindFieldByName("accepted_risk")), risk);
  EXPECT_EQ(InWords("accepted_risk", *hyper->FindFieldByName("accepted_risk")), risk);
  EXPECT_EQ(InWords("members[1].hyper.actor_lr", *hyper->FindFieldByName("actor_lr")),
            " (datacom explain members.hyper.actor_lr: Adam's rate for the policy)");
  EXPECT_EQ(
      InWords("cost[0].budget", *v1::Cost::descriptor()->FindFieldByName("budget")),
      " (datacom explain task_file.cost.budget: What the sum of this cost over an episode may be; of all costs or "
      "of none)");
  EXPECT_EQ(InWords("hyper.toy_weight", *hyper->FindFieldByName("toy_weight")), "");
  EXPECT_EQ(WhereListed(*hyper), " (datacom explain hyper)");
  EXPECT_EQ(WhereListed(*v1::Experiment::descriptor()), " (datacom explain)");
  EXPECT_EQ(WhereListed(*v1::Signal::descriptor()), " (datacom explain task_file.observation)");
  EXPECT_EQ(WhereListed(*v1::TextTask::descriptor()), "");
}

using Fields = std::map<std::string, const google::protobuf::FieldDescriptor*>;

void Collect(const google::protobuf::Descriptor& message, Fields* fields) {
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    if (!fields->emplace(field.full_name(), &field).second) continue;
    if (field.message_type() != nullptr) Collect(*field.message_type(), fields);
  }
}

// Whatever a user can write.
Fields AllFields() {
  Fields fields;
  Collect(*v1::Experiment::descriptor(), &fields);
  Collect(*v1::Sweep::descriptor(), &fields);
  Collect(*v1::TaskDefinition::descriptor(), &fields);
  return fields;
}

TEST(Schema, RulesNameFieldsOfTheirMessage) {
  int found = 0;
  for (const auto& [name, field] : AllFields()) {
    const v1::Rule& rule = field->options().GetExtension(v1::rule);
    std::vector<std::string> named(rule.beside().begin(), rule.beside().end());
    if (rule.has_not_below()) named.push_back(rule.not_below());
    if (rule.has_above_field()) named.push_back(rule.above_field());
    for (const std::string& other : named) {
      EXPECT_NE(field->containing_type()->FindFieldByName(other), nullptr) << name << " names " << other;
      ++found;
    }
  }
  EXPECT_GT(found, 10);
}

TEST(Explain, EverySettingHasAMeaningThatAnInstalledUserCanFollow) {
  std::vector<std::string> silent, foreign;
  for (const auto& [name, field] : AllFields()) {
    const std::string meaning = MeaningOf(*field);
    if (meaning.empty()) silent.push_back(name);
    for (const char* place : {"docs/", "common/", "learner/", "deploy/", ".proto ", ".proto)", "AlgorithmInfo"}) {
      if (absl::StrContains(meaning, place)) foreign.push_back(absl::StrCat(name, " names ", place));
    }
  }
  EXPECT_EQ(absl::StrJoin(silent, "\n"), "");
  EXPECT_EQ(absl::StrJoin(foreign, "\n"), "");
}

// A group lists the first sentence of each.
TEST(Explain, NoTwoSettingsOfAnExperimentsGroupHaveTheSameFirstSentence) {
  std::vector<std::string> repeated;
  std::map<std::string, std::string> said;
  Fields fields;
  Collect(*v1::Experiment::descriptor(), &fields);
  for (const auto& [name, field] : fields) {
    const std::string meaning = MeaningOf(*field);
    const std::string first = meaning.substr(0, meaning.find_first_of(".\n"));
    const auto [at, is_new] = said.emplace(absl::StrCat(field->containing_type()->name(), ": ", first), name);
    if (!is_new) repeated.push_back(absl::StrCat(name, " and ", at->second, ": ", first));
  }
  EXPECT_EQ(absl::StrJoin(repeated, "\n"), "");
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
