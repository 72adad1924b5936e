// Compares maps of the feasibility value function with the acting rule, evaluated one observation at a time.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "common/acting/acting_rule.h"
#include "common/base/files.h"
#include "common/records/csv.h"
#include "deploy/tools/maps/feasibility_map.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/is_ok.h"
#include "tests/testing/run_folders.h"

namespace datacom::tools {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

// CVaR - delta where the slice has an observation, otherwise NaN.
double AskRule(const Snapshot& snapshot, const TaskModel& model, const ObservationSlice& slice, double x, double y) {
  std::vector<double> wide(model.spec.obs_dim);
  if (!slice.at(x, y, wide.data())) return std::nan("");
  const auto rule = MakeActingRule(snapshot, model, 1).value();
  const std::vector<float> observation(wide.begin(), wide.end()), noise(rule->noise_dim(), 0.5f);
  std::vector<float> action(model.spec.action_dim);
  double constraint = 0, cvar = 0;
  rule->Act(1, {observation.data(), noise.data()}, action.data(), {&constraint, &cvar, nullptr});
  return constraint;
}

TEST(FeasibilityMap, EqualsTheActingRuleAtEveryPointOfEverySlice) {
  constexpr int kResolution = 7;
  for (const std::string& task : TaskNames()) {
    const TaskModel model = MakeTaskModel(task, v1::TaskOptions()).value();
    const Snapshot snapshot = testing::SafePolicy(model, 0, 3);
    for (const ObservationSlice& slice : model.slices) {
      SCOPED_TRACE(task + " " + slice.name);
      FeasibilityMap map;
      map.resolution = kResolution;
      map.slice = slice;
      const MapPanel panel = MakeMapPanel(snapshot, 4, model, slice, kResolution).value();
      EXPECT_EQ(panel.epoch, 4u);
      EXPECT_NEAR(panel.delta, 0.8, 1e-12);  // the snapshot's
      ASSERT_EQ(panel.constraint.size(), size_t{kResolution * kResolution});
      int found = 0;
      for (int row = 0; row < kResolution; ++row) {
        for (int column = 0; column < kResolution; ++column) {
          const double wanted = AskRule(snapshot, model, slice, map.X(column), map.Y(row));
          const double value = panel.constraint[row * kResolution + column];
          ASSERT_EQ(std::isnan(value), std::isnan(wanted)) << "row " << row << " column " << column;
          if (std::isnan(wanted)) continue;
          ++found;
          ASSERT_NEAR(value, wanted, 1e-6) << "row " << row << " column " << column;
        }
      }
      EXPECT_GT(found, 0);
    }
  }
}

TEST(FeasibilityMap, KeepsValuesInPlaceWhenTheSliceHasHoles) {
  const TaskModel model = MakeTaskModel("cartpole", v1::TaskOptions()).value();
  const Snapshot snapshot = testing::SafePolicy(model, 0, 3);
  ObservationSlice holed = model.slices.front();
  holed.at = [whole = holed.at](double x, double y, double* observation) {
    return (x < -1 || x > 0.5) && y < 4 && whole(x, y, observation);
  };
  const MapPanel panel = MakeMapPanel(snapshot, 0, model, holed, 9).value();
  const MapPanel all = MakeMapPanel(snapshot, 0, model, model.slices.front(), 9).value();
  FeasibilityMap map;
  map.resolution = 9;
  map.slice = holed;
  int holes = 0;
  for (int row = 0; row < 9; ++row) {
    for (int column = 0; column < 9; ++column) {
      const double value = panel.constraint[row * 9 + column];
      if ((map.X(column) < -1 || map.X(column) > 0.5) && map.Y(row) < 4) {
        EXPECT_NEAR(value, all.constraint[row * 9 + column], 1e-6);
      } else {
        EXPECT_TRUE(std::isnan(value));
        ++holes;
      }
    }
  }
  EXPECT_GT(holes, 0);
}

TEST(FeasibilityMap, NamesTheNearestKnownRowOfEachCell) {
  const TaskModel model = MakeTaskModel("air_hockey", v1::TaskOptions()).value();
  FeasibilityMap map;
  map.resolution = 9;
  map.slice = model.slices.front();
  map.panels.resize(1);
  map.panels[0].constraint.assign(81, 0.5);
  map.known = MakeKnownPanel(model, map.slice, 9);
  ASSERT_EQ(map.known.names, model.known_constraints->names());
  const Csv csv = Csv::Parse(MapCsv(map), "map").value();
  const nlohmann::json json = nlohmann::json::parse(MapJson(map))["known"];
  std::vector<double> observation(model.spec.obs_dim), q(model.dynamics->dims().q), x(model.dynamics->dims().x);
  std::vector<double> k(model.known_constraints->count());
  int cells = 0;
  for (int cell = 0; cell < 81; ++cell) {
    if (!map.slice.at(map.X(cell % 9), map.Y(cell / 9), observation.data())) {
      EXPECT_EQ(map.known.row[cell], -1);
      EXPECT_TRUE(json["distance"][cell].is_null());
      continue;
    }
    ++cells;
    model.dynamics->Evaluate(observation.data(), {q.data(), x.data(), nullptr, nullptr, nullptr});
    KnownConstraintsOut out;
    out.k = k.data();
    model.known_constraints->Evaluate({q.data(), x.data(), observation.data()}, out);
    const auto largest = std::max_element(k.begin(), k.end());
    EXPECT_EQ(map.known.distance[cell], -*largest);
    EXPECT_EQ(map.known.row[cell], largest - k.begin());
    EXPECT_EQ(csv.Text(cell, "known_row"), map.known.names[largest - k.begin()]);
    EXPECT_EQ(csv.Number(cell, "known_distance"), -*largest);
    EXPECT_EQ(json["row"][cell], largest - k.begin());
  }
  EXPECT_GT(cells, 0);
  const TaskModel cartpole = MakeTaskModel("cartpole", v1::TaskOptions()).value();
  EXPECT_TRUE(MakeKnownPanel(cartpole, cartpole.slices.front(), 3).names.empty()) << "CartPole has no known rows";
}

class MapOfRun : public ::testing::Test {
 protected:
  absl::StatusOr<FeasibilityMap> Make(uint32_t member, const std::string& epochs, const std::string& slice) {
    return MakeFeasibilityMap(folder_, {}, member, epochs, slice, 5);
  }
  std::vector<uint32_t> Epochs(const std::string& text) {
    std::vector<uint32_t> epochs;
    const FeasibilityMap map = Make(0, text, "").value();
    for (const MapPanel& panel : map.panels) epochs.push_back(panel.epoch);
    return epochs;
  }
  const std::string folder_ =
      testing::MakeRunFolder("map_run", "cartpole", {0, 1, 2, 3, 4, 5, 6, 7, 8}, /*horizon=*/50);
};

TEST_F(MapOfRun, ShowsTheGivenEpochsOrFiveSpreadOverTheRun) {
  EXPECT_EQ(Epochs(""), (std::vector<uint32_t>{0, 2, 4, 6, 8}));
  EXPECT_EQ(Epochs("0,3,last"), (std::vector<uint32_t>{0, 3, 8}));
  EXPECT_EQ(Epochs("all").size(), 9u);
}

TEST_F(MapOfRun, JsonAndCsvHoldTheSameValues) {
  const FeasibilityMap map = Make(1, "2,last", "").value();
  const nlohmann::json json = nlohmann::json::parse(MapJson(map));
  EXPECT_EQ(json["slice"], map.slice.name);
  EXPECT_EQ(json["member"], 1);
  const std::string file = (fs::path(::testing::TempDir()) / "map.csv").string();
  ASSERT_THAT(WriteFileAtomically(file, MapCsv(map)), IsOk());
  const Csv csv = Csv::Read(file).value();
  ASSERT_EQ(csv.rows(), 50u);
  for (size_t i = 0; i < csv.rows(); ++i) {
    const size_t cell = i % 25;
    EXPECT_EQ(csv.Text(i, "epoch"), i < 25 ? "2" : "8");
    EXPECT_EQ(csv.Number(i, "x"), map.X(cell % 5));
    EXPECT_EQ(csv.Number(i, "y"), map.Y(cell / 5));
    EXPECT_EQ(csv.Number(i, "constraint"), map.panels[i / 25].constraint[cell]);
    const double rounded = json["panels"][i / 25]["constraint"][cell];
    EXPECT_NEAR(rounded, map.panels[i / 25].constraint[cell], 1e-3 * std::abs(rounded));
  }
}

TEST_F(MapOfRun, AReportHasItsMapAlsoWhereTheFolderTakesNoFile) {
  const std::string file = folder_ + "/feasibility_map.json", map = WriteReportMap(folder_).value();
  EXPECT_EQ(ReadFile(file).value(), map);
  fs::remove(file);
  fs::create_directories(file + "/in_the_way");
  EXPECT_EQ(WriteReportMap(folder_).value(), map);
  fs::remove_all(file);
}

TEST_F(MapOfRun, NamesTheMissingEpochSliceOrRun) {
  EXPECT_THAT(std::string(Make(0, "", "sphere").status().message()), HasSubstr("no slice \"sphere\"; there are: pole"));
  EXPECT_THAT(std::string(Make(7, "", "").status().message()), HasSubstr("--member: no member 7"));
  EXPECT_THAT(std::string(Make(0, "12", "").status().message()), HasSubstr("no policy of epoch 12"));
  const TaskModel model = MakeTaskModel("cartpole", v1::TaskOptions()).value();
  Snapshot plain = testing::SafePolicy(model, 0, 1);
  plain.acting_rule = "gaussian_policy";
  EXPECT_THAT(std::string(MakeMapPanel(plain, 0, model, model.slices[0], 3).status().message()),
              HasSubstr("gaussian_policy has no learned constraint"));
}

}  // namespace
}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
