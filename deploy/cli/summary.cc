#include "deploy/cli/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/files.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/carried_task.h"
#include "common/config/experiment.h"
#include "common/records/checkpoint.h"
#include "common/records/csv.h"
#include "common/records/message_json.h"
#include "common/records/updates_made.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/sweep.h"
#include "deploy/report/groups.h"
#include "deploy/report/statistics.h"

namespace datacom::cli {
namespace {

// A shown column of progress.csv, its heading and decimals.
struct Shown {
  const char* column;
  const char* heading;
  int decimals;
};
constexpr Shown kShown[] = {
    {"env_steps", "steps", 0},
    {"eval_discounted_return", "eval J", 3},
    {"eval_sum_cost", "sum cost", 2},
    {"eval_violating_steps", "violating", 2},
    {"eval_success_rate", "success", 2},
    {"delta", "delta", 4},
    {"eval_max_violation", "violation", 3},
    {"eval_return", "return", 2},
    {"seed", "seed", 0},
    {"epoch", "epoch", 0},
    {"updates", "updates", 0},
    {"samples_per_insert", "spi", 3},
    {"lanes", "lanes", 0},
};

bool IsOnPolicy(const absl::StatusOr<v1::Experiment>& experiment) {
  const AlgorithmInfo* const info = experiment.ok() ? FindAlgorithm(experiment->algorithm()) : nullptr;
  return info != nullptr && info->on_policy;
}

std::string Cell(double value, int decimals) {
  return std::isnan(value) ? absl::StrFormat("%12s", "-") : absl::StrFormat("%12.*f", decimals, value);
}

// The same for the table of groups.
constexpr Shown kShownOfGroup[] = {
    {"eval_discounted_return", "eval J", 2},
    {"eval_max_violation", "max violation", 3},
    {"eval_sum_cost", "sum cost", 2},
    {"worst_violation", "worst in training", 3},
    {"cumulative_cost", "cost of training", 0},
    {"eval_violating_steps", "violating steps", 2},
    {"cumulative_violating_steps", "violating in train.", 0},
};

std::string CellOfGroup(const std::vector<double>& values, int decimals) {
  const report::Interval interval = report::MeanInterval(values);
  if (interval.count == 0) return "-";
  const std::string mean = absl::StrFormat("%.*f", decimals, interval.mean);
  return interval.count == 1 ? mean : absl::StrCat(mean, " +- ", absl::StrFormat("%.*f", decimals, interval.half));
}

// A line for each member with abandoned episodes: how many there were, and why the first one was.
std::string AbandonedEpisodes(const Csv& progress, const std::map<int, std::vector<size_t>>& members) {
  std::string text;
  for (const auto& [member, rows] : members) {
    const auto total = [&progress, &own = rows](const std::string& column) {
      double sum = 0;
      for (const size_t row : own) {
        const double number = progress.Number(row, column);
        sum += std::isnan(number) ? 0 : number;
      }
      return sum;
    };
    const double abandoned = total("train_abandoned");
    if (abandoned == 0) continue;
    absl::StrAppend(&text, "member ", member, ": ", abandoned, " of ", abandoned + total("train_episodes"),
                    " training episodes were abandoned, the first one because ",
                    ForTerminal(progress.Text(rows.back(), "abandoned_reason")), "\n");
  }
  return text;
}

// A cell of a CSV file: whole numbers stay whole, an empty cell and what is not finite is null.
nlohmann::json CellJson(const std::string& text) {
  uint64_t whole = 0;
  double number = 0;
  if (text.empty()) return nullptr;
  if (absl::SimpleAtoi(text, &whole)) return whole;
  if (!absl::SimpleAtod(text, &number)) return text;
  return std::isfinite(number) ? nlohmann::json(number) : nlohmann::json(nullptr);
}

// The fields of MemberProgress and all columns of the newest of the member's rows.
nlohmann::json MemberJson(const Csv& progress, const std::vector<size_t>& rows) {
  nlohmann::json member = MessageJson(v1::MemberProgress());
  for (auto& [key, value] : member.items()) value = nullptr;
  for (const std::string& column : progress.names()) member[column] = CellJson(progress.Text(rows.back(), column));
  if (!progress.has("train_episodes")) return member;
  double episodes = 0;
  for (const size_t row : rows) episodes += progress.Number(row, "train_episodes");
  if (std::isfinite(episodes)) member["episodes"] = static_cast<uint64_t>(episodes);
  return member;
}

void PutCheckpoint(const std::string& run_dir, nlohmann::json* run) {
  (*run)["checkpoint_update"] = nullptr;
  if (const std::optional<uint64_t> update = NewestCheckpoint(run_dir)) (*run)["checkpoint_update"] = *update;
}

// What the records say of all members together.
void PutRecords(const Csv& progress, nlohmann::json* run) {
  uint64_t update = 0;
  double seconds = 0;
  for (const auto& [member, rows] : RowsByMember(progress)) {
    (*run)["members"].push_back(MemberJson(progress, rows));
    const double updates = progress.Number(rows.back(), "updates");
    if (updates > 0) update = std::max(update, static_cast<uint64_t>(updates));
    seconds = std::max(seconds, progress.Number(rows.back(), "wall_seconds"));
  }
  if (progress.has("updates")) (*run)["update"] = update;
  if (progress.has("wall_seconds")) (*run)["elapsed_seconds"] = seconds;
}

}  // namespace

absl::StatusOr<std::string> GroupTable(const std::vector<std::string>& folders, int width) {
  ASSIGN_OR_RETURN(const std::vector<report::Run> runs, report::ReadRuns(folders));
  const std::vector<report::Group> groups = report::GroupRuns(runs);
  std::vector<TableColumn> table = {{"group"}, {" members"}};
  size_t longest = sizeof "group";
  for (const report::Group& group : groups) longest = std::max(longest, group.title.size());
  for (const report::Group& group : groups) {
    table[0].push_back(group.title + std::string(longest - group.title.size(), ' '));
    table[1].push_back(absl::StrFormat(" %7d", group.members.size()));
  }
  table[0][0].resize(longest, ' ');
  for (const Shown& shown : kShownOfGroup) {
    TableColumn cells = {absl::StrFormat(" %19s", shown.heading)};
    for (const report::Group& group : groups) {
      cells.push_back(absl::StrFormat(" %19s", CellOfGroup(report::ShownValues(group, shown.column), shown.decimals)));
    }
    table.push_back(std::move(cells));
  }
  TableColumn middles = {absl::StrFormat(" %26s", "J inter-quartile mean")},
              times = {absl::StrFormat(" %10s", "wall time")};
  for (const report::Group& group : groups) {
    const report::InterquartileMean middle =
        report::ComputeInterquartileMean(report::ShownValues(group, "eval_discounted_return"));
    const std::vector<double> seconds = report::ShownValues(group, "wall_seconds");
    middles.push_back(
        absl::StrFormat(" %26s", absl::StrFormat("%.2f [%.2f, %.2f]", middle.mean, middle.low, middle.high)));
    times.push_back(absl::StrFormat(" %10s", FormatDuration(*std::max_element(seconds.begin(), seconds.end()))));
  }
  table.push_back(std::move(middles));
  table.push_back(std::move(times));
  return JoinColumns(table, width) +
         "+-: 95 % interval of the mean over members (Student t); [..]: 95 % bootstrap interval\n";
}

absl::StatusOr<std::string> FinalTable(const std::string& run_dir, int width) {
  ASSIGN_OR_RETURN(const Csv progress, ReadRecords(run_dir + "/progress.csv"));
  const absl::StatusOr<v1::Experiment> experiment = LoadExperiment(ExperimentFile(run_dir), "");
  const bool success = !experiment.ok() || DefinesSuccess(experiment->task_options());
  // Of an on-policy algorithm an update is an epoch, so that their number per row says nothing.
  const auto number = [&](size_t row, const std::string& column) {
    const bool unknown =
        (column == "eval_success_rate" && !success) || (column == "samples_per_insert" && IsOnPolicy(experiment));
    return unknown ? std::numeric_limits<double>::quiet_NaN() : progress.Number(row, column);
  };
  const std::map<int, std::vector<size_t>> members = RowsByMember(progress);
  const bool several = members.size() > 1;
  std::vector<TableColumn> table = {{"member"}};
  for (const auto& [member, rows] : members) table.front().push_back(absl::StrFormat("%6d", member));
  if (several) table.front().push_back("  mean");
  TableColumn status = {absl::StrFormat(" %9s", "state")};
  for (const auto& [member, rows] : members) {
    status.push_back(absl::StrFormat(" %9s", ForTerminal(progress.Text(rows.back(), "status"))));
  }
  table.push_back(std::move(status));
  for (const Shown& shown : kShown) {
    TableColumn cells = {absl::StrFormat("%12s", shown.heading)};
    double sum = 0;
    for (const auto& [member, rows] : members) {
      const double value = number(rows.back(), shown.column);
      cells.push_back(Cell(value, shown.decimals));
      sum += value;
    }
    const bool has_mean = several && std::string(shown.column) != "seed";
    cells.push_back(has_mean ? Cell(sum / members.size(), shown.decimals) : "");
    table.push_back(std::move(cells));
  }
  return JoinColumns(table, width) + WrapLines(AbandonedEpisodes(progress, members), width);
}

std::string RepeatedWorkOf(const std::string& run_dir) {
  const std::string folder = run_dir + "/checkpoints";
  const absl::StatusOr<UpdatesMade> made = ReadUpdatesMade(UpdatesMadeFile(run_dir));
  const absl::StatusOr<uint32_t> incarnation = LastIncarnation(folder + "/incarnation");
  const std::optional<uint64_t> newest = NewestCheckpoint(run_dir);
  if (!made.ok() || !incarnation.ok() || !newest) return "";
  const absl::StatusOr<Checkpoint> checkpoint = CheckpointStore(folder).Load(*newest);
  if (!checkpoint.ok()) return "";
  const uint64_t kept = checkpoint->learner.pretrain_update() + checkpoint->learner.update();
  std::string text = RepeatedWork(made->repeated, kept, *incarnation);
  if (made->reached > kept) {
    absl::StrAppend(&text, "a resume repeats ", FormatCount(made->reached - kept),
                    " updates, which no checkpoint holds\n");
  }
  return text;
}

absl::Status CheckStepsLeft(const std::string& run_dir, uint64_t env_steps) {
  const std::string file = run_dir + "/progress.csv";
  const absl::StatusOr<Csv> progress = ReadRecords(file);
  // The learner cuts what follows the lengths in its checkpoint, damaged lines included; the replay refuses too few
  // steps.
  if (!progress.ok()) return absl::OkStatus();
  for (const auto& [member, rows] : RowsByMember(*progress)) {
    const double done = progress->Number(rows.back(), "env_steps");
    if (done > static_cast<double>(env_steps)) {
      return absl::InvalidArgumentError(absl::StrCat("--steps ", env_steps, ": member ", member, " has already made ",
                                                     static_cast<uint64_t>(done), " steps; use --steps ",
                                                     static_cast<uint64_t>(done), " or more"));
    }
  }
  return absl::OkStatus();
}

nlohmann::json AnsweredRunJson(const ProgressView& view, const Answers& answers) {
  nlohmann::json run = ProgressJson(view);
  run["run"] = view.title;
  run["replay"] = run["learner"] = nullptr;
  if (answers.learner) run["learner"] = MessageJson(*answers.learner);
  if (answers.replay) {
    nlohmann::json& replay = run["replay"] = MessageJson(*answers.replay);
    for (const v1::MemberInfo& member : answers.replay->members()) replay["members"].push_back(MessageJson(member));
    for (const v1::SessionInfo& session : answers.replay->sessions()) {
      replay["sessions"].push_back(MessageJson(session));
    }
  }
  PutCheckpoint(view.title, &run);
  return run;
}

absl::StatusOr<nlohmann::json> RecordedRunJson(const std::string& run_dir) {
  ASSIGN_OR_RETURN(v1::Experiment experiment, LoadExperiment(ExperimentFile(run_dir), ""));
  experiment = ResolveExperiment(std::move(experiment));
  const RunState state = ReadRunState(run_dir, experiment);
  nlohmann::json run = ProgressJson(ProgressView());
  for (auto& [key, value] : run.items()) value = nullptr;  // no process says anything
  run["run"] = run_dir;
  run["replay"] = run["learner"] = nullptr;
  run["waiting"] = "";
  run["members"] = nlohmann::json::array();
  run["actors"] = 0;
  run["steps_per_second"] = run["updates_per_second"] = 0;
  run["env_steps"] = state.env_steps;
  run["goal_steps"] = experiment.run().env_steps();
  run["done"] = state.done;
  run["target_update"] = UpdatesOf(experiment).LastUpdate();
  run["pretrain_target"] = experiment.pretrain().updates();
  if (const auto made = ReadUpdatesMade(UpdatesMadeFile(run_dir)); made.ok()) run["repeated_updates"] = made->repeated;
  PutCheckpoint(run_dir, &run);
  const std::string file = run_dir + "/progress.csv";
  const bool recorded = FileExists(file);
  if (recorded) {
    ASSIGN_OR_RETURN(const Csv progress, ReadRecords(file));
    PutRecords(progress, &run);
  }
  const bool begun = recorded || !run["checkpoint_update"].is_null();
  run["state"] = state.complete ? "complete" : begun ? "interrupted" : "not started";
  if (state.complete) run["eta_seconds"] = 0;
  return run;
}

void PrintJson(const nlohmann::json& json) { std::printf("%s\n", JsonText(json).c_str()); }

void PrintResult(const absl::StatusOr<nlohmann::json>& result) {
  if (result.ok()) PrintJson({{"result", *result}});
  if (!result.ok()) std::fputs(ErrorJson(result.status().message(), ExitCode(result.status())).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
