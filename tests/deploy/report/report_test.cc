#include "deploy/report/report.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/base/files.h"
#include "common/config/experiment.h"
#include "datacom/v1/task.pb.h"
#include "deploy/report/groups.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/damaged_csv.h"
#include "tests/testing/environment_variable.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::report {
namespace {

using datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kProgress[] =
    "member,seed,epoch,env_steps,updates,wall_seconds,eval_return,delta,status\n"
    "0,5,0,0,0,0,10,6,ok\n"
    "1,6,0,0,0,0,14,6,ok\n"
    "0,5,1,1000,500,5,20,5,ok\n"
    "1,6,1,1000,500,5,,4,diverged\n";
constexpr char kEpisodes[] =
    "member,env_steps,sum_cost,max_violation\n"
    "0,400,3,0.25\n"
    "1,500,10,2\n"
    "0,900,4,0.75\n"
    "0,1000,5,0.5\n";

const MapMaker kNoMap = [](const std::string& run_dir) {
  return absl::StatusOr<std::string>(absl::UnavailableError("nothing <draws> in " + run_dir));
};

Csv Parsed(const std::string& text) { return *Csv::Parse(text, "test"); }

// The run with the records above.
Run Recorded(bool episodes) {
  Run run;
  run.folder = "runs/a";
  run.experiment.set_name("cartpole/x");
  run.progress = Parsed(kProgress);
  if (episodes) run.episodes = Parsed(kEpisodes);
  return run;
}

Series SeriesOf(const std::string& quantity, bool episodes = false) {
  const std::vector<report::Run> runs = {Recorded(episodes)};
  return GroupSeries(GroupRuns(runs).at(0), quantity);
}

class ReportTest : public ::testing::Test {
 protected:
  ReportTest() {
    v1::Experiment experiment;
    experiment.set_name("cartpole/<b>");
    experiment.set_description("</script><script>alert(1)</script>");
    experiment.set_task("cartpole");
    experiment.set_algorithm("datacom");
    Write("experiment.textproto", PrintExperiment(ResolveExperiment(experiment)));
    Write("progress.csv", kProgress);
    Write("episodes.csv", kEpisodes);
    Write("build.txt", "revision 123\n");
  }
  void Write(const std::string& name, const std::string& content) { std::ofstream(folder_ / name) << content; }

  const testing::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(ReportTest, ShowsEachCostOfATaskWithSeveral) {
  v1::Experiment experiment;
  experiment.set_task("mine");
  experiment.set_algorithm("sac");
  for (const char* cost : {"wall", "speed"}) {
    experiment.mutable_task_options()
        ->MutableExtension(v1::text_task)
        ->mutable_definition()
        ->add_cost()
        ->set_name(cost);
  }
  Write("experiment.textproto", PrintExperiment(experiment));
  Write("progress.csv",
        "member,seed,epoch,env_steps,updates,eval_max_violation.wall,eval_sum_cost.wall,eval_max_violation.speed,"
        "eval_sum_cost.speed,status\n0,5,0,0,0,0.5,2,0.25,1,ok\n");
  const auto data = ReportData({folder_.string()}, kNoMap);
  ASSERT_THAT(data, IsOk());
  const nlohmann::json& summary = (*data)["groups"][0]["summary"];
  EXPECT_EQ(summary["eval_max_violation.wall"][0], 0.5);
  EXPECT_EQ(summary["eval_sum_cost.speed"][0], 1.0);
  EXPECT_EQ((*data)["quantities"].back()["title"], "Cost speed: violating steps per episode");
  EXPECT_THAT((*data)["quantities"].dump(), Not(HasSubstr("eval_success_rate"))) << "the task defines no success";
}

TEST(GroupSeries, IsTheMeanOverMembersAtEqualSteps) {
  const Series series = SeriesOf("eval_return");
  ASSERT_EQ(series.steps, (std::vector<double>{0, 1000}));
  EXPECT_EQ(series.values[0].mean, 12);
  EXPECT_NEAR(series.values[0].half, 12.7062047362 * 2, 1e-8);  // deviation 2.83, over sqrt(2): standard error 2
  EXPECT_EQ(series.values[1].count, 1);                         // an empty cell is not counted
  EXPECT_EQ(series.values[1].mean, 20);
}

TEST(GroupSeries, UpdatesPerSecondIsTheGrowthBetweenRows) {
  const Series series = SeriesOf("updates_per_second");
  ASSERT_EQ(series.steps, (std::vector<double>{1000}));
  EXPECT_EQ(series.values[0].mean, 100);
}

TEST(GroupSeries, CumulativeCostAddsAllEndedEpisodes) {
  const Series series = SeriesOf("cumulative_cost", true);
  ASSERT_EQ(series.steps, (std::vector<double>{0, 1000}));
  EXPECT_EQ(series.values[0].mean, 0);
  EXPECT_EQ(series.values[1].mean, (3 + 4 + 5 + 10) / 2.0);
  EXPECT_TRUE(SeriesOf("cumulative_cost").steps.empty());
}

TEST(GroupSeries, CountsTheViolatingStepsOfAllEndedEpisodesAndNothingInRecordsWithoutThem) {
  report::Run run = Recorded(false);
  run.episodes = Parsed(
      "member,env_steps,sum_cost,max_violation,violating_steps,log.speed\n0,400,3,0.25,7,1\n0,1000,4,0.75,2,3\n"
      "1,900,4,0.75,5,9\n");
  const std::vector<report::Run> runs = {run};
  const Group group = GroupRuns(runs).at(0);
  const Series series = GroupSeries(group, "cumulative_violating_steps");
  ASSERT_EQ(series.steps, (std::vector<double>{0, 1000}));
  EXPECT_EQ(series.values[0].mean, 0);
  EXPECT_EQ(series.values[1].mean, (7 + 2 + 5) / 2.0);
  EXPECT_EQ(GroupSeries(group, "newest_log.speed").values.back().mean, (2 + 9) / 2.0);
  EXPECT_TRUE(SeriesOf("cumulative_violating_steps", true).steps.empty()) << "records of an earlier revision";
}

TEST_F(ReportTest, ShowsTheMeansOfWhatTheTaskLogs) {
  v1::Experiment experiment;
  experiment.set_task("mine");
  experiment.set_algorithm("sac");
  experiment.mutable_task_options()
      ->MutableExtension(v1::text_task)
      ->mutable_definition()
      ->add_log()
      ->set_name("speed");
  Write("experiment.textproto", PrintExperiment(experiment));
  Write("progress.csv", "member,seed,epoch,env_steps,updates,eval_log.speed,status\n0,5,0,0,0,1.5,ok\n");
  const auto data = ReportData({folder_.string()}, kNoMap);
  ASSERT_THAT(data, IsOk());
  EXPECT_EQ((*data)["groups"][0]["summary"]["eval_log.speed"][0], 1.5);
}

TEST(GroupSeries, TheWorstViolationIsTheLargestOfAllEndedEpisodes) {
  const Series series = SeriesOf("worst_violation", true);
  ASSERT_EQ(series.steps, (std::vector<double>{0, 1000}));
  EXPECT_EQ(series.values[0].mean, 0);
  EXPECT_EQ(series.values[1].mean, (0.75 + 2) / 2);
}

TEST(GroupSeries, TheNewestEpisodesAreTheLastFiftyThatHadEnded) {
  const Series few = SeriesOf("newest_sum_cost", true);
  ASSERT_EQ(few.steps, (std::vector<double>{1000})) << "none had ended at step 0";
  EXPECT_EQ(few.values[0].mean, ((3 + 4 + 5) / 3.0 + 10) / 2);
  std::string text = "member,env_steps,discounted_return\n";
  for (int i = 1; i <= 60; ++i) text += "0," + std::to_string(10 * i) + "," + std::to_string(i) + "\n";
  std::vector<report::Run> runs = {Recorded(false)};
  runs[0].episodes = Parsed(text + "0,1001,1000\n");
  const Group group = GroupRuns(runs).at(0);
  EXPECT_EQ(MemberCurve(group.members[0], "newest_discounted_return").back(),
            (std::pair<double, double>{1000, (11 + 60) / 2.0}));
}

TEST(GroupSeries, AMissingColumnHasNoPoints) { EXPECT_TRUE(SeriesOf("alpha").steps.empty()); }

TEST(ShownValues, AreThoseOfEachMembersNewestRow) {
  const std::vector<report::Run> runs = {Recorded(false)};
  EXPECT_EQ(ShownValues(GroupRuns(runs).at(0), "delta"), (std::vector<double>{5, 4}));
}

constexpr char kEvaluated[] =
    "member,seed,epoch,env_steps,updates,wall_seconds,eval_episodes,eval_discounted_return,eval_max_violation,"
    "eval_sum_cost,status\n"
    "0,5,0,0,0,0,25,1,0.5,4,ok\n"
    "1,6,0,0,0,0,25,2,0.5,4,ok\n"
    "0,5,1,1000,500,5,25,8,0.5,5,ok\n"
    "1,6,1,1000,500,5,25,7,0.5,6,ok\n"
    "0,5,2,2000,900,9,25,9,0.5,7,ok\n"
    "1,6,2,2000,900,9,25,6,0.5,3,ok\n";

TEST(ShownValues, AreThoseOfEachMembersBestEpochWhenRequested) {
  report::Run run = Recorded(false);
  run.progress = Parsed(kEvaluated);
  run.experiment.set_algorithm("datacom");
  run.experiment.mutable_hyper()->set_cost_budget(5);
  const std::vector<report::Run> runs = {run};
  EXPECT_EQ(ShownValues(GroupRuns(runs).at(0), "eval_discounted_return"), (std::vector<double>{9, 6}));
  EXPECT_EQ(ShownValues(GroupRuns(runs, Shown::kBest).at(0), "eval_discounted_return"), (std::vector<double>{8, 6}));
  const std::vector<report::Run> unevaluated = {Recorded(false)};
  EXPECT_EQ(ShownValues(GroupRuns(unevaluated, Shown::kBest).at(0), "delta"), (std::vector<double>{5, 4}));
}

TEST(ShownValues, TrainingTotalsAreAlwaysThoseOfTheNewestRow) {
  report::Run run = Recorded(false);
  run.progress = Parsed(kEvaluated);  // best: member 0's row at 1000 steps, member 1's at 2000
  run.episodes = Parsed(
      "member,env_steps,sum_cost,max_violation\n0,400,3,0.25\n1,500,10,2\n0,1000,4,0.75\n0,1500,5,0.875\n"
      "1,2000,6,1\n");
  run.experiment.set_algorithm("datacom");
  run.experiment.mutable_hyper()->set_cost_budget(5);
  const std::vector<report::Run> runs = {run};
  for (const Shown shown : {Shown::kLast, Shown::kBest}) {
    const Group group = GroupRuns(runs, shown).at(0);
    EXPECT_EQ(ShownValues(group, "cumulative_cost"), (std::vector<double>{12, 16}));
    EXPECT_EQ(ShownValues(group, "worst_violation"), (std::vector<double>{0.875, 2}));
  }
}

TEST_F(ReportTest, TablesOfBestEpochsNameTheEpochsAndTheRule) {
  Write("progress.csv", kEvaluated);
  const auto best = ReportData({folder_.string()}, kNoMap, {.shown = Shown::kBest});
  ASSERT_THAT(best, IsOk());
  EXPECT_THAT((*best)["rule"].get<std::string>(), HasSubstr("hyper.cost_budget"));
  const auto& members = (*best)["groups"][0]["members"];
  EXPECT_EQ(members[0]["epoch"], 1);  // the default budget is 5
  EXPECT_EQ(members[1]["epoch"], 2);
  EXPECT_EQ(members[0]["eval_sum_cost"], 5);
  EXPECT_EQ(members[0]["env_steps"], 2000);  // progress of the member
  EXPECT_EQ((*best)["groups"][0]["summary"]["eval_discounted_return"][0], 7);
  const auto last = ReportData({folder_.string()}, kNoMap);
  EXPECT_FALSE(last->contains("rule"));
  EXPECT_EQ((*last)["groups"][0]["members"][0]["epoch"], 2);
}

// Title and members, as "folder:member".
std::vector<std::string> Described(const std::vector<Group>& groups) {
  std::vector<std::string> described;
  for (const Group& group : groups) {
    std::string one = group.title + " =";
    for (const RunMember& member : group.members) one += " " + member.run->folder + ":" + std::to_string(member.member);
    described.push_back(one);
  }
  return described;
}

Run Labelled(const std::string& folder, const std::vector<std::string>& labels) {
  report::Run run = Recorded(false);
  run.folder = folder;
  for (const std::string& label : labels) run.experiment.add_members()->set_label(label);
  return run;
}

TEST(GroupRuns, MembersWithOneLabelAreAGroupAcrossTheRunsOfASweep) {
  std::vector<report::Run> runs = {Labelled("s/a", {"lr 1", "lr 2"}), Labelled("s/b", {"lr 2", "lr 3"})};
  runs[1].experiment.mutable_run()->set_env_steps(9);  // it goes on already, and the other one not yet
  EXPECT_THAT(Described(GroupRuns(runs)), ElementsAre("lr 1 = s/a:0", "lr 2 = s/a:1 s/b:0", "lr 3 = s/b:1"));
}

TEST(GroupRuns, EqualTitlesNameTheSettingsInWhichTheirRunsDiffer) {
  std::vector<report::Run> runs = {Labelled("s/a", {}), Labelled("s/b", {}), Labelled("s/c", {})};
  for (report::Run& run : runs) run.experiment.mutable_hyper()->set_actor_lr(0.1);
  runs[0].experiment.mutable_hyper()->set_slack_beta(1);
  runs[1].experiment.mutable_hyper()->set_slack_beta(20);
  runs[1].experiment.mutable_constraints()->add_known("wall");
  runs[2].experiment.add_members()->set_seed(1);
  EXPECT_THAT(Described(GroupRuns(runs)),
              ElementsAre(HasSubstr(" (hyper.slack_beta: 1) = s/a:0"),
                          HasSubstr(" (constraints.known: \"wall\", hyper.slack_beta: 20) = s/b:0"),
                          HasSubstr(" (s/c) = s/c:0")));
}

TEST(GroupRuns, RunsWithoutLabelsStayApartAndEqualTitlesNameTheirFolders) {
  const std::vector<report::Run> runs = {Labelled("s/a", {}), Labelled("s/b", {})};
  EXPECT_THAT(Described(GroupRuns(runs)),
              ElementsAre("cartpole/x (s/a) = s/a:0 s/a:1", "cartpole/x (s/b) = s/b:0 s/b:1"));
}

TEST(GroupRuns, EqualLabelsOfTwoSweepsExperimentsOrSettingsStayApart) {
  std::vector<report::Run> runs = {Labelled("s/a", {"lr 1", "lr 1"}), Labelled("t/a", {"lr 1", "lr 1"})};
  EXPECT_THAT(Described(GroupRuns(runs)), ElementsAre("lr 1 (s/a) = s/a:0 s/a:1", "lr 1 (t/a) = t/a:0 t/a:1"));
  runs[1] = Labelled("s/b", {"lr 1", "cartpole/y"});
  runs[1].experiment.set_name("cartpole/y");
  EXPECT_THAT(Described(GroupRuns(runs)),
              ElementsAre("cartpole/x, lr 1 = s/a:0 s/a:1", "cartpole/y, lr 1 = s/b:0", "cartpole/y = s/b:1"));
  runs = {Labelled("s/a", {"lr 1", "lr 1"}), Labelled("s/b", {"lr 1", "lr 1"})};
  runs[1].experiment.mutable_hyper()->set_slack_beta(20);
  EXPECT_THAT(Described(GroupRuns(runs)),
              ElementsAre("lr 1 (s/a) = s/a:0 s/a:1", "lr 1 (hyper.slack_beta: 20) = s/b:0 s/b:1"));
}

TEST_F(ReportTest, AFigureHasOnlyTheCurvesOfTheEvaluations) {
  Write("progress.csv",
        "member,seed,epoch,env_steps,updates,eval_return,eval_sum_cost,status\n"
        "0,5,0,0,0,-10,4,ok\n0,5,1,100000,0,-2,0,ok\n");
  const std::string figure = folder_ / "curve.svg";
  ASSERT_THAT(WriteReport({folder_.string()}, figure, kNoMap), IsOk());
  const std::string svg = ReadFile(figure).value();
  EXPECT_THAT(svg, AllOf(HasSubstr(">Cost sum of an episode<"), HasSubstr(">100k<"),
                         HasSubstr("points=\"56.0,24.0 386.0,214.0 \""),   // 4 to 0 on an axis from 0 to 4
                         HasSubstr("points=\"458.0,214.0 788.0,24.0 \""),  // -10 to -2 on an axis of its own
                         HasSubstr("cartpole/&lt;b&gt;, 1 member<"), Not(HasSubstr("nan"))));
}

TEST_F(ReportTest, ABaselineIsTheMeanOfItsCompleteEpisodes) {
  Write("back_off.csv",
        "member,episode,discounted_return,max_violation,sum_cost,violating_steps,success,abandoned,reached\n"
        "0,0,-10,0.5,4,3,1,0,1\n0,1,-30,0,0,0,0,0,1\n0,2,-900,9,9,9,1,1,1\n");
  Write("plain.csv", "discounted_return\n7\n");
  const auto data = ReportData({folder_.string()}, kNoMap,
                               {.baselines = {(folder_ / "back_off.csv").string(), (folder_ / "plain.csv").string()}});
  ASSERT_THAT(data, IsOk());
  const nlohmann::json expected = {{"label", "back_off"},
                                   {"episodes", 2},
                                   {"colour", "#5b6675"},
                                   {"means",
                                    {{"eval_discounted_return", -20.0},
                                     {"eval_max_violation", 0.25},
                                     {"eval_sum_cost", 2.0},
                                     {"eval_violating_steps", 1.5},
                                     {"eval_success_rate", 0.5}}}};
  EXPECT_EQ((*data)["baselines"][0], expected);
  EXPECT_EQ((*data)["baselines"][1]["means"], nlohmann::json({{"eval_discounted_return", 7.0}}));
  EXPECT_EQ((*ReportData({folder_.string()}, kNoMap))["baselines"], nlohmann::json::array());
}

TEST_F(ReportTest, AnInvalidBaselineIsNamed) {
  Write("other.csv", "step,x\n1,2\n");
  Write("none.csv", "discounted_return\n");
  const auto error = [this](const std::string& name) {
    return ReportData({folder_.string()}, kNoMap, {.baselines = {(folder_ / name).string()}}).status().ToString();
  };
  EXPECT_THAT(error("absent.csv"), HasSubstr("absent.csv"));
  EXPECT_THAT(error("other.csv"), HasSubstr("other.csv: there is no column discounted_return"));
  for (const testing::DamagedCsv& damaged :
       testing::DamagedCsvFiles("discounted_return", "discounted_return,sum_cost", "1", "2")) {
    Write("damaged.csv", damaged.text);
    EXPECT_THAT(error("damaged.csv"), HasSubstr("damaged.csv" + damaged.message));
  }
  EXPECT_THAT(error("none.csv"), HasSubstr("none.csv: contains no complete episode"));
}

TEST_F(ReportTest, DataHoldsTheFinalValuesOfEachMemberAndTheirInterval) {
  const auto data = ReportData({folder_.string()}, kNoMap);
  ASSERT_THAT(data, IsOk());
  const nlohmann::json& group = (*data)["groups"][0];
  EXPECT_EQ(group["members"].size(), 2u);
  EXPECT_EQ(group["members"][1]["status"], "diverged");
  EXPECT_EQ(group["summary"]["delta"][0], 4.5);
  EXPECT_EQ(group["summary"]["delta"][2], 2);
  EXPECT_EQ(group["summary"]["eval_return"][2], 1);
  EXPECT_EQ(group["summary"]["cumulative_cost"][0], 11);
  EXPECT_FALSE(group["series"].contains("alpha"));
  EXPECT_EQ((*data)["runs"][0]["build"], "revision 123\n");
}

TEST(Quantities, HaveTheOrderOfTheirSections) {
  std::string columns;
  for (const Quantity& quantity : Quantities({})) columns += quantity.column + " ";
  EXPECT_EQ(columns,
            "eval_discounted_return eval_return eval_max_violation eval_sum_cost eval_violating_steps eval_mean_cost "
            "eval_success_rate train_return train_max_violation train_sum_cost train_violating_steps "
            "newest_discounted_return newest_sum_cost newest_violating_steps worst_violation "
            "cumulative_cost cumulative_violating_steps delta delta_cost constraint_mean "
            "infeasible_share constraint_loss "
            "critic_loss policy_loss multiplier alpha entropy "
            "q_mean q_min q_gap critic_gradient_norm actor_gradient_norm constraint_gradient_norm updates_per_second "
            "samples_per_insert policy_lag lanes ");
}

TEST_F(ReportTest, TwoRunsOfOneAlgorithmDifferInColour) {
  const auto data = ReportData({folder_.string(), folder_.string()}, kNoMap);
  ASSERT_THAT(data, IsOk());
  EXPECT_NE((*data)["groups"][0]["colour"], (*data)["groups"][1]["colour"]);
}

TEST_F(ReportTest, ASweepsFolderStandsForItsRunsThatHaveRecords) {
  const std::filesystem::path sweep = folder_ / "sweep";
  for (const char* name : {"sweep/late", "sweep/early", "sweep/other"})
    std::filesystem::create_directories(folder_ / name);
  for (const char* file : {"experiment.textproto", "progress.csv"}) {
    std::filesystem::copy_file(folder_ / file, sweep / "early" / file);
    std::filesystem::copy_file(folder_ / file, sweep / "other" / file);
  }
  Write("sweep/populations.txt", "late\nearly\n");
  const auto runs = ReadRuns({sweep.string()});
  ASSERT_THAT(runs, IsOk());
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ((*runs)[0].folder, (sweep / "early").string());
  Write("sweep/populations.txt", "late\n");
  EXPECT_THAT(std::string(ReadRuns({sweep.string()}).status().message()), HasSubstr("no run of the sweep"));
}

TEST_F(ReportTest, ThePageIsCompleteAndItsTextCannotEndItsScript) {
  const auto data = ReportData({folder_.string()}, kNoMap);
  ASSERT_THAT(data, IsOk());
  const std::string page = RenderPage(*data, {"var Chart = 1;", "Permission & <licence>"});
  EXPECT_THAT(page, AllOf(HasSubstr("var Chart = 1;"), HasSubstr("Permission &amp; &lt;licence&gt;"),
                          HasSubstr("id=\"report-data\""), HasSubstr("function verdictOf("), Not(HasSubstr("{{")),
                          Not(HasSubstr("<script>alert")), Not(HasSubstr("src=")), Not(HasSubstr("href="))));
  const size_t begin = page.find('>', page.find("id=\"report-data\"")) + 1;
  const size_t end = page.find("</script>", begin);
  EXPECT_EQ(nlohmann::json::parse(page.substr(begin, end - begin)), *data);
}

TEST_F(ReportTest, AMapOfTheLearnedConstraintIsEmbeddedOrItsAbsenceExplained) {
  EXPECT_EQ((*ReportData({folder_.string()}, kNoMap))["runs"][0]["map"]["missing"],
            "nothing <draws> in " + folder_.string());
  const auto made = [](const std::string& text) {
    return [text](const std::string&) -> absl::StatusOr<std::string> { return text; };
  };
  const auto data = ReportData({folder_.string()}, made("{\"slice\":\"pole\",\"panels\":[]}"));
  EXPECT_EQ((*data)["runs"][0]["map"]["slice"], "pole");
  const std::string page = RenderPage(*data, {"var Chart = 1;", "licence"});
  EXPECT_THAT(page, AllOf(HasSubstr("function showMaps()"), HasSubstr("showMaps();"), HasSubstr("id=\"maps\"")));
  EXPECT_THAT(std::string((*ReportData({folder_.string()}, made("[1")))["runs"][0]["map"]["missing"]),
              HasSubstr("not a JSON object"));
}

TEST_F(ReportTest, AnAlgorithmWithoutALearnedConstraintHasNoMap) {
  v1::Experiment experiment;
  experiment.set_name("plain");
  experiment.set_task("cartpole");
  experiment.set_algorithm("sac");
  Write("experiment.textproto", PrintExperiment(ResolveExperiment(experiment)));
  EXPECT_FALSE((*ReportData({folder_.string()}, kNoMap))["runs"][0].contains("map"));
}

TEST_F(ReportTest, AMissingPlottingLibraryNamesItsPackage) {
  const testing::EnvironmentVariable missing("DATACOM_CHART_JS", "/nonexistent/chart.js");
  const absl::Status status = WriteReport({folder_.string()}, (folder_ / "report.html").string(), kNoMap);
  EXPECT_THAT(std::string(status.message()), HasSubstr("libjs-chart.js"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "report.html"));
}

TEST_F(ReportTest, ALinkInThePlaceOfTheFoldersOwnReportIsNotFollowed) {
  const testing::EnvironmentVariable library("DATACOM_CHART_JS", (folder_ / "chart.js").string());
  Write("chart.js", "/* licence */");
  Write("precious", "text");
  const std::string own = folder_.string() + "/report.html", named = folder_.string() + "/named.html";
  for (const std::string& link : {own, named}) std::filesystem::create_symlink("precious", link);
  ASSERT_THAT(WriteReport({folder_.string()}, own, kNoMap), IsOk());
  EXPECT_FALSE(std::filesystem::is_symlink(own));
  EXPECT_EQ(ReadFile(folder_.string() + "/precious").value(), "text");
  ASSERT_THAT(WriteReport({folder_.string()}, named, kNoMap), IsOk());  // a user has named it
  EXPECT_TRUE(std::filesystem::is_symlink(named));
  EXPECT_NE(ReadFile(folder_.string() + "/precious").value(), "text");
}

TEST_F(ReportTest, ShowsNoFileBehindALink) {
  const testing::TemporaryFolder elsewhere;
  std::ofstream(elsewhere.path() + "/secret") << "key";
  std::filesystem::remove(folder_ / "build.txt");
  for (const char* name : {"build.txt", "film.png"}) {
    std::filesystem::create_symlink(elsewhere.path() + "/secret", folder_ / name);
  }
  const auto data = ReportData({folder_.string()}, kNoMap);
  ASSERT_THAT(data, IsOk());
  const auto& run = (*data)["runs"][0];
  EXPECT_EQ(run["build"], "");
  EXPECT_TRUE(run["film"].is_null());
  std::filesystem::remove(folder_ / "film.png");
  Write("film.png", "key");
  EXPECT_EQ((*ReportData({folder_.string()}, kNoMap))["runs"][0]["film"], "data:image/png;base64,a2V5");
}

TEST_F(ReportTest, ADamagedCellIsNamedByFileLineColumnAndValue) {
  const auto message = [this](const std::string& file, const std::string& content) {
    Write(file, content);
    const absl::Status status = ReportData({folder_.string()}, kNoMap).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  for (const testing::DamagedCsv& damaged :
       testing::DamagedCsvFiles("member", "member,env_steps,status", "0", "1000,ok")) {
    if (damaged.text.empty()) continue;  // not damaged: a run without records
    EXPECT_THAT(message("progress.csv", damaged.text), HasSubstr("progress.csv" + damaged.message));
  }
  for (const std::string bad : {"-1", "", "1.5", "2147483648"}) {
    EXPECT_THAT(message("progress.csv", "member,env_steps,status\n0,0,ok\n" + bad + ",5,ok\n"),
                HasSubstr("progress.csv line 3, column member: \"" + bad + "\" is not a whole number from 0"));
  }
  EXPECT_THAT(message("progress.csv", "menber,env_steps\n0,0\n"), HasSubstr("progress.csv: there is no column member"));
  EXPECT_THAT(message("progress.csv", "member\n0\n"), HasSubstr("there is no column env_steps"));
  Write("progress.csv", kProgress);
  EXPECT_THAT(message("episodes.csv", "member,env_steps\nx,0\n"), HasSubstr("episodes.csv line 2, column member"));
}

TEST_F(ReportTest, AFolderWithoutRecordsIsNamed) {
  std::filesystem::remove(folder_ / "progress.csv");
  EXPECT_THAT(std::string(ReportData({folder_.string()}, kNoMap).status().message()), HasSubstr("progress.csv"));
}

}  // namespace
}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
