#include "deploy/cli/run_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/records/csv.h"
#include "common/records/message_json.h"
#include "common/records/updates_made.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/sweep.h"

namespace datacom::cli {
namespace {

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
  run["done"] = std::min(1.0, static_cast<double>(state.env_steps) / static_cast<double>(experiment.run().env_steps()));
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

void PrintJson(const nlohmann::json& json) {
  std::printf("%s\n", JsonText(json).c_str());
  std::fflush(stdout);
}

void PrintResult(const absl::StatusOr<nlohmann::json>& result) {
  if (result.ok()) return PrintJson({{"result", *result}});
  std::fputs(ErrorJson(result.status().message(), ExitCode(result.status())).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
