// Tests the page about a folder of results.
#include "deploy/report/evidence.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "common/base/files.h"
#include "common/records/csv.h"
#include "common/records/gzip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::report {
namespace {

using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kEntries[] =
    "verb,name,seeds,steps,title\ntrain,pole/datacom,0-1,2000,\"D-ATACOM, <mine>\"\ntrain,pole/sac,0,2000,SAC\n"
    "sweep,pole/budgets,0,2000,By budget\ntrain,cart/sac,0-4,2000,SAC\n";
constexpr char kProgress[] =
    "member,seed,epoch,env_steps,updates,wall_seconds,eval_episodes,eval_discounted_return,eval_return,"
    "eval_max_violation,eval_sum_cost,eval_success_rate,train_episodes,train_sum_cost,status\n"
    "0,0,0,0,0,1,2,0,0,1,9,0,0,,ok\n1,1,0,0,0,1,2,0,0,1,9,0,0,,ok\n"
    "0,0,1,1000,900,1800,2,10,20,0.5,3,1,10,40,ok\n1,1,1,1000,900,1800,2,14,20,0.5,5,1,10,60,ok\n"
    "0,0,2,2000,1900,3600,0,,,,,,5,8,ok\n1,1,2,2000,1900,3600,0,,,,,,5,8,ok\n";

class EvidenceTest : public ::testing::Test {
 protected:
  EvidenceTest() {
    Write("entries.csv", kEntries);
    Leave("pole/datacom", "algorithm: 'datacom' members { seed: 0 } members { seed: 1 } hyper { cost_budget: 7 }");
    Write("pole/datacom/progress.csv", kProgress);
  }
  void Write(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = std::filesystem::path(folder_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  void Leave(const std::string& name, const std::string& experiment) const {
    Write(name + "/experiment.textproto", "name: '" + name + "' task: 'cartpole' " + experiment);
    Write(name + "/build.txt", "version 1\nrevision 123abc\n");
  }
  std::string Page(const EvidenceOptions& options = {}) const {
    EXPECT_THAT(WriteEvidence(folder_.path(), folder_.path() + "/page.html", options), IsOk());
    return *ReadFile(folder_.path() + "/page.html");
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(EvidenceTest, TheTableHasTheEvaluationsAtTheEndAndTheCostOfTheTraining) {
  const std::string page = Page();
  // Evaluated: two epochs of each seed. J (0 + 10) / 2 and (0 + 14) / 2, cost (9 + 3) / 2 and (9 + 5) / 2; t = 12.706.
  EXPECT_THAT(page, HasSubstr("<tr><td>D-ATACOM, &lt;mine&gt;</td><td>2,000</td><td>2</td><td>6.00 "
                              "<span class=\"half\">&plusmn; 12.71</span></td><td>6.50 "));
  // 10 x 40 + 5 x 8 and 10 x 60 + 5 x 8: 440 and 640.
  EXPECT_THAT(page, HasSubstr("<td>540 <span class=\"half\">&plusmn; 1,271</span></td><td>1.0</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<code>deploy/dev/reproduce pole/datacom</code>, revision 123abc"));
  EXPECT_THAT(page, HasSubstr("Share of episodes with success"));
  EXPECT_THAT(page, HasSubstr("budget of D-ATACOM"));
}

TEST_F(EvidenceTest, ThePageNeedsNoScriptAndNoNetwork) {
  const std::string page = Page();
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<link")), Not(HasSubstr("<mine>"))));
  const std::regex address("(src|href)=\"(?!#|data:)");
  EXPECT_FALSE(std::regex_search(page, address));
}

TEST_F(EvidenceTest, EntriesWithoutRecordsAreListed) {
  EXPECT_THAT(Page(), AllOf(HasSubstr("<li>SAC (<code>pole/sac</code>): seeds 0, 2000 steps</li>"),
                            HasSubstr("<li>By budget (<code>pole/budgets</code>)"),
                            HasSubstr("<h2 id=\"cart\">cart</h2>\n<p>No method has been trained yet.</p>")));
}

TEST_F(EvidenceTest, AnEntryThatIsNotTrainedToItsEndIsShownAndListed) {
  std::string entries = kEntries;
  entries.replace(entries.find("0-1,2000"), 8, "0-1,3000");
  Write("entries.csv", entries);
  EXPECT_THAT(Page(), AllOf(HasSubstr("<tr><td>D-ATACOM"), HasSubstr("(<code>pole/datacom</code>): seeds 0-1, 3000")));
}

TEST_F(EvidenceTest, ADivergedSeedIsCountedAndACellWithoutANumberIsLeftOut) {
  std::string progress = kProgress;
  progress.replace(progress.rfind("ok"), 2, "diverged");
  progress.replace(progress.find("2,14,20"), 7, "2,,20");
  Write("pole/datacom/progress.csv", progress);
  // J (0 + 10) / 2 of the first seed, 0 of the second.
  EXPECT_THAT(Page(), HasSubstr("<td>2 (1 diverged)</td><td>2.50 "));
}

TEST_F(EvidenceTest, ASweepHasALineForEachSettingAndItsRecordsMayBeCompressed) {
  Write("pole/budgets/populations.txt", "first\n");
  Leave("pole/budgets/first",
        "algorithm: 'datacom' members { seed: 0 label: 'budget 1' } members { seed: 0 label: 'budget 2' }");
  Write("pole/budgets/first/progress.csv.gz", Gzip(kProgress));
  EXPECT_THAT(Page(), AllOf(HasSubstr("<h3>By budget</h3>"), HasSubstr("<tr><td>budget 1</td>"),
                            HasSubstr("<tr><td>budget 2</td>"), Not(HasSubstr("<li>By budget"))));
  Write("pole/budgets/first/progress.csv.gz", Gzip(kProgress).substr(0, 60));
  EXPECT_THAT(std::string(WriteEvidence(folder_.path(), folder_.path() + "/page.html", {}).message()),
              HasSubstr("progress.csv.gz"));
}

TEST_F(EvidenceTest, EachTasksCurvesAreAlsoAFigureAndTheirCentreMayBeTheInterquartileMean) {
  EvidenceOptions options;
  options.centre = Centre::kInterquartileMean;
  options.figures = folder_.path() + "/figures";
  EXPECT_THAT(Page(options), HasSubstr("Lines are the interquartile mean"));
  EXPECT_THAT(*ReadFile(options.figures + "/pole.svg"),
              AllOf(HasSubstr("<svg xmlns"), HasSubstr("2 members, interquartile mean and 95 % band")));
  EXPECT_FALSE(FileExists(options.figures + "/cart.svg"));
}

TEST_F(EvidenceTest, CostAndViolationHaveLogarithmicAxesWithZeroAtTheLowerEdge) {
  std::string progress = kProgress;
  progress.replace(progress.find("0.5,3,1"), 7, "0.5,0,1");
  progress.replace(progress.find("0.5,5,1"), 7, "0.5,0,1");
  Write("pole/datacom/progress.csv", progress);
  EvidenceOptions options;
  options.figures = folder_.path() + "/figures";
  Page(options);
  // Panels are 330 x 190 and begin at (56, 24), (458, 24) and (56, 286). Cost 9 and 0 on an axis from 1 to 10: log10(9)
  // = 0.9542. Violation 1 and 0.5 on an axis from 0.1 to 1: log10(0.5) = -0.3010.
  EXPECT_THAT(*ReadFile(options.figures + "/pole.svg"),
              AllOf(HasSubstr("points=\"458.0,32.7 788.0,214.0 \""), HasSubstr("points=\"56.0,286.0 386.0,343.2 \""),
                    HasSubstr(">0.1</text>")));
}

TEST_F(EvidenceTest, FramesOfTheBestAndTheWorstSeedAreEmbedded) {
  EvidenceOptions options;
  std::vector<uint64_t> drawn;
  options.film = [&](const std::string& folder, uint64_t member, const std::string& png) {
    drawn.push_back(member);
    std::ofstream(png) << "frames of " << std::filesystem::path(folder).filename().string();
    return absl::OkStatus();
  };
  const std::string page = Page(options);
  EXPECT_EQ(drawn, (std::vector<uint64_t>{1, 0}));
  EXPECT_THAT(page, AllOf(HasSubstr("best seed (member 1)"), HasSubstr("worst seed (member 0)"),
                          HasSubstr("data:image/png;base64,ZnJhbWVzIG9mIGRhdGFjb20=")));
  options.film = [](const std::string&, uint64_t, const std::string&) { return absl::NotFoundError("no policies"); };
  EXPECT_THAT(Page(options), Not(HasSubstr("<img")));
}

TEST_F(EvidenceTest, TheLearnedConstraintIsDrawnOnlyWhereThereIsOne) {
  Leave("pole/sac", "algorithm: 'sac' members { seed: 0 } members { seed: 1 }");
  Write("pole/sac/progress.csv", kProgress);
  EvidenceOptions options;
  std::vector<std::string> drawn;
  options.map = [&](const std::string& folder, uint64_t member, const std::string& png) {
    drawn.push_back(std::filesystem::path(folder).filename().string() + std::to_string(member));
    std::ofstream(png) << "map";
    return absl::OkStatus();
  };
  EXPECT_THAT(Page(options), HasSubstr("best seed (member 1): its learned constraint at the end"));
  EXPECT_EQ(drawn, (std::vector<std::string>{"datacom1"}));
}

TEST_F(EvidenceTest, TheKeptViolationsAreShownAndWhatCannotBeDrawnIsSaid) {
  Write("pole/datacom/ledger/violations.csv", "id,member,seed,env_steps,cost\n1,1,8,1700,2.5\n2,0,7,90,0.25\n");
  EvidenceOptions options;
  options.violation = [](const std::string&, uint64_t id, const std::string& png) {
    if (id == 2) return absl::InternalError("step 3 differs, 1 < 2");
    std::ofstream(png) << "picture";
    return absl::OkStatus();
  };
  const std::string page = Page(options);
  EXPECT_THAT(page,
              AllOf(HasSubstr("the 2 largest violations of its training</summary>"),
                    HasSubstr("cost 2.5 in step 1700 of seed 8 (datacom replay-violation results:pole/datacom 1)"),
                    HasSubstr("cost 0.25 in step 90 of seed 7"), HasSubstr("data:image/png;base64,cGljdHVyZQ=="),
                    HasSubstr("No picture: step 3 differs, 1 &lt; 2")));
}

// The numbers of a figure and the text between them.
std::pair<std::vector<double>, std::string> Split(const std::string& svg) {
  static const std::regex* const kNumber = new std::regex("-?[0-9]+(\\.[0-9]+)?");
  std::vector<double> numbers;
  for (auto at = std::sregex_iterator(svg.begin(), svg.end(), *kNumber); at != std::sregex_iterator(); ++at) {
    numbers.push_back(std::stod(at->str()));
  }
  return {numbers, std::regex_replace(svg, *kNumber, "#")};
}

TEST_F(EvidenceTest, TheFiguresOfTheResultsAreThoseOfTheirRecords) {
  EvidenceOptions options;
  options.figures = folder_.path() + "/figures";
  ASSERT_THAT(WriteEvidence("deploy/results", folder_.path() + "/page.html", options), IsOk());
  for (const auto& figure : std::filesystem::directory_iterator(options.figures)) {
    const std::string kept = "deploy/results/figures/" + figure.path().filename().string();
    const auto [now, text] = Split(*ReadFile(figure.path().string()));
    const auto [then, text_then] = Split(ReadFile(kept).value_or(""));
    const char kAdvice[] =
        ": draw it again with: datacom report --results deploy/results --figures deploy/results/figures";
    ASSERT_TRUE(text == text_then && now.size() == then.size()) << kept << kAdvice;
    for (size_t i = 0; i < now.size(); ++i) ASSERT_NEAR(now[i], then[i], 0.11) << kept << kAdvice;
  }
}

TEST_F(EvidenceTest, AFolderWithoutEntriesOrRecordsIsRefused) {
  std::filesystem::remove_all(folder_.path() + "/pole");
  EXPECT_THAT(std::string(WriteEvidence(folder_.path(), folder_.path() + "/page.html", {}).message()),
              HasSubstr("no entry of its entries.csv has records"));
  Write("entries.csv", "verb,name,seeds,steps,title\ntrain,pole,0,x,One\n");
  EXPECT_THAT(std::string(WriteEvidence(folder_.path(), folder_.path() + "/page.html", {}).message()),
              HasSubstr("\"train,pole,0,x,One\" is not verb,name,seeds,steps,title"));
  std::filesystem::remove(folder_.path() + "/entries.csv");
  EXPECT_TRUE(absl::IsNotFound(WriteEvidence(folder_.path(), folder_.path() + "/page.html", {})));
}

}  // namespace
}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
