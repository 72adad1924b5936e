#include "deploy/report/report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/files.h"
#include "common/base/output_file.h"
#include "common/base/shared_files.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/config/sha256.h"
#include "common/metrics/statistics.h"
#include "common/records/best_epoch.h"
#include "common/records/csv.h"
#include "common/records/evaluation_means.h"
#include "common/records/message_json.h"
#include "deploy/report/figure.h"
#include "deploy/report/groups.h"

namespace datacom::report {

// Parts of the report page and of the live page, from the files of this folder (embed.cmake). Both templates have
// {{STYLE}}, {{PLOTTING}}, {{LICENCE}}, {{VERDICT}} and {{SCRIPT}}; the page's has {{DATA}} and {{MAPS}}, too, the live
// one {{LIVE}}.
extern const char kPageTemplate[], kLiveTemplate[], kStyle[], kMapScript[], kVerdictScript[], kScript[], kLiveScript[];

namespace {

using nlohmann::json;

// JSON has no NaN.
json Finite(double value) { return std::isfinite(value) ? json(value) : json(); }

// The pages draw every member's curve of few members, and always have the members of what the verdict is about.
bool HasMembers(const Group& group, const std::string& quantity) {
  constexpr size_t kFew = 3;
  return group.members.size() > 1 &&
         (group.members.size() <= kFew || quantity == "eval_discounted_return" || quantity == "eval_sum_cost");
}

// A point is [steps, mean], of several members [steps, mean, half width, members, least, largest], followed by the
// members' values if `members`. Of more than `most` points every second, fourth, ... one, and the last one; 0: all. So
// that a growing curve keeps its points, the distance doubles.
json SeriesJson(const Series& series, bool members, size_t most) {
  json points = json::array();
  size_t distance = 1;
  while (most > 0 && series.steps.size() / distance > most) distance *= 2;
  for (size_t i = 0; i < series.steps.size(); ++i) {
    if (i % distance != 0 && i + 1 != series.steps.size()) continue;
    const Interval& value = series.values[i];
    json point = {series.steps[i], Finite(value.mean)};
    const std::vector<double>& own = series.members[i];
    if (own.size() > 1) {
      for (const double one : {value.half, 1.0 * value.count, value.least, value.most}) point.push_back(Finite(one));
    }
    for (size_t m = 0; members && m < own.size(); ++m) point.push_back(Finite(own[m]));
    points.push_back(std::move(point));
  }
  return points;
}

// Each member's values from its shown row, and its progress from its newest row.
json MemberRows(const Group& group, const std::vector<Quantity>& quantities) {
  json rows = json::array();
  std::map<std::string, std::vector<double>> values_of;
  for (const Quantity& quantity : quantities) {
    if (quantity.summary) values_of[quantity.column] = ShownValues(group, quantity.column);
  }
  for (size_t i = 0; i < group.members.size(); ++i) {
    const RunMember& member = group.members[i];
    const Csv& progress = member.run->progress;
    const size_t row = member.rows.back();
    json one = {{"member", member.member},
                {"seed", progress.Text(row, "seed")},
                {"epoch", Finite(progress.Number(member.rows[member.shown], "epoch"))},
                {"env_steps", Finite(progress.Number(row, "env_steps"))},
                {"updates", Finite(progress.Number(row, "updates"))},
                {"wall_seconds", Finite(progress.Number(row, "wall_seconds"))},
                {"budget", CostBudget(member.run->experiment, member.member)},
                {"status", progress.Text(row, "status")},
                {"abandoned_reason", progress.Text(row, "abandoned_reason")},
                {"shield", Finite(progress.Number(member.rows[member.shown], "eval_shield_share"))}};
    for (const auto& [column, values] : values_of) one[column] = Finite(values[i]);
    rows.push_back(one);
  }
  return rows;
}

// Over the members' shown values: [mean, half width, members, inter-quartile mean, low and high end of its interval].
json Summary(const Group& group, const std::vector<Quantity>& quantities) {
  json summary = json::object();
  for (const Quantity& quantity : quantities) {
    if (!quantity.summary) continue;
    const std::vector<double> values = ShownValues(group, quantity.column);
    const Interval interval = MeanInterval(values);
    if (interval.count == 0) continue;
    const InterquartileMean middle = ComputeInterquartileMean(values);
    summary[quantity.column] = {Finite(interval.mean), Finite(interval.half), interval.count,
                                Finite(middle.mean),   Finite(middle.low),    Finite(middle.high)};
  }
  return summary;
}

// The map, or the reason why there is none.
json MapData(const std::string& run_dir, const MapMaker& map) {
  const absl::StatusOr<std::string> text = map(run_dir);
  if (!text.ok()) return {{"missing", std::string(text.status().message())}};
  json data = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  return data.is_object() ? data : json{{"missing", "the map is not a JSON object"}};
}

// The film of a run as a data URI; null without one, or with one that is too large for a page.
json FilmData(const std::string& run_dir) {
  constexpr uint64_t kMostBytes = 8 << 20;
  for (const auto& [name, type] : {std::pair("film.html", "text/html"), std::pair("film.mp4", "video/mp4"),
                                   std::pair("film.webp", "image/webp"), std::pair("film.png", "image/png")}) {
    const std::optional<std::string> film = ReadShown(absl::StrCat(run_dir, "/", name), kMostBytes);
    if (film) return absl::StrCat("data:", type, ";base64,", absl::Base64Escape(*film));
  }
  return json();
}

json RunData(const Run& run, const MapMaker& map) {
  json data = {{"folder", run.folder},
               {"name", run.experiment.name()},
               {"description", run.experiment.description()},
               {"experiment", PrintExperiment(run.experiment)},
               {"build", run.build}};
  if (!map) return data;
  data["film"] = FilmData(run.folder);
  const AlgorithmInfo* algorithm = FindAlgorithm(run.experiment.algorithm());
  if (algorithm != nullptr && algorithm->learns_delta) data["map"] = MapData(run.folder, map);
  return data;
}

// How many of the group's training episodes had a cost, and the kListed worst and newest of them. A row of a result may
// stand for several episodes.
json EpisodesData(const Group& group) {
  constexpr size_t kListed = 10;
  double all = 0;
  std::vector<json> violating;
  for (const RunMember& member : group.members) {
    double ended = 0;  // of this member
    for (const size_t row : member.episode_rows) {
      const Csv& episodes = *member.run->episodes;
      const double count = episodes.has("episodes") ? episodes.Number(row, "episodes") : 1;
      ended += count;
      if (!(episodes.Number(row, "sum_cost") > 0)) continue;
      violating.push_back(
          {{"seed", member.run->progress.Text(member.rows.back(), "seed")}, {"episode", ended}, {"count", count}});
      for (const char* column : {"env_steps", "violating_steps", "max_violation", "sum_cost"}) {
        violating.back()[column] = Finite(episodes.Number(row, column));
      }
    }
    all += ended;
  }
  double with_cost = 0;
  for (const json& one : violating) with_cost += one["count"].get<double>();
  json data = {{"all", all}, {"violating", with_cost}};
  for (const auto& [list, column] : {std::pair("worst", "sum_cost"), std::pair("newest", "env_steps")}) {
    std::stable_sort(violating.begin(), violating.end(), [column = column](const json& a, const json& b) {
      return a[column] > b[column];  // null is less than a number
    });
    data[list] = std::vector<json>(violating.begin(), violating.begin() + std::min(kListed, violating.size()));
  }
  return data;
}

json GroupData(const Group& group, const std::vector<Quantity>& quantities, size_t most) {
  const Run& run = group.run();
  json data;
  data["title"] = group.title;
  data["task"] = run.experiment.task();
  data["algorithm"] = run.experiment.algorithm();
  data["goal"] = run.experiment.run().env_steps();
  data["lockstep"] = run.experiment.run().lockstep();
  const AlgorithmInfo* algorithm = FindAlgorithm(run.experiment.algorithm());
  data["has_budget"] = algorithm != nullptr && algorithm->has_budget;
  data["learns_delta"] = algorithm != nullptr && algorithm->learns_delta;
  data["folder"] = run.folder;
  data["episodes"] = EpisodesData(group);
  data["members"] = MemberRows(group, quantities);
  data["summary"] = Summary(group, quantities);
  json series = json::object();
  for (const Quantity& quantity : quantities) {
    const Series curve = GroupSeries(group, quantity.column);
    if (curve.steps.empty()) continue;
    series[quantity.column] = SeriesJson(curve, HasMembers(group, quantity.column), most);
  }
  data["series"] = series;
  return data;
}

// The names of the costs of tasks with several, each once, in the order of the runs.
std::vector<std::string> NamesOf(const std::vector<Run>& runs, std::vector<std::string> Run::*list) {
  std::vector<std::string> names;
  for (const Run& run : runs) {
    for (const std::string& name : run.*list) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

constexpr char kTraining[] = "Training episodes", kSystem[] = "System";

// The statistics of a section, in its order.
void AddStatistics(v1::Statistic::Section section, const char* title, std::vector<Quantity>* quantities) {
  std::vector<const EpochStatistic*> own;
  for (const EpochStatistic& statistic : Statistics()) {
    if (statistic.about().has_title() && statistic.about().section() == section) own.push_back(&statistic);
  }
  std::stable_sort(own.begin(), own.end(), [](const EpochStatistic* a, const EpochStatistic* b) {
    return a->about().order() < b->about().order();
  });
  for (const EpochStatistic* statistic : own) {
    const v1::Statistic& about = statistic->about();
    const std::string unit = about.has_unit() ? absl::StrCat(" [", about.unit(), "]") : "";
    quantities->push_back(
        {statistic->name(), about.title() + unit, title, about.summary(), about.from_zero(), about.logarithmic()});
  }
}

// A horizontal line among the curves: the means of an evaluation of an untrained policy (the output of `datacom eval
// --policy ... --csv`), labelled with the file's name without folder and extension. Abandoned episodes do not count.
// NOT_FOUND for a file that is missing or has no episode; INVALID_ARGUMENT naming file, line and column for a cell that
// is not a number, and for a file without any known column.
absl::StatusOr<json> BaselineData(const std::string& file) {
  ASSIGN_OR_RETURN(const Csv csv, Csv::Read(file));
  RETURN_IF_ERROR(csv.CheckNumbers({}));
  std::vector<size_t> whole;
  for (size_t row = 0; row < csv.rows(); ++row) {
    if (csv.Text(row, "abandoned") != "1") whole.push_back(row);
  }
  if (whole.empty()) return absl::NotFoundError(absl::StrCat(file, ": contains no complete episode"));
  json means = json::object();
  for (const EvaluationMean& mean : kEvaluationMeans) {
    const std::string column(mean.key);
    if (mean.name.empty() || !csv.has(column)) continue;
    double sum = 0;
    for (const size_t row : whole) sum += csv.Number(row, column);
    means[absl::StrCat("eval_", mean.name)] = Finite(sum / static_cast<double>(whole.size()));
  }
  if (means.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": there is no column discounted_return; `datacom eval --csv` writes such files"));
  }
  return json{
      {"label", std::filesystem::path(file).stem().string()}, {"episodes", whole.size()}, {"means", std::move(means)}};
}

}  // namespace

std::vector<Quantity> Quantities(const std::vector<Run>& runs) {
  std::vector<Quantity> quantities = {
      {"eval_discounted_return", "Discounted return J", "Evaluation", true, false, false},
      {"eval_return", "Return", "Evaluation", true, false, false},
      {"eval_max_violation", "Largest violation per episode", "Evaluation", true, true, false},
      {"eval_sum_cost", "Cost sum per episode", "Evaluation", true, true, false},
      {"eval_violating_steps", "Violating steps per episode", "Evaluation", true, true, false},
      {"eval_mean_cost", "Mean cost per step", "Evaluation", false, true, false},
  };
  if (runs.empty() || std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.defines_success; })) {
    quantities.push_back({"eval_success_rate", "Success rate", "Evaluation", true, true, false});
  }
  AddStatistics(v1::Statistic::TRAINING, kTraining, &quantities);
  for (const Quantity& derived : std::vector<Quantity>{
           {"newest_discounted_return", "Discounted return J, newest 50 episodes", kTraining, false, false, false},
           {"newest_sum_cost", "Cost sum per episode, newest 50 episodes", kTraining, false, true, false},
           {"newest_violating_steps", "Violating steps per episode, newest 50 episodes", kTraining, false, true, false},
           {"worst_violation", "Largest violation so far", kTraining, true, true, false},
           {"cumulative_cost", "Total cost so far", kTraining, true, true, false},
           {"cumulative_violating_steps", "Violating steps so far", kTraining, true, true, false}}) {
    quantities.push_back(derived);
  }
  AddStatistics(v1::Statistic::LEARNING, "Safety and learning", &quantities);
  AddStatistics(v1::Statistic::CRITICS, "Critics and gradients", &quantities);
  quantities.push_back({"updates_per_second", "Updates per second", kSystem, false, true, false});
  AddStatistics(v1::Statistic::SYSTEM, kSystem, &quantities);
  for (const std::string& name : NamesOf(runs, &Run::cost_names)) {
    const std::string cost = absl::StrCat("Cost ", name, ": ");
    quantities.push_back(
        {"eval_max_violation." + name, cost + "largest violation per episode", "Evaluation", true, true, false});
    quantities.push_back({"eval_sum_cost." + name, cost + "sum per episode", "Evaluation", true, true, false});
    quantities.push_back(
        {"eval_violating_steps." + name, cost + "violating steps per episode", "Evaluation", true, true, false});
  }
  for (const std::string& name : NamesOf(runs, &Run::log_names)) {
    quantities.push_back({"eval_log." + name, absl::StrCat("Mean of ", name), "Evaluation", true, false, false});
    quantities.push_back(
        {"newest_log." + name, absl::StrCat("Mean of ", name, ", newest 50 episodes"), kTraining, false, false, false});
  }
  return quantities;
}

absl::StatusOr<json> ReportData(const std::vector<std::string>& folders, const MapMaker& map,
                                const ReportOptions& options) {
  json data;
  if (options.shown == Shown::kBest) data["rule"] = BestEpochRule();
  data["build"] = absl::StrCat("datacom ", Version(), " (", Revision(), ")");
  data["quantities"] = json::array();
  ASSIGN_OR_RETURN(const std::vector<Run> runs, ReadRuns(folders));
  const std::vector<Quantity> quantities = Quantities(runs);
  for (const Quantity& quantity : quantities) {
    data["quantities"].push_back({{"column", quantity.column},
                                  {"title", quantity.title},
                                  {"group", quantity.group},
                                  {"summary", quantity.summary},
                                  {"from_zero", quantity.from_zero},
                                  {"logarithmic", quantity.logarithmic}});
  }
  data["runs"] = json::array();
  for (const Run& run : runs) data["runs"].push_back(RunData(run, map));
  data["groups"] = json::array();
  std::vector<Group> groups = GroupRuns(runs, options.shown);
  if (options.each_member) groups = SplitMembers(groups);
  const std::vector<Look> looks = LooksOf(groups);
  size_t curves = 1;
  for (const Group& group : groups) {
    for (const Quantity& quantity : quantities) {
      curves += HasMembers(group, quantity.column) ? 1 + group.members.size() : 1;
    }
  }
  const size_t most = options.points > 0 ? std::max<size_t>(2, options.points / curves) : 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    json one = GroupData(groups[i], quantities, most);
    one["colour"] = looks[i].colour;
    one["dashes"] = looks[i].dashes;
    data["groups"].push_back(std::move(one));
  }
  data["baselines"] = json::array();
  for (const std::string& file : options.baselines) {
    ASSIGN_OR_RETURN(json baseline, BaselineData(file));
    baseline["colour"] = BaselineColour(data["baselines"].size());
    data["baselines"].push_back(std::move(baseline));
  }
  return data;
}

absl::StatusOr<Plotting> ReadPlotting() {
  const char* configured = std::getenv("DATACOM_CHART_JS");
  const std::string path = configured != nullptr
                               ? configured
                               : FindSharedFile("chart.min.js", "/usr/share/javascript/chart.js/chart.min.js");
  absl::StatusOr<std::string> script = ReadFile(path);
  if (!script.ok()) {
    return absl::NotFoundError(
        absl::StrCat("the plotting library ", path,
                     " is missing; install Debian's package libjs-chart.js, or name its file in DATACOM_CHART_JS"));
  }
  Plotting plotting;
  plotting.script = *std::move(script);
  const absl::StatusOr<std::string> licence =
      ReadFile(FindSharedFile("licenses/libjs-chart.js", "/usr/share/doc/libjs-chart.js/copyright"));
  if (licence.ok()) plotting.licence = *licence;
  if (plotting.licence.empty()) plotting.licence = plotting.script.substr(0, plotting.script.find("*/"));
  return plotting;
}

namespace {

// The script as it stands in a page.
std::string ScriptText(const Plotting& plotting) {
  return absl::StrReplaceAll(plotting.script, {{"</script", "<\\/script"}});
}

// " 'sha256-...'" for each element `name` of the page.
std::string Hashes(const std::string& html, const std::string& name) {
  const std::string begin = absl::StrCat("<", name, ">"), end = absl::StrCat("</", name, ">");
  std::string hashes;
  for (size_t at = html.find(begin); at != std::string::npos; at = html.find(begin, at)) {
    at += begin.size();
    const std::string hash = Sha256Hex(html.substr(at, html.find(end, at) - at));
    absl::StrAppend(&hashes, " 'sha256-", absl::Base64Escape(absl::HexStringToBytes(hash)), "'");
    at = html.find(end, at);
  }
  return hashes;
}

}  // namespace

std::string RenderPage(const json& data, const Plotting& plotting) {
  // Inside <script> only "</" and "<!--" could end or change the element.
  const std::string embedded = absl::StrReplaceAll(JsonText(data), {{"<", "\\u003c"}});
  return absl::StrReplaceAll(kPageTemplate, {{"{{STYLE}}", kStyle},
                                             {"{{PLOTTING}}", ScriptText(plotting)},
                                             {"{{LICENCE}}", EscapedMarkup(plotting.licence)},
                                             {"{{DATA}}", embedded},
                                             {"{{VERDICT}}", kVerdictScript},
                                             {"{{MAPS}}", kMapScript},
                                             {"{{SCRIPT}}", kScript}});
}

LivePage RenderLivePage(const Plotting& plotting) {
  LivePage page;
  page.html = absl::StrReplaceAll(kLiveTemplate, {{"{{STYLE}}", kStyle},
                                                  {"{{PLOTTING}}", ScriptText(plotting)},
                                                  {"{{LICENCE}}", EscapedMarkup(plotting.licence)},
                                                  {"{{VERDICT}}", kVerdictScript},
                                                  {"{{SCRIPT}}", kScript},
                                                  {"{{LIVE}}", kLiveScript}});
  page.policy = absl::StrCat(
      "default-src 'none'; script-src", Hashes(page.html, "script"), "; style-src", Hashes(page.html, "style"),
      "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; ", "frame-ancestors 'none'");
  return page;
}

absl::Status WriteReport(const std::vector<std::string>& folders, const std::string& path, const MapMaker& map,
                         const ReportOptions& options) {
  if (absl::EndsWith(path, ".pdf") || absl::EndsWith(path, ".png")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out: ", path, ": a report is a page, FILE.html, or a figure, FILE.svg"));
  }
  if (absl::EndsWith(path, ".svg")) {
    ASSIGN_OR_RETURN(const std::vector<Run> runs, ReadRuns(folders));
    return WriteOutputFile(path, RenderFigure(GroupRuns(runs, options.shown)));
  }
  ASSIGN_OR_RETURN(const json data, ReportData(folders, map, options));
  ASSIGN_OR_RETURN(const Plotting plotting, ReadPlotting());
  // A folder's own report replaces a link: the folder may be a stranger's, and no user has named the file.
  const bool own = folders.size() == 1 && path == absl::StrCat(folders.front(), "/report.html");
  return own ? WriteFileAtomically(path, RenderPage(data, plotting))
             : WriteOutputFile(path, RenderPage(data, plotting));
}

}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
