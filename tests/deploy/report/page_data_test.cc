#include <filesystem>
#include <fstream>
#include <string>

#include "common/config/experiment.h"
#include "deploy/report/report.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::report {
namespace {

using datacom::testing::IsOk;

constexpr char kRecords[] =
    "member,seed,epoch,env_steps,updates,wall_seconds,eval_return,delta,status\n"
    "0,5,0,0,0,0,10,6,ok\n"
    "1,6,0,0,0,0,14,6,ok\n"
    "0,5,1,1000,500,5,20,5,ok\n"
    "1,6,1,1000,500,5,,4,ok\n";

// What the first screen of a page shows of a run: its members' values, budgets, episodes and film.
class PageDataTest : public ::testing::Test {
 protected:
  PageDataTest() {
    WriteExperiment("datacom");
    Write("progress.csv", kRecords);
  }
  void Write(const std::string& name, const std::string& content) { std::ofstream(folder_ / name) << content; }
  void WriteExperiment(const std::string& algorithm) {
    v1::Experiment experiment;
    experiment.set_name("a");
    experiment.set_task("cartpole");
    experiment.set_algorithm(algorithm);
    Write("experiment.textproto", PrintExperiment(ResolveExperiment(experiment)));
  }
  absl::StatusOr<nlohmann::json> Data() const {
    return ReportData({folder_.string()}, [](const std::string&) -> absl::StatusOr<std::string> { return "{}"; });
  }

  const testing::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(PageDataTest, APointOfFewMembersHoldsTheirValues) {
  const auto data = Data();
  ASSERT_THAT(data, IsOk());
  const nlohmann::json& points = (*data)["groups"][0]["series"]["delta"];
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0], (nlohmann::json{0.0, 6.0, 0.0, 2.0, 6.0, 6.0, 6.0, 6.0}));
  EXPECT_EQ(points[1][4], 4.0);
  EXPECT_EQ(points[1][5], 5.0);
  EXPECT_EQ(points[1][6], 5.0);
  EXPECT_EQ(points[1][7], 4.0);
  const nlohmann::json& returns = (*data)["groups"][0]["series"]["eval_return"];
  EXPECT_EQ(returns[1], (nlohmann::json{1000.0, 20.0, 0.0, 1.0, 20.0, 20.0, 20.0, nullptr})) << "an empty cell";
}

TEST_F(PageDataTest, ViolationsAreListedByEpisodeTheWorstAndTheNewest) {
  std::string text = "member,env_steps,sum_cost,max_violation,violating_steps\n1,7,0,0,0\n";
  for (int i = 1; i <= 12; ++i) {
    text += "0," + std::to_string(10 * i) + "," + std::to_string(i % 7) + ".5,0.25," + std::to_string(i) + "\n";
  }
  Write("episodes.csv", text);
  const auto data = Data();
  ASSERT_THAT(data, IsOk());
  const nlohmann::json& episodes = (*data)["groups"][0]["episodes"];
  EXPECT_EQ(episodes["all"], 13.0);
  EXPECT_EQ(episodes["violating"], 12.0);
  ASSERT_EQ(episodes["worst"].size(), 10u);
  const nlohmann::json worst = {{"seed", "5"},           {"episode", 6.0},  {"count", 1.0},
                                {"env_steps", 60.0},     {"sum_cost", 6.5}, {"max_violation", 0.25},
                                {"violating_steps", 6.0}};
  EXPECT_EQ(episodes["worst"][0], worst);
  EXPECT_EQ(episodes["worst"][1]["episode"], 5.0) << "5.5, as episode 12";
  EXPECT_EQ(episodes["newest"][0]["episode"], 12.0);
  EXPECT_EQ(episodes["newest"][9]["episode"], 3.0);
}

TEST_F(PageDataTest, AnEpisodeWithoutAFiniteCostComesLast) {
  Write("episodes.csv", "member,env_steps,sum_cost,max_violation\n0,400,3,0.25\n1,500,inf,inf\n0,900,4,0.75\n");
  const auto data = Data();
  ASSERT_THAT(data, IsOk());
  const nlohmann::json& worst = (*data)["groups"][0]["episodes"]["worst"];
  ASSERT_EQ(worst.size(), 3u);
  EXPECT_EQ(worst[0]["env_steps"], 900);
  EXPECT_TRUE(worst[2]["sum_cost"].is_null());
}

TEST_F(PageDataTest, ARowOfAResultMayStandForSeveralEpisodes) {
  Write("episodes.csv", "member,episodes,env_steps,sum_cost,max_violation\n0,4,400,0,0\n0,3,700,8,1\n");
  const auto data = Data();
  ASSERT_THAT(data, IsOk());
  const nlohmann::json& episodes = (*data)["groups"][0]["episodes"];
  EXPECT_EQ(episodes["all"], 7.0);
  EXPECT_EQ(episodes["violating"], 3.0);
  EXPECT_EQ(episodes["worst"][0]["episode"], 7.0);
  EXPECT_EQ(episodes["worst"][0]["count"], 3.0);
}

TEST_F(PageDataTest, TheFilmOfARunIsPartOfThePageUnlessItIsTooLarge) {
  EXPECT_EQ((*Data())["runs"][0]["film"], nullptr);
  Write("film.webp", "abc");
  EXPECT_EQ((*Data())["runs"][0]["film"], "data:image/webp;base64,YWJj");
  Write("film.html", "page");
  EXPECT_EQ((*Data())["runs"][0]["film"], "data:text/html;base64,cGFnZQ==");
  std::filesystem::remove(folder_ / "film.html");
  Write("film.mp4", "film");
  EXPECT_EQ((*Data())["runs"][0]["film"], "data:video/mp4;base64,ZmlsbQ==");
  EXPECT_FALSE((*ReportData({folder_.string()}, nullptr))["runs"][0].contains("film"))
      << "the live page has no pictures";
  Write("film.mp4", std::string((8 << 20) + 1, 'x'));
  EXPECT_EQ((*Data())["runs"][0]["film"], "data:image/webp;base64,YWJj");
}

TEST_F(PageDataTest, RecordsWhoseCurvesWouldFillTheMemoryAreRefused) {
  std::string text = "member,seed,epoch,env_steps\n";
  for (int i = 0; i < 5000; ++i) text += std::to_string(i) + ",1,0," + std::to_string(i) + "\n";
  Write("progress.csv", text);
  const absl::Status status = Data().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("progress.csv has 5000 members at 5000 different env_steps"), std::string::npos)
      << status;
}

TEST_F(PageDataTest, EachMemberHasItsBudgetAndAGroupSaysWhetherItsMethodHasOne) {
  const auto with = Data();
  EXPECT_EQ((*with)["groups"][0]["members"][1]["budget"], 5.0);
  EXPECT_EQ((*with)["groups"][0]["has_budget"], true);
  WriteExperiment("sac");
  const auto without = Data();
  EXPECT_EQ((*without)["groups"][0]["members"][1]["budget"], 0.0);
  EXPECT_EQ((*without)["groups"][0]["has_budget"], false);
}

}  // namespace
}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
