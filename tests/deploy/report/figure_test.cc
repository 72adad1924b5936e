#include "deploy/report/figure.h"

#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/config/algorithms.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace datacom::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Lightness, a and b of CIE 1976 under D65 (ISO 11664-4), from sRGB (IEC 61966-2-1).
std::array<double, 3> LabOf(const std::string& colour) {
  double linear[3];
  for (int i = 0; i < 3; ++i) {
    const double value = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    linear[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  const auto [r, g, b] = linear;
  const double white[3] = {0.95047, 1, 1.08883};
  const double xyz[3] = {0.4124564 * r + 0.3575761 * g + 0.1804375 * b, 0.2126729 * r + 0.7151522 * g + 0.0721750 * b,
                         0.0193339 * r + 0.1191920 * g + 0.9503041 * b};
  double f[3];
  for (int i = 0; i < 3; ++i) {
    const double t = xyz[i] / white[i];
    f[i] = t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

double Distance(const std::string& one, const std::string& other) {
  const std::array<double, 3> a = LabOf(one), b = LabOf(other);
  return std::sqrt(std::pow(a[0] - b[0], 2) + std::pow(a[1] - b[1], 2) + std::pow(a[2] - b[2], 2));
}

// Runs of the algorithms, each with one row.
std::vector<Run> RunsOf(const std::vector<std::string>& algorithms, const std::string& label = "") {
  std::vector<Run> runs;
  for (const std::string& algorithm : algorithms) {
    Run& run = runs.emplace_back();
    run.folder = "runs/" + std::to_string(runs.size());
    run.experiment.set_name("cartpole/" + algorithm);
    run.experiment.set_algorithm(algorithm);
    run.experiment.add_members()->set_label(label.empty() ? "" : label + std::to_string(runs.size()));
    run.progress = *Csv::Parse("member,seed,epoch,env_steps,eval_return,eval_sum_cost\n0,1,0,0,10,1\n", "test");
  }
  return runs;
}

TEST(Colours, TheDistanceOfThisTestAgreesWithKnownLabValues) {
  EXPECT_NEAR(LabOf("#ffffff")[0], 100, 1e-3);
  EXPECT_NEAR(LabOf("#808080")[0], 53.585, 1e-3);
  EXPECT_NEAR(Distance("#000000", "#ffffff"), 100, 1e-3);
}

TEST(Colours, AnyTwoAlgorithmsCanBeToldApart) {
  for (const AlgorithmInfo& one : Algorithms()) {
    for (const AlgorithmInfo& other : Algorithms()) {
      if (one.name >= other.name) continue;
      EXPECT_GE(Distance(one.colour, other.colour), 20) << one.name << " and " << other.name;
    }
  }
}

TEST(Colours, AnAlgorithmHasItsColourWhereverItStandsAndItsFurtherGroupsHaveOtherStrokes) {
  const std::vector<report::Run> runs = RunsOf({"rcpo", "datacom", "rcpo", "unheard_of"});
  const std::vector<Look> looks = LooksOf(GroupRuns(runs));
  ASSERT_EQ(looks.size(), 4u);
  EXPECT_EQ(looks[0].colour, FindAlgorithm("rcpo")->colour);
  EXPECT_EQ(looks[1].colour, FindAlgorithm("datacom")->colour);
  EXPECT_EQ(looks[2].colour, looks[0].colour);
  EXPECT_TRUE(looks[0].dashes.empty());
  EXPECT_FALSE(looks[2].dashes.empty());
  EXPECT_EQ(looks[3].colour, "#222222");
}

TEST(Colours, GroupsOfOneAlgorithmShareARamp) {
  const std::vector<report::Run> runs = RunsOf({"sac", "sac", "sac", "sac", "sac"});
  std::set<std::string> colours;
  for (const Look& look : LooksOf(GroupRuns(runs))) {
    colours.insert(look.colour);
    EXPECT_TRUE(look.dashes.empty());
  }
  EXPECT_EQ(colours.size(), 5u);
  EXPECT_EQ(LooksOf(GroupRuns(runs))[4].colour, "#c8a415");
}

TEST(RenderFigure, DrawsAGroupAndItsLegendInTheColourOfItsAlgorithmAndWithItsStroke) {
  const std::vector<report::Run> runs = RunsOf({"cbf_sac", "atacom_fi"});
  const std::string both = RenderFigure(GroupRuns(runs));
  for (const char* name : {"cbf_sac", "atacom_fi"}) EXPECT_THAT(both, HasSubstr(FindAlgorithm(name)->colour)) << name;
  EXPECT_THAT(both, Not(HasSubstr("stroke-dasharray")));
  const std::vector<report::Run> twice = RunsOf({"sac", "cbf_sac", "sac"});
  const std::string figure = RenderFigure(GroupRuns(twice)), dashes = " stroke-dasharray=\"6 4\"";
  const std::vector<std::string> parts = absl::StrSplit(figure, dashes);
  ASSERT_EQ(parts.size(), 4u) << "a curve in each of two panels, and the legend";
  EXPECT_THAT(parts[0], HasSubstr("<polyline"));
  EXPECT_THAT(parts[2], ::testing::EndsWith("x2=\"84\" y2=\"292\" stroke=\"#f06a3a\" stroke-width=\"1.6\""));
}

}  // namespace
}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
