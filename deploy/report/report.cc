#include "deploy/report/report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/config/experiment.h"
#include "deploy/report/template.h"

namespace datacom::report {
namespace {

using nlohmann::json;

// JSON has no NaN.
json Finite(double value) { return std::isfinite(value) ? json(value) : json(); }

json SeriesJson(const Series& series) {
  json points = json::array();
  for (size_t i = 0; i < series.steps.size(); ++i) {
    const Interval& value = series.values[i];
    points.push_back({series.steps[i], Finite(value.mean), Finite(value.half), value.count});
  }
  return points;
}

// The newest row of each member, as text cells of all columns the page shows.
json MemberRows(const Csv& progress) {
  json rows = json::array();
  for (const auto& [member, all] : RowsByMember(progress)) {
    const size_t row = all.back();
    json one = {{"member", member},
                {"seed", progress.Text(row, "seed")},
                {"env_steps", Finite(progress.Number(row, "env_steps"))},
                {"updates", Finite(progress.Number(row, "updates"))},
                {"wall_seconds", Finite(progress.Number(row, "wall_seconds"))},
                {"status", progress.Text(row, "status")}};
    for (const Quantity& quantity : Quantities()) {
      if (quantity.summary && progress.has(quantity.column))
        one[quantity.column] = Finite(progress.Number(row, quantity.column));
    }
    rows.push_back(one);
  }
  return rows;
}

// Final values: of each member its newest row, then mean and interval over members.
json Summary(const Csv& progress) {
  json summary = json::object();
  for (const Quantity& quantity : Quantities()) {
    if (!quantity.summary) continue;
    std::vector<double> values;
    for (const auto& [member, rows] : RowsByMember(progress))
      values.push_back(progress.Number(rows.back(), quantity.column));
    const Interval interval = MeanInterval(values);
    if (interval.count > 0) summary[quantity.column] = {Finite(interval.mean), Finite(interval.half), interval.count};
  }
  return summary;
}

// The map, or why there is none.
json MapData(const std::string& run_dir, const MapMaker& map) {
  const absl::StatusOr<std::string> text = map(run_dir);
  if (!text.ok()) return {{"missing", std::string(text.status().message())}};
  json data = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  return data.is_object() ? data : json{{"missing", "the map that was made is no JSON object"}};
}

absl::StatusOr<json> RunData(const std::string& run_dir, const MapMaker& map) {
  const std::string file = run_dir + "/experiment.textproto";
  if (!std::filesystem::exists(file)) {
    return absl::InvalidArgumentError(absl::StrCat(run_dir, " is no run folder: it has no experiment.textproto"));
  }
  ASSIGN_OR_RETURN(const v1::Experiment experiment, LoadExperiment(file, ExperimentFolder()));
  ASSIGN_OR_RETURN(const Csv progress, ReadCsv(run_dir + "/progress.csv"));
  if (progress.rows() == 0) return absl::NotFoundError(absl::StrCat(run_dir, "/progress.csv has no rows yet"));
  std::optional<Csv> episodes;
  if (absl::StatusOr<Csv> read = ReadCsv(run_dir + "/episodes.csv"); read.ok()) episodes = *std::move(read);
  const absl::StatusOr<std::string> build = ReadFile(run_dir + "/build.txt");
  json run;
  run["folder"] = std::filesystem::path(run_dir).lexically_normal().string();
  run["name"] = experiment.name();
  run["description"] = experiment.description();
  run["task"] = experiment.task();
  run["algorithm"] = experiment.algorithm();
  run["goal"] = experiment.run().env_steps();
  run["lockstep"] = experiment.run().lockstep();
  run["experiment"] = PrintExperiment(experiment);
  run["build"] = build.ok() ? *build : "";
  run["episodes"] = episodes ? episodes->rows() : 0;
  run["members"] = MemberRows(progress);
  run["summary"] = Summary(progress);
  json series = json::object();
  for (const Quantity& quantity : Quantities()) {
    const Series curve = RunSeries(progress, episodes ? &*episodes : nullptr, quantity.column);
    if (!curve.steps.empty()) series[quantity.column] = SeriesJson(curve);
  }
  run["series"] = series;
  const AlgorithmInfo* algorithm = FindAlgorithm(experiment.algorithm());
  if (algorithm != nullptr && algorithm->learns_delta) run["map"] = MapData(run_dir, map);
  return run;
}

// A place in the page's fixed palette for each algorithm: stable by its place in the register.
int PaletteIndex(const std::string& algorithm) {
  const std::vector<std::string> names = AlgorithmNames();
  return std::find(names.begin(), names.end(), algorithm) - names.begin();
}

}  // namespace

const std::vector<Quantity>& Quantities() {
  static const std::vector<Quantity> quantities = {
      {"eval_discounted_return", "Discounted return J", "Evaluation", true, false, false},
      {"eval_return", "Return", "Evaluation", true, false, false},
      {"eval_max_violation", "Largest violation of an episode", "Evaluation", true, true, false},
      {"eval_sum_cost", "Cost sum of an episode", "Evaluation", true, true, false},
      {"eval_mean_cost", "Mean cost of a step", "Evaluation", false, true, false},
      {"eval_success_rate", "Success rate", "Evaluation", true, true, false},
      {"train_return", "Return", "Training episodes", false, false, false},
      {"train_max_violation", "Largest violation of an episode", "Training episodes", false, true, false},
      {"train_sum_cost", "Cost sum of an episode", "Training episodes", true, true, false},
      {"cumulative_cost", "Cost of all training so far", "Training episodes", false, true, false},
      {"delta", "Threshold δ", "Safety and learning", true, false, false},
      {"constraint_mean", "Mean of the learned constraint", "Safety and learning", false, false, false},
      {"constraint_loss", "Constraint loss", "Safety and learning", false, false, false},
      {"critic_loss", "Critic loss", "Safety and learning", false, false, false},
      {"policy_loss", "Policy loss", "Safety and learning", false, false, false},
      {"multiplier", "Lagrange multiplier β", "Safety and learning", false, false, false},
      {"alpha", "Temperature α", "Safety and learning", false, false, true},
      {"entropy", "Policy entropy", "Safety and learning", false, false, false},
      {"updates_per_second", "Updates per second", "System", false, true, false},
      {"samples_per_insert", "Samples per insert", "System", false, false, false},
      {"policy_lag", "Policy lag [updates]", "System", false, true, false},
  };
  return quantities;
}

absl::StatusOr<json> ReportData(const std::vector<std::string>& run_dirs, const MapMaker& map) {
  json data;
  data["build"] = absl::StrCat("datacom ", Version(), " (", Revision(), ")");
  data["quantities"] = json::array();
  for (const Quantity& quantity : Quantities()) {
    data["quantities"].push_back({{"column", quantity.column},
                                  {"title", quantity.title},
                                  {"group", quantity.group},
                                  {"summary", quantity.summary},
                                  {"from_zero", quantity.from_zero},
                                  {"logarithmic", quantity.logarithmic}});
  }
  data["runs"] = json::array();
  std::set<int> used;
  for (const std::string& run_dir : run_dirs) {
    ASSIGN_OR_RETURN(json run, RunData(run_dir, map));
    const int index = PaletteIndex(run["algorithm"].get<std::string>());
    run["palette"] = index;
    run["shade"] = used.insert(index).second ? 0 : 1;  // a further run of the same algorithm is drawn dashed
    data["runs"].push_back(std::move(run));
  }
  return data;
}

absl::StatusOr<Plotting> ReadPlotting() {
  const char* configured = std::getenv("DATACOM_CHART_JS");
  const std::string path = configured != nullptr ? configured : "/usr/share/javascript/chart.js/chart.min.js";
  absl::StatusOr<std::string> script = ReadFile(path);
  if (!script.ok()) {
    return absl::NotFoundError(
        absl::StrCat("the plotting library ", path, " is missing; install Debian's package libjs-chart.js"));
  }
  Plotting plotting;
  plotting.script = *std::move(script);
  const absl::StatusOr<std::string> licence = ReadFile("/usr/share/doc/libjs-chart.js/copyright");
  if (licence.ok()) plotting.licence = *licence;
  if (plotting.licence.empty()) plotting.licence = plotting.script.substr(0, plotting.script.find("*/"));
  return plotting;
}

std::string RenderPage(const json& data, const Plotting& plotting) {
  // Inside <script> only "</" and "<!--" could end or change the element.
  const std::string embedded =
      absl::StrReplaceAll(data.dump(-1, ' ', false, json::error_handler_t::replace), {{"<", "\\u003c"}});
  const std::string script = absl::StrReplaceAll(plotting.script, {{"</script", "<\\/script"}});
  const std::string licence = absl::StrReplaceAll(plotting.licence, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
  return absl::StrReplaceAll(kPageTemplate, {{"{{STYLE}}", kStyle},
                                             {"{{PLOTTING}}", script},
                                             {"{{LICENCE}}", licence},
                                             {"{{DATA}}", embedded},
                                             {"{{MAPS}}", kMapScript},
                                             {"{{SCRIPT}}", kScript}});
}

absl::Status WriteReport(const std::vector<std::string>& run_dirs, const std::string& path, const MapMaker& map) {
  ASSIGN_OR_RETURN(const json data, ReportData(run_dirs, map));
  ASSIGN_OR_RETURN(const Plotting plotting, ReadPlotting());
  return WriteFileAtomically(path, RenderPage(data, plotting));
}

}  // namespace datacom::report
