#include "deploy/report/groups.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/carried_task.h"
#include "common/config/experiment.h"
#include "common/records/best_epoch.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task.pb.h"

namespace datacom::report {
namespace {

namespace fs = std::filesystem;

// What follows from the run's experiment.
void Describe(Run* run) {
  const v1::TaskOptions& options = run->experiment.task_options();
  const auto& named = options.GetExtension(v1::python_task).cost();
  run->cost_names.assign(named.begin(), named.end());
  const auto& costs = options.GetExtension(v1::text_task).definition().cost();
  for (int i = 0; i < costs.size() && costs.size() > 1; ++i) run->cost_names.push_back(costs[i].name());
  for (const v1::Log& log : options.GetExtension(v1::text_task).definition().log())
    run->log_names.push_back(log.name());
  run->defines_success = DefinesSuccess(options);
}

// Curves are tables of steps and members. Of a real run all members have the same steps.
absl::Status CheckSize(const Csv& progress, const std::string& file) {
  constexpr size_t kMost = 1 << 24;  // numbers
  std::set<std::string> steps;
  for (size_t row = 0; row < progress.rows(); ++row) steps.insert(progress.Text(row, "env_steps"));
  const size_t members = RowsByMember(progress).size();
  if (members * steps.size() <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file, " has ", members, " members at ", steps.size(),
                                                 " different env_steps; at most ", kMost, " numbers make a curve"));
}

absl::StatusOr<Run> ReadRun(const std::string& folder) {
  Run run;
  const std::string file = folder + "/experiment.textproto";
  if (!FileExists(file)) {
    return NotARunFolder(folder);
  }
  run.folder = NormalPath(folder);
  ASSIGN_OR_RETURN(run.experiment, LoadExperiment(file, ExperimentFolder()));
  Describe(&run);
  ASSIGN_OR_RETURN(run.progress, ReadRecords(folder + "/progress.csv"));
  if (run.progress.rows() == 0) return absl::NotFoundError(absl::StrCat(folder, "/progress.csv has no rows yet"));
  RETURN_IF_ERROR(CheckSize(run.progress, folder + "/progress.csv"));
  absl::StatusOr<Csv> episodes = ReadRecords(folder + "/episodes.csv");
  if (!episodes.ok() && !absl::IsNotFound(episodes.status())) return episodes.status();
  if (episodes.ok()) run.episodes = *std::move(episodes);
  run.build = ReadShown(folder + "/build.txt", /*most=*/1 << 20).value_or("");
  return run;
}

// True when a run has at least one row, and when its records cannot be read: reading them later reports the error.
bool HasRecords(const std::string& folder) {
  const absl::StatusOr<Csv> progress = ReadRecords(folder + "/progress.csv");
  return progress.ok() ? progress->rows() > 0 : !absl::IsNotFound(progress.status());
}

// `folder` itself, or the runs of the sweep in it that have records.
absl::StatusOr<std::vector<std::string>> RecordedFolders(const std::string& folder) {
  ASSIGN_OR_RETURN(std::vector<std::string> folders, RunFolders(folder));
  if (!IsSweepFolder(folder)) return folders;
  std::erase_if(folders, [](const std::string& run) { return !HasRecords(run); });
  if (folders.empty()) return absl::NotFoundError(absl::StrCat("no run of the sweep in ", folder, " has records yet"));
  return folders;
}

std::string LabelOf(const Run& run, int member) {
  return member < run.experiment.members_size() ? run.experiment.members(member).label() : "";
}

// The settings of an experiment's text, "hyper.slack_beta: 20", without its members, files and texts for people.
std::set<std::string> SettingsOf(const std::string& experiment) {
  std::set<std::string> settings;
  std::vector<std::string> path;
  for (const absl::string_view line : absl::StrSplit(experiment, '\n', absl::SkipEmpty())) {
    const absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
    if (text == "}") {
      path.pop_back();
    } else if (absl::EndsWith(text, " {")) {
      path.emplace_back(absl::StripSuffix(text, " {"));
    } else if (path.empty() ? !absl::StartsWith(text, "name:") && !absl::StartsWith(text, "description:")
                            : path[0] != "members" && (path.size() < 2 || path[1][0] != '[')) {  // no carried task
      settings.insert(absl::StrCat(absl::StrJoin(path, "."), path.empty() ? "" : ".", text));
    }
  }
  return settings;
}

// What distinguishes the runs of groups with one title: the settings that not all of them have, few and short enough to
// read. Empty for a run that has none.
std::map<std::string, std::string> Distinctions(const std::vector<const Run*>& runs) {
  constexpr size_t kMostSettings = 3;
  std::map<std::string, std::set<std::string>> own;  // by folder
  std::map<std::string, size_t> uses;
  for (const Run* run : runs) own[run->folder] = SettingsOf(PrintExperiment(run->experiment));
  for (const auto& [folder, settings] : own) {
    for (const std::string& setting : settings) ++uses[setting];
  }
  std::map<std::string, std::string> distinctions;
  std::set<std::string> distinct;
  for (auto& [folder, settings] : own) {
    std::erase_if(settings, [&](const std::string& setting) { return uses[setting] == own.size(); });
    if (settings.size() <= kMostSettings) distinctions[folder] = absl::StrJoin(settings, ", ");
    distinct.insert(distinctions[folder]);
  }
  if (distinct.size() < own.size()) distinctions.clear();  // they do not tell the runs apart
  return distinctions;
}

// A title is the label, after the experiment's name when there are several experiments. Equal titles get the settings
// in which their runs differ, or else the folder.
void SetTitles(std::vector<Group>* groups) {
  std::set<std::string> names;
  for (const Group& group : *groups) names.insert(group.run().experiment.name());
  std::map<std::string, int> uses;
  for (Group& group : *groups) {
    const std::string& name = group.run().experiment.name();
    const std::string label = LabelOf(group.run(), group.members[0].member);
    if (label.empty() || label == name) {
      group.title = name;
    } else {
      group.title = names.size() == 1 ? label : absl::StrCat(name, ", ", label);
    }
    ++uses[group.title];
  }
  std::map<std::string, std::vector<const Run*>> equal;
  for (const Group& group : *groups) equal[group.title].push_back(&group.run());
  for (Group& group : *groups) {
    if (uses[group.title] == 1) continue;
    const std::map<std::string, std::string> distinctions = Distinctions(equal[group.title]);
    const auto own = distinctions.find(group.run().folder);
    const bool told = own != distinctions.end() && !own->second.empty();
    absl::StrAppend(&group.title, " (", told ? own->second : group.run().folder, ")");
  }
}

// Index in `rows` of the row that tables show.
size_t ShownRow(const Run& run, int member, const std::vector<size_t>& rows, Shown shown) {
  if (shown == Shown::kBest) {
    const absl::StatusOr<size_t> best = BestRow(run.progress, rows, CostBudget(run.experiment, member));
    if (best.ok()) return std::find(rows.begin(), rows.end(), *best) - rows.begin();
  }
  return rows.size() - 1;
}

}  // namespace

bool IsSweepFolder(const std::string& folder) { return FileExists(absl::StrCat(folder, "/", kPopulationsFile)); }

std::optional<std::string> ReadShown(const std::string& path, uint64_t most) {
  std::error_code error;
  if (fs::is_symlink(path, error)) return std::nullopt;
  absl::StatusOr<std::string> content = ReadFile(path, most);
  return content.ok() ? std::optional(*std::move(content)) : std::nullopt;
}

absl::StatusOr<std::vector<std::string>> RunFolders(const std::string& folder) {
  if (!IsSweepFolder(folder)) return std::vector<std::string>{folder};
  ASSIGN_OR_RETURN(const std::string names, ReadFile(absl::StrCat(folder, "/", kPopulationsFile)));
  std::vector<std::string> folders;
  for (const absl::string_view name : absl::StrSplit(names, '\n', absl::SkipEmpty())) {
    folders.push_back(absl::StrCat(folder, "/", name));
  }
  return folders;
}

absl::StatusOr<std::vector<Run>> ReadRuns(const std::vector<std::string>& folders) {
  std::vector<Run> runs;
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(const std::vector<std::string> own, RecordedFolders(folder));
    for (const std::string& run_folder : own) {
      ASSIGN_OR_RETURN(Run run, ReadRun(run_folder));
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

std::vector<Group> GroupRuns(const std::vector<Run>& runs, Shown shown) {
  std::vector<Group> groups;
  // By folder, experiment, settings and label: an experiment of a sweep may be trained again with other settings.
  std::map<std::tuple<std::string, std::string, std::string, std::string>, size_t> index;
  for (const Run& run : runs) {
    std::map<int, std::vector<size_t>> episodes;
    if (run.episodes) episodes = RowsByMember(*run.episodes);
    // Without those that a resume may change: a sweep that gets more steps trains one run after the other.
    const std::string settings = absl::StrJoin(SettingsOf(FixedSettings(run.experiment)), "\n");
    size_t unlabelled = groups.size();  // a run named twice is shown twice
    for (const auto& [member, rows] : RowsByMember(run.progress)) {
      const std::string label = LabelOf(run, member);
      size_t at = unlabelled;
      if (!label.empty()) {
        const std::string sweep = fs::path(run.folder).parent_path().string();
        at = index.emplace(std::tuple(sweep, run.experiment.name(), settings, label), groups.size()).first->second;
      }
      if (at == groups.size()) groups.emplace_back();
      groups[at].members.push_back({&run, member, rows, episodes[member], ShownRow(run, member, rows, shown)});
    }
  }
  SetTitles(&groups);
  return groups;
}

std::vector<Group> SplitMembers(const std::vector<Group>& groups) {
  std::vector<Group> split;
  for (const Group& group : groups) {
    for (const RunMember& member : group.members) {
      const std::string seed = member.run->progress.Text(member.rows.back(), "seed");
      split.push_back({absl::StrCat(group.title, ", seed ", seed), {member}});
    }
  }
  return split;
}

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kNewest = 50;  // training episodes that the paper averages over

// One value per progress row of a member.
std::vector<double> UpdatesPerSecond(const Csv& progress, const std::vector<size_t>& rows) {
  std::vector<double> values(rows.size(), kNone);
  for (size_t i = 1; i < rows.size(); ++i) {
    const double seconds = progress.Number(rows[i], "wall_seconds") - progress.Number(rows[i - 1], "wall_seconds");
    const double updates = progress.Number(rows[i], "updates") - progress.Number(rows[i - 1], "updates");
    if (seconds > 0 && updates > 0) values[i] = updates / seconds;
  }
  return values;
}

using Ended = std::vector<std::pair<double, double>>;  // training episodes: environment steps, value

// Returns value(episodes, count) for each progress row: `column` of a member's training episodes in order, and how many
// of them had ended by then.
template <typename Value>
std::vector<double> AfterEpisodes(const RunMember& member, const std::string& column, Value value) {
  std::vector<double> values(member.rows.size(), kNone);
  if (!member.run->episodes || !member.run->episodes->has(column)) return values;
  const Csv& episodes = *member.run->episodes;
  Ended ended;
  for (const size_t row : member.episode_rows) {
    ended.emplace_back(episodes.Number(row, "env_steps"), episodes.Number(row, column));
  }
  // The order looks only at the steps: a cell without a value is NaN, which has no place in an order.
  std::stable_sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t count = 0;
  for (size_t i = 0; i < member.rows.size(); ++i) {
    const double until = member.run->progress.Number(member.rows[i], "env_steps");
    while (count < ended.size() && ended[count].first <= until) ++count;
    values[i] = value(ended, count);
  }
  return values;
}

// `fold` over all training episodes that had ended, starting from 0.
template <typename Fold>
std::vector<double> OverEpisodes(const RunMember& member, const std::string& column, Fold fold) {
  return AfterEpisodes(member, column, [fold, value = 0.0, done = size_t{0}](const Ended& ended, size_t count) mutable {
    for (; done < count; ++done) value = fold(value, ended[done].second);
    return value;
  });
}

// The mean of the newest 50 training episodes, as the paper reports on-policy methods.
std::vector<double> OfNewestEpisodes(const RunMember& member, const std::string& column) {
  return AfterEpisodes(member, column, [](const Ended& ended, size_t count) {
    const size_t newest = std::min(kNewest, count);
    double sum = 0;
    for (size_t i = count - newest; i < count; ++i) sum += ended[i].second;
    return newest > 0 ? sum / static_cast<double>(newest) : kNone;
  });
}

}  // namespace

std::vector<std::pair<double, double>> MemberCurve(const RunMember& member, const std::string& quantity) {
  const Csv& progress = member.run->progress;
  std::vector<double> values;
  absl::string_view column = quantity;
  if (quantity == "updates_per_second") {
    values = UpdatesPerSecond(progress, member.rows);
  } else if (quantity == "cumulative_cost") {
    values = OverEpisodes(member, "sum_cost", [](double sum, double cost) { return sum + cost; });
  } else if (quantity == "cumulative_violating_steps") {
    values = OverEpisodes(member, "violating_steps", [](double sum, double steps) { return sum + steps; });
  } else if (quantity == "worst_violation") {
    values = OverEpisodes(member, "max_violation", [](double worst, double one) { return std::max(worst, one); });
  } else if (absl::ConsumePrefix(&column, "newest_")) {
    values = OfNewestEpisodes(member, std::string(column));
  } else {
    for (const size_t row : member.rows) values.push_back(progress.Number(row, quantity));
  }
  std::vector<std::pair<double, double>> curve;
  for (size_t i = 0; i < values.size(); ++i) {
    curve.emplace_back(progress.Number(member.rows[i], "env_steps"), values[i]);
  }
  return curve;
}

Series GroupSeries(const Group& group, const std::string& quantity) {
  std::map<double, std::vector<double>> at;  // each member's value, by environment steps
  for (size_t i = 0; i < group.members.size(); ++i) {
    for (const auto& [steps, value] : MemberCurve(group.members[i], quantity)) {
      at.try_emplace(steps, group.members.size(), kNone).first->second[i] = value;
    }
  }
  Series series;
  for (const auto& [steps, values] : at) {
    const Interval interval = MeanInterval(values);
    if (interval.count == 0) continue;
    series.steps.push_back(steps);
    series.values.push_back(interval);
    series.members.push_back(values);
  }
  return series;
}

std::vector<double> ShownValues(const Group& group, const std::string& quantity) {
  std::vector<double> values;
  const bool of_all_training = absl::StartsWith(quantity, "cumulative_") || quantity == "worst_violation";
  for (const RunMember& member : group.members) {
    const auto curve = MemberCurve(member, quantity);
    values.push_back((of_all_training ? curve.back() : curve[member.shown]).second);
  }
  return values;
}

}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
