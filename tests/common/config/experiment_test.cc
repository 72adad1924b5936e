#include <filesystem>
#include <fstream>
#include <optional>

#include "common/config/algorithms.h"
#include "datacom/v1/task.pb.h"
#include "google/protobuf/descriptor.h"
#include "tests/common/config/testing.h"
#include "tests/testing/environment_variable.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

using google::protobuf::FieldDescriptor;

TEST(ParseExperiment, TakesTheByteOrderMarkOfAnEditor) {
  EXPECT_EQ(ParseExperiment("\xEF\xBB\xBFname: 'x'\r\n", "e.textproto").value().name(), "x");
}

TEST(ParseExperiment, NamesFileLineAndColumnOfAMistake) {
  ExpectInvalid(ParseExperiment("name: 'x'\nrun { env_stepz: 3 }", "a/b.textproto").status(),
                {"a/b.textproto:2:16", "env_stepz"});
  EXPECT_EQ(
      ParseExperiment("hyper {\n  cost_budgt: 3 }", "e.textproto").status().message(),
      "e.textproto:2:13: no field named \"cost_budgt\" in Hyper; did you mean cost_budget? (datacom explain hyper)");
  EXPECT_EQ(ParseExperiment("colour: 'red'", "f").status().message(),
            "f:1:7: no field named \"colour\" in Experiment (datacom explain)");
  ExpectInvalid(ParseExperiment("run { seed: -1 }", "f").status(), {"f:1:"});
  ExpectInvalid(ParseExperiment("run {", "f").status(), {"f:1:"});
}

TEST(LoadExperiment, TakesNamesAndPathsAndListsKnownNames) {
  const testing::TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  std::filesystem::create_directories(folder + "/cartpole");
  std::ofstream(folder + "/cartpole/mine.textproto") << "name: 'mine'";
  EXPECT_EQ(LoadExperiment("cartpole/mine", folder).value().name(), "mine");
  EXPECT_EQ(LoadExperiment(folder + "/cartpole/mine.textproto", "/nowhere").value().name(), "mine");
  EXPECT_THAT(ListTextprotos(folder), ::testing::ElementsAre("cartpole/mine"));
  ExpectInvalid(LoadExperiment("cartpole/other", folder).status(), {"cartpole/other", "cartpole/mine"});
  EXPECT_EQ(LoadExperiment("cartpole/mime", folder).status().message(),
            "unknown experiment \"cartpole/mime\"; did you mean cartpole/mine? `datacom list experiments` names all");
  const absl::Status missing = LoadExperiment("./none.textproto", folder).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound) << missing;
  EXPECT_THAT(std::string(missing.message()), ::testing::HasSubstr("none.textproto"));
}

TEST(ExperimentFolder, IsSetByTheEnvironmentOrIsTheTrees) {
  const testing::EnvironmentVariable unset("DATACOM_EXPERIMENTS", std::nullopt);
  EXPECT_TRUE(std::filesystem::exists(ExperimentFolder() + "/cartpole/datacom.textproto")) << ExperimentFolder();
  const testing::EnvironmentVariable moved("DATACOM_EXPERIMENTS", "/somewhere");
  EXPECT_EQ(ExperimentFolder(), "/somewhere");
}

// Every singular scalar with a default is set, except in members, in settings that datacom does not read, and in
// demonstrations, whose absence means that there are none.
void ExpectComplete(const google::protobuf::Message& message) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->is_repeated() || !ReadsSetting(*FindAlgorithm("datacom"), *field)) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (field->name() == "demonstrations" && !message.GetReflection()->HasField(message, field)) continue;
      ExpectComplete(message.GetReflection()->GetMessage(message, field));
    } else if (field->has_default_value()) {
      EXPECT_TRUE(message.GetReflection()->HasField(message, field)) << field->full_name();
    }
  }
}

TEST(ResolveExperiment, FillsEveryDefaultAndOneMember) {
  const v1::Experiment resolved = ResolveExperiment(Minimal("run { seed: 7 }"));
  ExpectComplete(resolved);
  EXPECT_THAT(resolved.network().actor_hidden(), ::testing::ElementsAre(128, 128));
  EXPECT_THAT(resolved.network().critic_hidden(), ::testing::ElementsAre(128, 128));
  EXPECT_THAT(resolved.network().constraint_hidden(), ::testing::ElementsAre(128, 128));
  ASSERT_EQ(resolved.members_size(), 1);
  EXPECT_EQ(resolved.members(0).seed(), 7u);
  EXPECT_FALSE(resolved.has_task_options()) << "unset task options leave the task's own defaults";
  EXPECT_THAT(Validate(resolved), IsOk());
}

TEST(ResolveExperiment, LeavesATextTaskAsItIs) {
  const v1::Experiment given =
      Minimal("task_options { [datacom.v1.text_task] { definition { name: 'arm' control { } } } }");
  EXPECT_EQ(ResolveExperiment(given).task_options().SerializeAsString(), given.task_options().SerializeAsString());
}

TEST(ResolveExperiment, TheBudgetIsOneShareWhereTheCostsOfTheTaskHaveBudgets) {
  v1::Experiment experiment;
  experiment.set_algorithm("datacom");
  v1::Cost* const cost =
      experiment.mutable_task_options()->MutableExtension(v1::text_task)->mutable_definition()->add_cost();
  EXPECT_EQ(ResolveExperiment(experiment).hyper().cost_budget(), 5) << "the default";
  cost->set_budget(25);
  EXPECT_EQ(ResolveExperiment(experiment).hyper().cost_budget(), 1);
  experiment.mutable_hyper()->set_cost_budget(2);
  EXPECT_EQ(ResolveExperiment(experiment).hyper().cost_budget(), 2) << "a given value stays";
  experiment.clear_hyper();
  experiment.set_algorithm("sac");
  EXPECT_FALSE(ResolveExperiment(experiment).hyper().has_cost_budget()) << "sac has no budget";
}

TEST(ResolveExperiment, KeepsGivenValuesAndIsIdempotent) {
  const v1::Experiment given = Minimal(
      "run { env_steps: 5000 lockstep: true } network { actor_hidden: 32 } learner { tau: 0.5 } members { seed: 3 "
      "hyper { alpha_lr: 0.1 } }");
  const v1::Experiment once = ResolveExperiment(given);
  EXPECT_EQ(once.run().env_steps(), 5000u);
  EXPECT_THAT(once.network().actor_hidden(), ::testing::ElementsAre(32));
  EXPECT_EQ(once.learner().tau(), 0.5);
  EXPECT_EQ(ResolveExperiment(once).SerializeAsString(), once.SerializeAsString());
}

TEST(ResolveExperiment, LeavesOnlyOverridesInMembers) {
  const v1::Experiment resolved =
      ResolveExperiment(Minimal("hyper { alpha_lr: 0.2 actor_lr: 0.3 } members { seed: 1 hyper { alpha_lr: 0.1 } }"));
  EXPECT_FALSE(resolved.members(0).hyper().has_actor_lr());
  const v1::Hyper merged = MemberHyper(resolved, 0);
  EXPECT_EQ(merged.alpha_lr(), 0.1);
  EXPECT_EQ(merged.actor_lr(), 0.3);
  EXPECT_EQ(merged.delta_warmup(), 50000u);
}

TEST(ResolveExperiment, LockstepSetsTheFieldsThatItImplies) {
  const v1::Experiment resolved = ResolveExperiment(Minimal("run { lockstep: true } schedule { max_policy_lag: 99 }"));
  EXPECT_EQ(resolved.schedule().max_policy_lag(), 0u);
  EXPECT_EQ(resolved.schedule().tolerance_steps(), 1u);
  EXPECT_EQ(resolved.schedule().publish_period(), 1u);
  EXPECT_THAT(Validate(resolved), IsOk());
}

TEST(ResolveExperiment, AnOnPolicyAlgorithmHasDefaultsThatFollowFromItsEpoch) {
  v1::Experiment experiment = Minimal("run { steps_per_epoch: 500 } replay { capacity: 2000 }");
  experiment.set_algorithm("rcpo");
  const v1::Experiment resolved = ResolveExperiment(experiment);
  EXPECT_EQ(resolved.schedule().updates_per_step(), 0.002);
  EXPECT_EQ(resolved.schedule().tolerance_steps(), 256u);
  EXPECT_EQ(resolved.schedule().max_policy_lag(), 0u);
  EXPECT_EQ(resolved.schedule().publish_period(), 1u);
  EXPECT_EQ(resolved.replay().min_size(), 0u);
  EXPECT_EQ(resolved.replay().capacity(), 2000u) << "as given";
  EXPECT_EQ(resolved.run().checkpoint_updates(), 1u);
  EXPECT_EQ(resolved.learner().failure_batch_size(), 0u);
  EXPECT_EQ(PrintExperiment(ResolveExperiment(resolved)), PrintExperiment(resolved));
  EXPECT_EQ(RowsPerDraw(resolved), 500u);
  EXPECT_EQ(RowsPerDraw(ResolveExperiment(Minimal())), 70u);
  experiment.mutable_run()->set_steps_per_epoch(100);
  EXPECT_EQ(ResolveExperiment(experiment).schedule().tolerance_steps(), 100u);
}

TEST(PrintExperiment, ReadsBackUnchanged) {
  const v1::Experiment resolved = ResolveExperiment(
      Minimal("description: 'a \"quoted\" line — and more' hyper { actor_lr: 0.00012345678901234567 }"));
  const std::string text = PrintExperiment(resolved);
  const v1::Experiment back = ParseExperiment(text, "printed").value();
  EXPECT_EQ(back.SerializeAsString(), resolved.SerializeAsString());
  EXPECT_THAT(text, ::testing::HasSubstr("actor_hidden: [128, 128]"));
  EXPECT_THAT(text, ::testing::HasSubstr("— and"));
}

TEST(ParseSeeds, ReadsNumbersRangesAndLists) {
  EXPECT_THAT(ParseSeeds("0-4").value(), ::testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ParseSeeds("3").value(), ::testing::ElementsAre(3));
  EXPECT_THAT(ParseSeeds("0,2,5-7").value(), ::testing::ElementsAre(0, 2, 5, 6, 7));
  EXPECT_THAT(ParseSeeds("18446744073709551615").value(), ::testing::ElementsAre(18446744073709551615u));
}

TEST(DiscountOfReturns, CountsTheControlStepsOfADecision) {
  v1::Experiment experiment = ResolveExperiment(Minimal());
  EXPECT_EQ(DiscountOfReturns(experiment), 0.99);
  experiment.mutable_task_options()->set_action_repeat(1);
  EXPECT_EQ(DiscountOfReturns(experiment), 0.99);
  experiment.mutable_task_options()->set_action_repeat(5);
  EXPECT_NEAR(DiscountOfReturns(experiment), 0.9509900499, 1e-12);
  experiment.mutable_learner()->set_discount(0.5);
  EXPECT_EQ(DiscountOfReturns(experiment), 0.03125);
  experiment.mutable_run()->set_return_discount(0.99);
  EXPECT_NEAR(DiscountOfReturns(experiment), 0.9509900499, 1e-12);
}

TEST(ParseSeeds, RefusesAnInvalidList) {
  for (const char* text : {"", "a", "1-", "-1", "1-2-3", "3-1", "1,,2", "1.5", "0-18446744073709551615"}) {
    ExpectInvalid(ParseSeeds(text).status(), {"\" "});
  }
  ExpectInvalid(ParseSeeds("1,0-2").status(), {"1", "twice"});
}

TEST(SetSeeds, MakesOneMemberPerSeedAndDropsNoOverride) {
  v1::Experiment experiment = Minimal("members { seed: 9 }");
  ASSERT_THAT(SetSeeds({4, 5}, &experiment), IsOk());
  ASSERT_EQ(experiment.members_size(), 2);
  EXPECT_EQ(experiment.members(1).seed(), 5u);
  v1::Experiment own = Minimal("members { seed: 1 } members { seed: 9 hyper { actor_lr: 0.1 } }");
  ExpectInvalid(SetSeeds({4}, &own), {"members[1].hyper"});
  EXPECT_EQ(own.members_size(), 2);
  ExpectInvalid(SetSeeds({}, &own), {"seeds"});
}

TEST(Algorithms, AreFoundByName) {
  ASSERT_NE(FindAlgorithm("datacom"), nullptr);
  EXPECT_EQ(FindAlgorithm("datacom")->acting_rule, "safe_map");
  EXPECT_TRUE(FindAlgorithm("datacom")->learns_delta);
  EXPECT_EQ(FindAlgorithm("sac")->acting_rule, "gaussian_policy");
  EXPECT_FALSE(FindAlgorithm("sac")->learns_delta);
  EXPECT_EQ(FindAlgorithm("nonsense"), nullptr);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
