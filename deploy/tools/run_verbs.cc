// export-dataset and verify.
#include <signal.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/machine.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/config/experiment.h"
#include "common/records/dataset.h"
#include "common/records/message_json.h"
#include "deploy/tools/archive/archive.h"
#include "deploy/tools/export_dataset.h"
#include "deploy/tools/verbs.h"
#include "deploy/tools/verify/verify.h"
#include "nlohmann/json.hpp"
#include "replay/settings.h"

namespace datacom::tools {
namespace {

// An archive or a run of a stranger may have any names.
void Print(const std::string& text) { std::fputs(ForTerminal(text).c_str(), stdout); }

// Arguments of export-dataset.
struct ExportFlags {
  std::string run_dir, members, rows;  // not parsed yet
  ExportOptions options;
};

// "2000-12000" -> rows [2000, 12000); "2000-" -> all rows from 2000.
absl::Status ParseRows(const std::string& text, ExportOptions* options) {
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  const bool open = ends.size() == 2 && ends[1].empty();
  if (ends.size() == 2 && absl::SimpleAtoi(ends[0], &options->first) &&
      (open || (absl::SimpleAtoi(ends[1], &options->end) && options->end > options->first))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--rows: \"", text, "\" is not a range such as 0-50000 (end excluded) or 50000-"));
}

absl::Status RunExport(ExportFlags flags) {
  const std::string file = flags.run_dir + "/experiment.textproto";
  if (!FileExists(file)) return NotARunFolder(flags.run_dir);
  ASSIGN_OR_RETURN(const v1::Experiment experiment, replay::ReadExperiment(file));
  ASSIGN_OR_RETURN(const replay::ReplaySetup setup, replay::SetUp(experiment));
  flags.options.rings = flags.run_dir + "/replay";
  if (!flags.members.empty()) {
    ASSIGN_OR_RETURN(flags.options.members, ParseSeeds(flags.members));
  }
  if (!flags.rows.empty()) RETURN_IF_ERROR(ParseRows(flags.rows, &flags.options));
  ASSIGN_OR_RETURN(const v1::DatasetManifest manifest, ExportDataset(flags.options, experiment, setup.schema));
  const bool open = flags.options.end == ExportOptions().end;
  for (const v1::DatasetMember& member : manifest.members()) {
    const bool fewer = flags.options.first < member.first_row() || (!open && member.end_row() < flags.options.end);
    Print(absl::StrFormat("member %u, seed %u: rows %u-%u%s, %u whole episodes, %u rows with cost > 0\n",
                          member.member(), member.seed(), member.first_row(), member.end_row(),
                          fewer ? " (all of --rows that it holds)" : "", member.episodes(), member.failures()));
  }
  Print(absl::StrFormat("dataset of %u rows of task %s: %s\n", RowsOf(manifest), experiment.task(), flags.options.out));
  return absl::OkStatus();
}

// The exit code: 0 sound, 1 damaged, 2 not a run folder.
int RunVerify(const std::string& run_dir, bool repair) {
  ReturnLargeBlocks(/*threshold_bytes=*/128 << 10);
  const absl::StatusOr<verify::Verification> verified = verify::VerifyRun(run_dir, repair);
  if (!verified.ok()) return Finish(verified.status(), /*json=*/false, kExitFailure);
  std::fputs(WrapLines(verified->text, TerminalWidth(0)).c_str(), stdout);
  return verified->sound ? kExitOk : kExitFailure;
}

absl::Status Show(const std::string& place, bool json) {
  ASSIGN_OR_RETURN(const auto store, archive::Store::Open(place));
  ASSIGN_OR_RETURN(const archive::Newest newest, archive::FindNewest(store.get(), place));
  if (json) {
    nlohmann::json object = {{"place", place}, {"run_id", nullptr}, {"update", nullptr}};
    if (newest.last > 0) object.update({{"run_id", newest.cut.run_id()}, {"update", newest.cut.update()}});
    std::printf("%s\n", JsonText(object).c_str());
  } else if (newest.last == 0) {
    Print(place + " holds no run\n");
  } else {
    Print(absl::StrFormat("%s holds update %u of run %s\n", place, newest.cut.update(), newest.cut.run_id()));
  }
  return absl::OkStatus();
}

struct CopyFlags {
  std::string from, to;
  bool own = false, json = false;
  archive::CopyOptions options;
};

absl::Status Copy(const CopyFlags& flags) {
  const std::string &from = flags.from, &to = flags.to;
  if (to.empty()) return Show(from, flags.json);
  if (FileExists(from + "/experiment.textproto")) {
    if (flags.own)
      return absl::InvalidArgumentError("--own: " + from + " is a run folder; name the place of an archive");
    ASSIGN_OR_RETURN(const archive::Copied copied, archive::CopyRun(from, to, flags.options));
    if (flags.options.only_check) return absl::OkStatus();
    Print(absl::StrFormat("%s holds update %u of %s: copied %.1f of %.1f MB, in %u objects\n", to, copied.update, from,
                          1e-6 * static_cast<double>(copied.bytes), 1e-6 * static_cast<double>(copied.all_bytes),
                          copied.objects));
    if (!copied.kept.value_or("").empty()) Print("old parts stay: " + *copied.kept + "\n");
    return absl::OkStatus();
  }
  if (flags.options.only_check) return NotARunFolder(from);
  if (flags.own) DieWithParent(SIGKILL);  // a `train` that starts again makes the copy again
  ASSIGN_OR_RETURN(const v1::ArchiveCut cut, archive::Restore(from, to, flags.own));
  Print(absl::StrFormat("%s is update %u of run %s, from %s\n", to, cut.update(), cut.run_id(), from));
  return absl::OkStatus();
}

}  // namespace

void AddExportDataset(CLI::App* app, int* exit_code) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* verb = app->add_subcommand("export-dataset", kAboutExportDataset);
  verb->add_option("run_dir", flags->run_dir, "Run folder")->required();
  verb->add_option("--out", flags->options.out, "Folder to create; must not exist")->required();
  verb->add_option("--member", flags->members, "Members: 0, 0-4 or 0,2; default: all");
  verb->add_option("--rows", flags->rows,
                   "Rows of each member, from 0: 0-50000 (end excluded) or 50000-; default: all");
  verb->callback([flags, exit_code] { *exit_code = Finish(RunExport(*flags), /*json=*/false, kExitFailure); });
}

void AddCopy(CLI::App* app, int* exit_code) {
  auto flags = std::make_shared<CopyFlags>();
  CLI::App* verb = app->add_subcommand("copy", kAboutCopy);
  verb->add_option("from", flags->from, "Run folder, or place of an archive")->required();
  CLI::Option* const to = verb->add_option("to", flags->to, "Place of an archive, or a new run folder");
  verb->add_flag("--own", flags->own,
                 "The new folder goes on writing the archive, as a resume by `train --archive` does; the folder that "
                 "wrote it so far may not any more")
      ->needs(to);
  verb->add_flag("--json", flags->json, "One JSON object that says what the place holds, without TO")->excludes(to);
  verb->add_flag("--check", flags->options.only_check,
                 "Copies nothing: says whether the run folder FROM may write to TO")
      ->needs(to);
  verb->add_flag("--keep-state", flags->options.keep_state)->group("");  // of `train --archive`, for `status`
  verb->callback([flags, exit_code] { *exit_code = Finish(Copy(*flags), flags->json); });
}

void AddVerify(CLI::App* app, int* exit_code) {
  struct Flags {
    std::string run_dir;
    bool repair = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = app->add_subcommand("verify", kAboutVerify);
  verb->add_option("run_dir", flags->run_dir, "Run folder; its processes may run")->required();
  verb->add_flag("--repair", flags->repair,
                 "Repairs what has one right answer: cuts unfinished tails, moves a damaged newest checkpoint aside, "
                 "rebuilds a failure ring, removes left-over *.tmp; only while nothing runs");
  verb->callback([flags, exit_code] { *exit_code = RunVerify(flags->run_dir, flags->repair); });
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
