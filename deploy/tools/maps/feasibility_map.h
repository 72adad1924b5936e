// Maps of the feasibility value function: k = CVaR - delta of a policy's acting rule over a slice of the observations.
// The functions are thread-safe; those that take a run folder block on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_MAPS_FEASIBILITY_MAP_H_
#define DATACOM_DEPLOY_TOOLS_MAPS_FEASIBILITY_MAP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/nn/snapshot.h"
#include "common/tasks/task.h"

namespace datacom::tools {

// One epoch's values at the centres of resolution x resolution cells.
struct MapPanel {
  uint32_t epoch = 0;
  double delta = 0;
  std::vector<double> constraint;  // [y][x], lowest y first; NaN where the slice has no observation
};

// The nearest known row at the centres of the cells, from the rows that a slice determines (joint limits, and every row
// of a task in C++). Empty if there is none.
struct KnownPanel {
  std::vector<std::string> names;
  std::vector<double> distance;  // [y][x], to the nearest row; below 0: violated; NaN where there is no observation
  std::vector<int> row;          // [y][x], in names; -1 where there is no observation
};

struct FeasibilityMap {
  std::string run;  // name of the experiment
  uint32_t member = 0;
  int resolution = 0;
  ObservationSlice slice;
  std::vector<MapPanel> panels;  // by epoch
  KnownPanel known;

  double X(int column) const { return Middle(slice.x_low, slice.x_high, column); }
  double Y(int row) const { return Middle(slice.y_low, slice.y_high, row); }

 private:
  double Middle(double low, double high, int cell) const { return low + (high - low) * (cell + 0.5) / resolution; }
};

KnownPanel MakeKnownPanel(const TaskModel& model, const ObservationSlice& slice, int resolution);

// INVALID_ARGUMENT, naming the snapshot's acting rule, when that has no learned constraint.
absl::StatusOr<MapPanel> MakeMapPanel(const Snapshot& snapshot, uint32_t epoch, const TaskModel& model,
                                      const ObservationSlice& slice, int resolution);

// Maps policies of a run folder. epochs: "0,2,last", "all", or empty: at most five, evenly spread from first to last.
// slice: name of a slice of the task; empty = its first.
absl::StatusOr<FeasibilityMap> MakeFeasibilityMap(const std::string& run_dir, const std::vector<std::string>& set,
                                                  std::optional<uint32_t> member, const std::string& epochs,
                                                  const std::string& slice, int resolution);

// {"slice":…,"title":…,"x_label":…,"x_low":…,…,"member":…,"resolution":n,
//  "panels":[{"epoch":…,"delta":…,"constraint":[n * n numbers, null for no value]}],
//  "known":{"names":[…],"distance":[n * n numbers],"row":[n * n indices]}}; no "known" without such rows
std::string MapJson(const FeasibilityMap& map);
// Makes the map of a report: member 0, a few epochs. Returns its JSON and writes it to
// RUN_DIR/feasibility_map.json, where it can.
absl::StatusOr<std::string> WriteReportMap(const std::string& run_dir);
// epoch,delta,x,y,constraint, then known_distance,known_row if there are such rows; full precision; no row for cells
// without a value.
std::string MapCsv(const FeasibilityMap& map);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_MAPS_FEASIBILITY_MAP_H_
// SPDX-License-Identifier: Apache-2.0
