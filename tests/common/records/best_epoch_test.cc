#include "common/records/best_epoch.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kHeader[] =
    "member,env_steps,epoch,eval_episodes,eval_discounted_return,eval_max_violation,eval_sum_cost\n";

// The chosen epoch among rows "episodes,J,violation,cost", one per epoch from 0; -1 when there is none.
int Chosen(const std::vector<std::string>& rows, double budget) {
  std::string text = kHeader;
  std::vector<size_t> indices;
  for (size_t i = 0; i < rows.size(); ++i) {
    text += "0," + std::to_string(1000 * i) + "," + std::to_string(i) + "," + rows[i] + "\n";
    indices.push_back(i);
  }
  const Csv csv = Csv::Parse(text, "test").value();
  const absl::StatusOr<size_t> row = BestRow(csv, indices, budget);
  return row.ok() ? static_cast<int>(csv.Number(*row, "epoch")) : -1;
}

TEST(BestRow, FollowsTheRuleInEveryCase) {
  struct Case {
    const char* why;
    std::vector<std::string> rows;
    double budget;
    int epoch;
  };
  const std::vector<Case> cases = {
      {"the highest return within the budget", {"25,1,0.1,5", "25,3,0.9,4", "25,2,0,0"}, 5, 1},
      {"a higher return beyond the budget does not count", {"25,1,0.1,5", "25,9,0.1,5.0001", "25,2,0.1,5"}, 5, 2},
      {"of equal returns the smaller violation", {"25,3,0.3,1", "25,3,0.2,4", "25,3,0.25,0"}, 5, 1},
      {"of equal rows the earliest", {"25,1,0.3,1", "25,3,0.2,4", "25,3,0.2,4"}, 5, 1},
      {"none within the budget: the smallest cost", {"25,9,0.1,30", "25,1,0.9,20", "25,5,0.1,40"}, 5, 1},
      {"none within it: of equal costs the smaller violation", {"25,9,0.4,20", "25,1,0.2,20", "25,5,0.3,20"}, 5, 1},
      {"budget 0 takes epochs without any cost", {"25,9,0,0.0001", "25,1,0,0", "25,2,0,0"}, 0, 2},
      {"negative returns", {"25,-300,0,0", "25,-200,0,0", "25,-250,0,0"}, 0, 1},
      {"what was not evaluated does not count", {"25,1,0,0", "0,9,0,0", ",,,"}, 5, 0},
      {"an evaluation that is not finite does not count", {"25,nan,0,0", "25,1,0,inf", "25,0.5,0.1,1"}, 5, 2},
      {"nothing was evaluated", {"0,0,0,0"}, 5, -1},
  };
  for (const Case& one : cases) EXPECT_EQ(Chosen(one.rows, one.budget), one.epoch) << one.why;
}

TEST(BestRow, OnlyTheLastRowOfAnEpochCounts) {
  const auto chosen = [](const std::string& rows) {
    const Csv csv = Csv::Parse(kHeader + rows, "test").value();
    const absl::StatusOr<size_t> row = BestRow(csv, {0, 1, 2, 3}, 5);
    return row.ok() ? static_cast<int>(*row) : -1;
  };
  const std::string first = "0,0,0,25,1,0,0\n", cut = "0,900,1,25,9,0,0\n", next = "0,2000,2,25,2,0,0\n";
  EXPECT_EQ(chosen(first + cut + "0,1000,1,25,8,0,0\n" + next), 2) << "the last row makes this epoch the best";
  EXPECT_EQ(chosen(first + cut + "0,1000,1,25,1.5,0,0\n" + next), 3) << "the last row makes it worse than another";
  EXPECT_EQ(chosen(first + cut + "0,1000,1,25,9,0,6\n" + next), 3) << "the last row is over the budget";
  EXPECT_EQ(chosen(first + cut + "0,1000,1,0,,,\n" + next), 3) << "the last row is not evaluated yet";
}

TEST(CostBudget, IsTheMembersOrZeroForAlgorithmsWithoutABudget) {
  v1::Experiment experiment;
  experiment.mutable_hyper()->set_cost_budget(7);
  experiment.add_members()->set_seed(0);
  experiment.add_members()->mutable_hyper()->set_cost_budget(3);
  experiment.set_algorithm("datacom");
  EXPECT_EQ(CostBudget(experiment, 0), 7);
  std::vector<std::string> without;
  for (const AlgorithmInfo& algorithm : Algorithms()) {
    experiment.set_algorithm(algorithm.name);
    const std::vector<std::string> read = HyperParametersOf(algorithm);
    const bool budget = std::find(read.begin(), read.end(), "cost_budget") != read.end();
    EXPECT_EQ(CostBudget(experiment, 1), budget ? 3 : 0) << algorithm.name;
    if (!budget) without.push_back(algorithm.name);
  }
  EXPECT_THAT(without, ::testing::IsSupersetOf({"sac", "safe_layer_td3"}));
  EXPECT_THAT(BestEpochRule(), HasSubstr("without a cost budget (" + absl::StrJoin(without, ", ") + ") are"));
}

TEST(ReadBestEpochs, UsesEachMembersBudgetAndNamesAMemberWithoutEvaluation) {
  const std::string folder = ::testing::TempDir() + "/best_epochs";
  std::filesystem::create_directories(folder);
  v1::Experiment experiment;
  experiment.set_algorithm("datacom");
  experiment.add_members()->mutable_hyper()->set_cost_budget(10);
  experiment.add_members()->mutable_hyper()->set_cost_budget(2);
  const std::string rows =
      std::string(kHeader) + "0,0,0,25,1,0,1\n1,0,0,25,1,0,1\n0,9,4,25,8,0.1,9\n1,9,4,25,8,0.1,9\n";
  std::ofstream(folder + "/progress.csv") << rows << "0,20,5,25,9";  // the writer was killed
  const auto epochs = ReadBestEpochs(folder, experiment);
  ASSERT_THAT(epochs, IsOk());
  EXPECT_THAT(*epochs, ElementsAre(Pair(0, 4), Pair(1, 0)));
  std::ofstream(folder + "/progress.csv") << rows << "2,0,0,0,,,\n";
  const absl::Status missing = ReadBestEpochs(folder, experiment).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("progress.csv: member 2: no epoch was evaluated yet"));
  std::ofstream(folder + "/progress.csv") << kHeader;
  const absl::Status none = ReadBestEpochs(folder, experiment).status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("progress.csv: no epoch was evaluated yet"));
}

TEST(BestEpochRule, NamesTheAlgorithmsWhoseBudgetIsDiscounted) {
  EXPECT_THAT(BestEpochRule(), HasSubstr("A budget that is a discounted sum (iqn_datacom) makes the rule stricter."));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
