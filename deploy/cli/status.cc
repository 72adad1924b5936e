// datacom status: which processes run, which of them wait, and for what.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/files.h"
#include "common/base/flag_checks.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/rpc/assignment.h"
#include "common/rpc/security.h"
#include "deploy/cli/answers.h"
#include "deploy/cli/archiving.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/summary.h"
#include "deploy/cli/sweep.h"
#include "deploy/cli/verbs.h"
#include "deploy/report/groups.h"

namespace datacom::cli {
namespace {

constexpr int kMaxMembers = 128;

void PrintReplay(const v1::ReplayInfo& replay) {
  PrintWrapped(absl::StrFormat("replay %s, up %s: learner %s, %d actor session%s%s\n", replay.build(),
                               FormatDuration(replay.uptime_seconds()),
                               replay.learner_connected() ? "connected" : "absent", replay.sessions_size(),
                               replay.sessions_size() == 1 ? "" : "s", replay.draining() ? ", draining" : ""));
  std::vector<TableColumn> table = {{"member"},       {" lanes"},          {"    inserted"}, {"     allowed"},
                                    {" outstanding"}, {"  failures"},      {"  episodes"},   {"  rejected"},
                                    {" duplicates"},  {"  samples/insert"}};
  for (const v1::MemberInfo& member : replay.members()) {
    const std::string cells[] = {
        absl::StrCat(member.member()),        absl::StrCat(member.lanes()),
        FormatCount(member.inserted()),       FormatCount(member.allowed()),
        FormatCount(member.outstanding()),    FormatCount(member.failures()),
        FormatCount(member.episodes()),       FormatCount(member.rejected_rows()),
        FormatCount(member.duplicate_rows()), absl::StrFormat("%.4f", member.samples_per_insert())};
    for (size_t i = 0; i < table.size(); ++i) {
      table[i].push_back(absl::StrFormat("%*s", static_cast<int>(table[i].front().size()), cells[i]));
    }
  }
  std::printf("%s", JoinColumns(table, TerminalWidth(0)).c_str());
  for (const v1::SessionInfo& session : replay.sessions()) {
    PrintWrapped(absl::StrFormat("session %u: %s, %u environments, members %s; %s rows, %s\n", session.session(),
                                 session.actor(), session.environments(), DescribeMembers(session.assignment()),
                                 FormatCount(session.rows()), session.connected() ? "connected" : "disconnected"));
  }
}

ProgressView ViewOf(const std::string& title, const Answers& answers) {
  ProgressView view = MakeProgress(answers.replay, answers.learner);
  view.title = title;
  if (!answers.replay) return view;
  view.elapsed_seconds = answers.replay->uptime_seconds();
  view.actors = answers.replay->sessions_size();
  const AlgorithmInfo* algorithm = FindAlgorithm(answers.replay->algorithm());
  view.learns_delta = algorithm == nullptr || algorithm->learns_delta;
  return view;
}

void PrintAnswers(const std::string& title, const Answers& answers, bool json) {
  const ProgressView view = ViewOf(title, answers);
  if (json) return PrintJson(AnsweredRunJson(view, answers));
  std::printf("%s", RenderTable(view, TerminalWidth(0), kMaxMembers, /*wrap=*/true).c_str());
  if (answers.learner) {
    const v1::LearnerInfo& learner = *answers.learner;
    PrintWrapped(
        RepeatedWork(learner.repeated_updates(), learner.pretrain_update() + learner.update(), learner.incarnation()));
  } else {
    std::printf("learner: no answer\n");
  }
  if (answers.replay) {
    PrintReplay(*answers.replay);
    for (const std::string& wait : OtherWaits(view, *answers.replay))
      PrintWrapped(absl::StrCat("waiting: ", wait, "\n"));
  } else {
    std::printf("replay: no answer\n");
  }
}

// A run that does not run.
absl::Status PrintRecords(const std::string& run_dir) {
  const bool complete = ReadRunState(run_dir).complete;
  PrintWrapped(absl::StrCat(run_dir, complete ? ": complete\n" : ": not running\n"));
  if (const std::optional<uint64_t> update = NewestCheckpoint(run_dir); update && !complete) {
    PrintWrapped(absl::StrCat("newest checkpoint, where --resume continues: update ", FormatCount(*update), "\n"));
  }
  PrintWrapped(DescribeArchive(run_dir));
  PrintWrapped(RepeatedWorkOf(run_dir));
  if (!FileExists(run_dir + "/progress.csv")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string table, FinalTable(run_dir, TerminalWidth(0)));
  PrintWrapped("values of the last evaluated epoch:\n");
  std::printf("%s", table.c_str());
  return absl::OkStatus();
}

absl::Status StatusOfFolder(const std::string& run_dir, const Security& security, bool json) {
  if (report::IsSweepFolder(run_dir)) return PrintSweepStatus(run_dir, json);
  if (!FileExists(ExperimentFile(run_dir))) return NotARunFolder(run_dir);
  ASSIGN_OR_RETURN(const Answers answers, AskRun(run_dir, security));
  if (answers.replay || answers.learner) {
    PrintAnswers(run_dir, answers, json);
    if (!json) PrintWrapped(DescribeArchive(run_dir));
    return absl::OkStatus();
  }
  if (!json) return PrintRecords(run_dir);
  ASSIGN_OR_RETURN(const nlohmann::json run, RecordedRunJson(run_dir));
  PrintJson(run);
  return absl::OkStatus();
}

absl::Status StatusOf(const std::string& target, const std::string& tls, bool json) {
  ASSIGN_OR_RETURN(const Security security, LoadSecurity(tls));
  if (IsFolder(target)) return StatusOfFolder(target, security, json);
  if (!Address(1)(target).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(target, " is neither a folder nor an address HOST:PORT with a port from 1 to 65535",
                     "; e.g. datacom status runs/first, or datacom status 127.0.0.1:7000"));
  }
  const Answers answers = Ask(target, target, security);
  if (!answers.replay && !answers.learner) {
    return absl::UnavailableError(absl::StrCat(
        "neither a replay nor a learner answers at ", target, "; RUN_DIR/cluster/replay.address has the ",
        "address of a run on this machine; a run with --tls needs: datacom status ", target, " --tls FOLDER"));
  }
  PrintAnswers(target, answers, json);
  return absl::OkStatus();
}

}  // namespace

void AddStatus(CLI::App* app, int* exit_code) {
  auto target = std::make_shared<std::string>();
  auto tls = std::make_shared<std::string>();
  CLI::App* verb = app->add_subcommand(
      "status", "Shows which processes of a run are up and what they wait for; how far the runs of a sweep are");
  verb->add_option("target", *target, "folder of a run or sweep, or address host:port of a replay or learner")
      ->required()
      ->check(NotEmpty);
  verb->add_option("--tls", *tls, "folder with ca.crt, tls.crt, tls.key and token, for a run that uses TLS")
      ->check(NotEmpty);
  verb->footer("Example: datacom status runs/five");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "one JSON object, for programs");
  verb->callback([target, tls, json, exit_code] { *exit_code = Finish(StatusOf(*target, *tls, *json), *json); });
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
