#include "deploy/cli/sweep.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/config/experiment.h"
#include "datacom/v1/task.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/golden_text.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::cli {
namespace {

using ::datacom::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ToleranceAndPeriod = std::pair<uint64_t, uint64_t>;

constexpr char kCartpole[] = "name: 'cartpole/datacom' task: 'cartpole' algorithm: 'datacom' hyper { slack_beta: 3 }";
constexpr char kLagSac[] = "name: 'cartpole/lag_sac' task: 'cartpole' algorithm: 'lag_sac'";

SweepInput Input(const std::string& text, const std::vector<std::string>& experiments = {kCartpole}) {
  SweepInput input;
  input.file = "my.textproto";
  EXPECT_EQ(ParseTextproto("name: 'mine' " + text, input.file, &input.sweep), absl::OkStatus());
  for (const std::string& experiment : experiments) {
    input.experiments.push_back(ParseExperiment(experiment, "test").value());
    input.sweep.add_experiments(input.experiments.back().name());
  }
  return input;
}

std::vector<SweepRun> Expand(const SweepInput& input) {
  absl::StatusOr<std::vector<SweepRun>> populations = ExpandSweep(input);
  EXPECT_THAT(populations, IsOk());
  return populations.ok() ? *std::move(populations) : std::vector<SweepRun>();
}

std::vector<std::string> Names(const std::vector<SweepRun>& populations) {
  std::vector<std::string> names;
  for (const SweepRun& population : populations) names.push_back(population.name);
  return names;
}

// "label/seed" of each member.
std::vector<std::string> Members(const SweepRun& population) {
  std::vector<std::string> members;
  for (const v1::Member& member : population.experiment.members()) {
    members.push_back(member.label() + "/" + std::to_string(member.seed()));
  }
  return members;
}

// Expects a refusal whose message contains the file and every part.
void ExpectRefused(const SweepInput& input, const std::vector<std::string>& parts) {
  const absl::Status status = ExpandSweep(input).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("my.textproto"));
  for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

constexpr char kBudgets[] =
    "axes { name: 'budget' points { label: 'low' set: 'hyper.cost_budget=1' }"
    " points { label: 'high' set: 'hyper.cost_budget=9' set: 'hyper.init_delta=2' } }";
constexpr char kHorizons[] =
    "axes { name: 'H' points { label: 'short' set: 'task_options.horizon=50' } points { label: 'long' } }";

TEST(ExpandSweep, ItsSeedsTakeThePlaceOfThoseThatConfigWrites) {
  const auto populations = Expand(Input("seeds: '3-4'", {std::string(kCartpole) + " members { seed: 0 }"}));
  ASSERT_EQ(populations.size(), 1u);
  EXPECT_THAT(Members(populations[0]), ElementsAre("cartpole/datacom/3", "cartpole/datacom/4"));
}

TEST(ExpandSweep, HyperParametersAndSeedsAreMembersOfOnePopulation) {
  const auto populations = Expand(Input(std::string("seeds: '3-4' ") + kBudgets));
  ASSERT_THAT(Names(populations), ElementsAre("cartpole-datacom"));
  EXPECT_THAT(Members(populations[0]), ElementsAre("budget low/3", "budget low/4", "budget high/3", "budget high/4"));
  const v1::Experiment& experiment = populations[0].experiment;
  EXPECT_EQ(MemberHyper(experiment, 1).cost_budget(), 1);
  EXPECT_EQ(MemberHyper(experiment, 1).init_delta(), 1);  // the schema's default
  EXPECT_EQ(MemberHyper(experiment, 2).cost_budget(), 9);
  EXPECT_EQ(MemberHyper(experiment, 2).init_delta(), 2);
  EXPECT_EQ(MemberHyper(experiment, 2).slack_beta(), 3);  // from the experiment
  EXPECT_EQ(experiment.learner().batch_size(), 64u);      // resolved
}

TEST(ExpandSweep, OtherFieldsMakePopulationsWithTheFirstAxisSlowest) {
  const auto populations = Expand(Input(std::string(kHorizons) + kBudgets, {kCartpole, kLagSac}));
  ASSERT_THAT(Names(populations), ElementsAre("cartpole-datacom_H-short", "cartpole-datacom_H-long",
                                              "cartpole-lag_sac_H-short", "cartpole-lag_sac_H-long"));
  EXPECT_THAT(Members(populations[0]), ElementsAre("H short, budget low/0", "H short, budget high/0"));
  EXPECT_EQ(populations[0].experiment.task_options().horizon(), 50u);
  EXPECT_FALSE(populations[1].experiment.task_options().has_horizon());
  EXPECT_EQ(populations[2].experiment.algorithm(), "lag_sac");
}

TEST(ExpandSweep, LeavesASettingOutWhereOnlyOtherMethodsReadIt) {
  const auto populations = Expand(Input(kBudgets, {kCartpole, kLagSac}));
  ASSERT_EQ(populations.size(), 2u);
  EXPECT_EQ(MemberHyper(populations[0].experiment, 1).init_delta(), 2);
  EXPECT_EQ(MemberHyper(populations[1].experiment, 1).cost_budget(), 9);
  EXPECT_FALSE(MemberHyper(populations[1].experiment, 1).has_init_delta());
  ExpectRefused(Input("set: 'hyper.clip_ratio=0.1'", {kCartpole, kLagSac}), {"hyper.clip_ratio", "ppo_lag does"});
}

TEST(ExpandSweep, AnAxisOfMembersMayComeBeforeAnAxisOfPopulations) {
  const auto populations = Expand(Input(std::string(kBudgets) + kHorizons));
  ASSERT_THAT(Names(populations), ElementsAre("cartpole-datacom_H-short", "cartpole-datacom_H-long"));
  EXPECT_THAT(Members(populations[1]), ElementsAre("budget low, H long/0", "budget high, H long/0"));
}

TEST(ExpandSweep, WithoutAxesTheMembersAreTheSeeds) {
  const auto populations = Expand(Input("seeds: '0-2' set: 'hyper.cost_budget=7'"));
  ASSERT_EQ(populations.size(), 1u);
  EXPECT_THAT(Members(populations[0]), ElementsAre("cartpole/datacom/0", "cartpole/datacom/1", "cartpole/datacom/2"));
  EXPECT_EQ(MemberHyper(populations[0].experiment, 2).cost_budget(), 7);
}

TEST(ExpandSweep, PointsOutsideHyperMayChangeHyperParametersToo) {
  const auto populations =
      Expand(Input("axes { name: 'a' points { label: 'x' set: 'learner.tau=0.1' set: 'hyper.cost_budget=2' } }"));
  EXPECT_EQ(MemberHyper(populations.at(0).experiment, 0).cost_budget(), 2);
}

TEST(ExpandSweep, DependsOnlyOnItsInput) {
  const SweepInput input = Input(std::string("seeds: '0-9' limits { max_members: 3 } ") + kHorizons + kBudgets);
  const auto once = Expand(input), again = Expand(input);
  ASSERT_EQ(Names(once), Names(again));
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(PrintExperiment(once[i].experiment), PrintExperiment(again[i].experiment));
  }
}

TEST(ExpandSweep, SplitsIntoTheFewestPartsOfEqualSize) {
  const auto populations = Expand(Input(std::string("seeds: '0-4' limits { max_members: 4 } ") + kBudgets));
  ASSERT_THAT(Names(populations),
              ElementsAre("cartpole-datacom_part-1", "cartpole-datacom_part-2", "cartpole-datacom_part-3"));
  EXPECT_THAT(Members(populations[0]), ElementsAre("budget low/0", "budget low/1", "budget low/2", "budget low/3"));
  EXPECT_THAT(Members(populations[1]), ElementsAre("budget low/4", "budget high/0", "budget high/1"));
  EXPECT_THAT(Members(populations[2]), ElementsAre("budget high/2", "budget high/3", "budget high/4"));
}

TEST(ExpandSweep, EveryPartFitsTheLimitsOfMemoryAndDisk) {
  const auto whole = Expand(Input("seeds: '0-31'"));
  ASSERT_EQ(whole.size(), 1u);
  const auto check = [&whole](const std::string& limit, auto bytes) {
    const double most = bytes(whole[0].needs) / 2e9 + 0.3;  // the needs of the processes count in every part
    const auto parts = Expand(Input("seeds: '0-31' limits { " + limit + ": " + std::to_string(most) + " }"));
    EXPECT_GT(parts.size(), 1u);
    int members = 0;
    for (const SweepRun& part : parts) {
      EXPECT_LE(bytes(part.needs), most * 1e9);
      members += part.experiment.members_size();
    }
    EXPECT_EQ(members, 32);
  };
  check("memory_gb", [](const Needs& needs) { return static_cast<double>(needs.memory_bytes); });
  check("disk_gb", [](const Needs& needs) { return static_cast<double>(needs.disk_bytes()); });
  ExpectRefused(Input("limits { memory_gb: 0.01 }"), {"limits.memory_gb", "0.01", "single member"});
}

// The tolerance and the period of a single experiment over a network.
ToleranceAndPeriod NetworkSchedule(const std::string& sweep, const std::string& experiment) {
  SweepInput input = Input(sweep, {experiment});
  input.network = true;
  const auto populations = Expand(input);
  if (populations.size() != 1) return {};
  const v1::Schedule& schedule = populations[0].experiment.schedule();
  return {schedule.tolerance_steps(), schedule.publish_period()};
}

TEST(ExpandSweep, OverANetworkMessagesAreFewerUnlessTheExperimentOrTheSweepSetsThem) {
  EXPECT_EQ(NetworkSchedule("", kCartpole), ToleranceAndPeriod(64, 16));
  EXPECT_EQ(NetworkSchedule("", std::string(kCartpole) + " schedule { publish_period: 4 }"), ToleranceAndPeriod(64, 4));
  EXPECT_EQ(NetworkSchedule("set: 'schedule.tolerance_steps=16'", kCartpole), ToleranceAndPeriod(16, 16));
  EXPECT_EQ(NetworkSchedule("set: 'run.lockstep=true'", kCartpole), ToleranceAndPeriod(1, 1));
}

TEST(ExpandSweep, OverANetworkAnAlgorithmKeepsTheScheduleThatItNeeds) {
  EXPECT_EQ(NetworkSchedule("", "name: 'on_policy' task: 'cartpole' algorithm: 'ppo_lag'"), ToleranceAndPeriod(256, 1));
  EXPECT_EQ(NetworkSchedule("set: 'algorithm=rcpo'", kLagSac), ToleranceAndPeriod(256, 1));
  EXPECT_EQ(NetworkSchedule("", "name: 'plans' task: 'cartpole' algorithm: 'safe_loop' replay { min_size: 0 }"),
            ToleranceAndPeriod(64, 5));
}

TEST(ExpandSweep, RefusesMoreMembersThanItCanPlanNamingTheAxes) {
  std::string axes;
  const char* const fields[] = {"actor_lr", "critic_lr", "cost_budget", "init_delta", "delta_lr"};
  for (const std::string field : fields) {
    axes += "axes { name: '" + field + "'";
    for (int i = 1; i <= 10; ++i) {
      axes += " points { label: '" + std::to_string(i) + "' set: 'hyper." + field + "=0." + std::to_string(i) + "' }";
    }
    axes += " }";
  }
  ExpectRefused(
      Input("seeds: '0-4' " + axes),
      {"axes: their points make 500000 members (5 seeds x 10 points of \"actor_lr\" x 10 points of \"critic_lr\"",
       "at most 65536 are planned"});
}

TEST(ExpandSweep, RefusesAnUnknownPathNamingAxisAndPoint) {
  ExpectRefused(Input("axes { name: 'a' points { label: 'x' set: 'hyper.colour=1' } }"),
                {"axis \"a\", point \"x\"", "hyper.colour", "no field"});
  ExpectRefused(Input("axes { name: 'a' points { label: 'x' set: 'hyper.cost_budget' } }"),
                {"point \"x\"", "path=value"});
  ExpectRefused(Input("set: 'tasks=1'"), {"set", "tasks"});
}

TEST(ExpandSweep, RefusesAValueOutOfRangeNamingAxisAndPoint) {
  ExpectRefused(Input("axes { name: 'a' points { label: 'x' set: 'hyper.accepted_risk=0.5' }"
                      " points { label: 'y' set: 'hyper.accepted_risk=2' } }"),
                {"axis \"a\", point \"y\"", "hyper.accepted_risk", "2 is not below 1"});
  ExpectRefused(Input("axes { name: 'a' points { label: 'x' set: 'task=moon' } }"), {"point \"x\"", "task", "moon"});
  ExpectRefused(Input("limits { max_members: 0 }"), {"limits.max_members", "0 is below 1"});
}

TEST(ExpandSweep, RefusesEmptyAndRepeatedNames) {
  ExpectRefused(Input("axes { name: 'a' }"), {"axis \"a\"", "no points"});
  ExpectRefused(Input("axes { name: 'a' points { label: 'x' } points { label: 'x' set: 'hyper.cost_budget=1' } }"),
                {"axis \"a\", point \"x\"", "another point has this label"});
  ExpectRefused(Input("axes { name: 'a' points { label: 'x' } } axes { name: 'a' points { label: 'y' } }"),
                {"axis \"a\"", "another axis has this name"});
  ExpectRefused(Input("axes { name: 'a' points { set: 'hyper.cost_budget=1' } }"), {"axes[0].points[0].label"});
  ExpectRefused(Input("", {}), {"experiments", "is empty"});
  ExpectRefused(Input("seeds: '4-2'"), {"my.textproto: seeds: \"4-2\" ends"});
}

TEST(ExpandSweep, RefusesTwoAssignmentsOfOnePath) {
  ExpectRefused(Input("axes { name: 'a' points { label: 'x' set: 'hyper.cost_budget=1' } }"
                      "axes { name: 'b' points { label: 'y' set: 'hyper.cost_budget=2' } }"),
                {"axis \"b\", point \"y\"", "hyper.cost_budget", "axis \"a\""});
  ExpectRefused(Input(std::string("set: 'hyper.cost_budget=1' ") + kBudgets), {"hyper.cost_budget", "set"});
}

TEST(ExpandSweep, RefusesToSetSeedsNamesAndMembers) {
  ExpectRefused(Input("axes { name: 'a' points { label: 'x' set: 'seed=1' } }"), {"point \"x\"", "seeds"});
  ExpectRefused(Input("set: 'name=other'"), {"name"});
  for (const char* const more : {"hyper { slack_beta: 4 }", "label: 'one'"}) {
    ExpectRefused(Input("", {absl::StrCat(kCartpole, " members { seed: 1 ", more, " }")}),
                  {"cartpole/datacom", "members"});
  }
}

TEST(ExpandSweep, RefusesPointsThatDoNotDiffer) {
  ExpectRefused(Input("axes { name: 'a' points { label: 'x' } points { label: 'y' } }"), {"members[1]", "are equal"});
  ExpectRefused(Input("axes { name: 'a' points { label: 'x y' set: 'learner.tau=0.1' }"
                      " points { label: 'x-y' set: 'learner.tau=0.2' } }"),
                {"cartpole-datacom_a-x-y", "labels"});
}

TEST(SweepFolder, KeepsItsRunsWhenOnlyADescriptionChanged) {
  const SweepInput input = Input(kBudgets);
  std::vector<SweepRun> populations = Expand(input);
  const datacom::testing::TemporaryFolder folder;
  const std::string dir = folder.path() + "/described_sweep";
  ASSERT_THAT(PrepareSweepFolder(dir, input.sweep, populations), IsOk());
  populations[0].experiment.set_description("in other words");
  EXPECT_THAT(CheckSweepFolder(dir, populations), IsOk());
  populations[0].experiment.mutable_learner()->set_batch_size(32);
  EXPECT_FALSE(CheckSweepFolder(dir, populations).ok());
}

TEST(SweepFolder, LargeFilesOfAModelStandBesideTheExperimentOfARun) {
  const SweepInput input = Input(kBudgets);
  std::vector<SweepRun> populations = Expand(input);
  v1::TextTask* const task = populations[0].experiment.mutable_task_options()->MutableExtension(v1::text_task);
  v1::TaskFile* const mesh = task->add_file();
  mesh->set_name("hand.stl");
  mesh->set_sha256(std::string(64, '7'));
  mesh->set_gzip(std::string(1000, 'x'));
  const datacom::testing::TemporaryFolder folder;
  const std::string dir = folder.path() + "/sweep", run = RunFolder(dir, populations[0]);
  ASSERT_THAT(PrepareSweepFolder(dir, input.sweep, populations), IsOk());
  EXPECT_THAT(*ReadFile(run + "/experiment.textproto"), ::testing::Not(HasSubstr("xxx")));
  EXPECT_EQ(*ReadFile(absl::StrCat(run, "/task_files/", std::string(64, '7'), ".gz")), std::string(1000, 'x'));
}

TEST(SweepFolder, AnEmptyListOfRunsIsWrittenAgainByTheSweepsCommand) {
  const SweepInput input = Input(kBudgets);
  const std::vector<SweepRun> populations = Expand(input);
  const datacom::testing::TemporaryFolder folder;
  const std::string dir = folder.path() + "/sweep";
  ASSERT_THAT(PrepareSweepFolder(dir, input.sweep, populations), IsOk());
  EXPECT_THAT(*RunsOfFolder(dir), ElementsAre(RunFolder(dir, populations[0])));
  ASSERT_THAT(WriteFileAtomically(dir + "/populations.txt", ""), IsOk());
  EXPECT_THAT(std::string(RunsOfFolder(dir).status().message()), HasSubstr("names no run; repeat the sweep's command"));
  EXPECT_THAT(CheckSweepFolder(dir, populations), IsOk());
  ASSERT_THAT(WriteFileAtomically(dir + "/populations.txt", "another\n"), IsOk());
  EXPECT_THAT(std::string(CheckSweepFolder(dir, populations).message()), HasSubstr("a sweep of other populations"));
}

// After a change that is meant, write the golden list with
//   DATACOM_WRITE_GOLDEN=1 build/release/tests/deploy_test --gtest_filter='ShippedSweeps.*'
TEST(ShippedSweeps, NameTheirFigureAndHaveTheGoldenNumbersOfRunsAndMembers) {
  const std::vector<std::string> names = ListTextprotos(SweepFolder());
  ASSERT_FALSE(names.empty());
  std::string text = "# The shipped sweeps: name, runs, members.\n";
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const absl::StatusOr<SweepInput> input = LoadSweep(name);
    ASSERT_THAT(input, IsOk());
    EXPECT_EQ(input->sweep.name(), name);
    EXPECT_THAT(input->sweep.description(), HasSubstr("paper"));
    const std::vector<SweepRun> runs = Expand(*input);
    int members = 0;
    for (const SweepRun& run : runs) members += run.experiment.members_size();
    absl::StrAppend(&text, name, " ", runs.size(), " ", members, "\n");
  }
  datacom::testing::ExpectGoldenText("tests/golden/experiments/sweeps.txt", text);
}

TEST(ShippedSweeps, AFixedDeltaEqualsItsLabel) {
  const auto populations = Expand(LoadSweep("air_hockey/fixed_deltas").value());
  int fixed = 0;
  for (int i = 0; i < populations.at(0).experiment.members_size(); ++i) {
    const v1::Hyper hyper = MemberHyper(populations[0].experiment, i);
    const std::string& label = populations[0].experiment.members(i).label();
    if (hyper.delta_mode() == "learned") continue;
    EXPECT_EQ("delta " + std::to_string(hyper.init_delta()).substr(0, label.size() - 6), label);
    ++fixed;
  }
  EXPECT_EQ(fixed, 50);
}

}  // namespace
}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
