#include "deploy/tools/maps/feasibility_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/acting/acting_rule.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/records/csv.h"
#include "common/records/message_json.h"
#include "common/tasks/nearest_row.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/policies/run_policies.h"
#include "nlohmann/json.hpp"

namespace datacom::tools {
namespace {

using nlohmann::json;

constexpr size_t kUsualPanels = 5;
constexpr int kReportResolution = 61;  // points per side: enough for a page, about 25 kB per epoch

absl::StatusOr<const ObservationSlice*> FindSlice(const TaskModel& model, const std::string& name) {
  if (model.slices.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("task ", model.spec.name, " defines no slice to map"));
  }
  if (name.empty()) return &model.slices.front();
  std::vector<std::string> names;
  for (const ObservationSlice& slice : model.slices) {
    if (slice.name == name) return &slice;
    names.push_back(slice.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("--slice: task ", model.spec.name, " has no slice \"", name,
                                                 "\"; there are: ", absl::StrJoin(names, ", ")));
}

// Epochs as ReadPolicies takes them.
absl::StatusOr<std::vector<std::string>> ChooseEpochs(const std::string& run_dir, const std::string& text) {
  if (!text.empty() && text != "all") return std::vector<std::string>(absl::StrSplit(text, ','));
  ASSIGN_OR_RETURN(const std::vector<uint32_t> epochs, PolicyEpochs(run_dir));
  const size_t count = text == "all" ? epochs.size() : std::min(kUsualPanels, epochs.size());
  std::vector<std::string> chosen;
  for (size_t i = 0; i < count; ++i) {
    const size_t index = count == 1 ? epochs.size() - 1 : i * (epochs.size() - 1) / (count - 1);
    chosen.push_back(std::to_string(epochs[index]));
  }
  return chosen;
}

// Four significant digits are enough for a colour and keep web pages small.
json Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return std::strtod(text, nullptr);
}

}  // namespace

KnownPanel MakeKnownPanel(const TaskModel& model, const ObservationSlice& slice, int resolution) {
  KnownPanel panel;
  NearestRows rows(model, /*in_slice=*/true);
  if (rows.empty()) return panel;
  panel.names = model.known_constraints->names();
  panel.distance.assign(size_t{1} * resolution * resolution, std::numeric_limits<double>::quiet_NaN());
  panel.row.assign(panel.distance.size(), -1);
  FeasibilityMap grid;
  grid.resolution = resolution;
  grid.slice = slice;
  std::vector<double> observation(model.spec.obs_dim);
  for (int y = 0; y < resolution; ++y) {
    for (int x = 0; x < resolution; ++x) {
      if (!slice.at(grid.X(x), grid.Y(y), observation.data())) continue;
      const std::optional<NearestRow> nearest = rows.At(observation.data());
      if (!nearest) continue;
      panel.distance[y * resolution + x] = nearest->distance;
      panel.row[y * resolution + x] = nearest->row;
    }
  }
  return panel;
}

absl::StatusOr<MapPanel> MakeMapPanel(const Snapshot& snapshot, uint32_t epoch, const TaskModel& model,
                                      const ObservationSlice& slice, int resolution) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ActingRule> rule, MakeActingRule(snapshot, model, resolution));
  if (!rule->has_constraint()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the acting rule ", snapshot.acting_rule, " has no learned constraint to map"));
  }
  FeasibilityMap grid;
  grid.resolution = resolution;
  grid.slice = slice;
  MapPanel panel;
  panel.epoch = epoch;
  panel.constraint.assign(size_t{1} * resolution * resolution, std::numeric_limits<double>::quiet_NaN());
  const TaskSpec& spec = model.spec;
  std::vector<double> wide(spec.obs_dim), constraint(resolution), cvar(resolution);
  std::vector<float> observations(resolution * spec.obs_dim), noise(resolution * rule->noise_dim(), 0.0f);
  std::vector<float> actions(resolution * spec.action_dim), costs(resolution, 0.0f);
  for (int row = 0; row < resolution; ++row) {
    std::vector<int> columns;  // columns that have an observation
    for (int column = 0; column < resolution; ++column) {
      if (!slice.at(grid.X(column), grid.Y(row), wide.data())) continue;
      std::transform(wide.begin(), wide.end(), &observations[columns.size() * spec.obs_dim],
                     [](double value) { return static_cast<float>(value); });
      columns.push_back(column);
    }
    if (columns.empty()) continue;
    rule->Act(static_cast<int>(columns.size()), {observations.data(), noise.data(), costs.data()}, actions.data(),
              {constraint.data(), cvar.data(), nullptr});
    for (size_t i = 0; i < columns.size(); ++i) panel.constraint[row * resolution + columns[i]] = constraint[i];
    panel.delta = cvar[0] - constraint[0];
  }
  return panel;
}

absl::StatusOr<FeasibilityMap> MakeFeasibilityMap(const std::string& run_dir, const std::vector<std::string>& set,
                                                  std::optional<uint32_t> member, const std::string& epochs,
                                                  const std::string& slice, int resolution) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, ReadRunExperiment(run_dir, set));
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(experiment.task(), experiment.task_options()));
  ASSIGN_OR_RETURN(const ObservationSlice* const found, FindSlice(model, slice));
  ASSIGN_OR_RETURN(const std::vector<std::string> chosen, ChooseEpochs(run_dir, epochs));
  FeasibilityMap map;
  map.run = experiment.name();
  map.resolution = resolution;
  map.slice = *found;
  map.known = MakeKnownPanel(model, *found, resolution);
  for (const std::string& epoch : chosen) {
    ASSIGN_OR_RETURN(const std::vector<MemberPolicy> policies, ReadPolicies(run_dir, epoch));
    ASSIGN_OR_RETURN(const MemberPolicy* const policy, FindMember(policies, member));
    map.member = policy->snapshot.member;
    ASSIGN_OR_RETURN(MapPanel panel, MakeMapPanel(policy->snapshot, policy->epoch, model, *found, resolution));
    map.panels.push_back(std::move(panel));
  }
  return map;
}

std::string MapJson(const FeasibilityMap& map) {
  const ObservationSlice& slice = map.slice;
  json out = {{"slice", slice.name},         {"title", slice.title},   {"x_label", slice.x_label},
              {"y_label", slice.y_label},    {"x_low", slice.x_low},   {"x_high", slice.x_high},
              {"y_low", slice.y_low},        {"y_high", slice.y_high}, {"member", map.member},
              {"resolution", map.resolution}};
  out["panels"] = json::array();
  for (const MapPanel& panel : map.panels) {
    json values = json::array();
    for (const double value : panel.constraint) values.push_back(Rounded(value));
    out["panels"].push_back({{"epoch", panel.epoch}, {"delta", panel.delta}, {"constraint", std::move(values)}});
  }
  if (!map.known.names.empty()) {
    json distances = json::array();
    for (const double distance : map.known.distance) distances.push_back(Rounded(distance));
    out["known"] = {{"names", map.known.names}, {"distance", std::move(distances)}, {"row", map.known.row}};
  }
  return JsonText(out) + "\n";
}

absl::StatusOr<std::string> WriteReportMap(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const FeasibilityMap map, MakeFeasibilityMap(run_dir, {}, 0, "", "", kReportResolution));
  std::string text = MapJson(map);
  (void)WriteFileAtomically(run_dir + "/feasibility_map.json", text);  // a report may be of a folder that is only read
  return text;
}

std::string MapCsv(const FeasibilityMap& map) {
  const bool known = !map.known.names.empty();
  std::string out = absl::StrCat("epoch,delta,x,y,constraint", known ? ",known_distance,known_row" : "", "\n");
  for (const MapPanel& panel : map.panels) {
    for (int row = 0; row < map.resolution; ++row) {
      for (int column = 0; column < map.resolution; ++column) {
        const int cell = row * map.resolution + column;
        const double value = panel.constraint[cell];
        if (std::isnan(value)) continue;
        absl::StrAppend(&out, panel.epoch, ",", Cell(panel.delta), ",", Cell(map.X(column)), ",", Cell(map.Y(row)), ",",
                        Cell(value));
        if (known) {
          absl::StrAppend(&out, ",", Cell(map.known.distance[cell]), ",",
                          map.known.row[cell] < 0 ? "" : map.known.names[map.known.row[cell]]);
        }
        out += "\n";
      }
    }
  }
  return out;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
