#include "deploy/tools/verify/run.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/config/task_files.h"
#include "replay/member_table.h"

namespace datacom::verify {
namespace {

constexpr uint64_t kMostPerFile = 100;
constexpr std::chrono::seconds kInterval{2};

// Damaged files hold any bytes, and a finding is one line.
std::string Printable(absl::string_view text) { return absl::StrReplaceAll(ForTerminal(text), {{"\n", "\\x0a"}}); }

absl::string_view WithoutName(absl::string_view what, absl::string_view file) {
  absl::string_view rest = what;
  if (!absl::ConsumePrefix(&rest, file)) return what;
  const bool colon = absl::ConsumePrefix(&rest, ":");
  return absl::ConsumePrefix(&rest, " ") || colon ? rest : what;
}

}  // namespace

void Report::Keep(Repair repair) {
  if (repair != nullptr) repairs_.push_back(std::move(repair));
}

void Report::Part(absl::string_view kind, absl::string_view counts) {
  absl::StrAppendFormat(&parts_, "%-12s %s\n", kind, Printable(counts));
}

void Report::Note(absl::string_view text, Repair repair) {
  absl::StrAppend(&notes_, "note: ", Printable(text), "\n");
  Keep(std::move(repair));
}

void Report::Damage(const std::string& file, absl::string_view what, Repair repair) {
  Keep(std::move(repair));
  if (++by_file_[file] > kMostPerFile) return;
  const std::string text = absl::StrReplaceAll(absl::StripPrefix(what, folder_), {{" " + folder_, " "}});
  damages_.push_back(absl::StrCat("damage: ", file, ": ", Printable(WithoutName(text, file)), "\n"));
}

std::string Report::Text() const {
  std::string text = parts_ + notes_;
  uint64_t count = 0;
  for (const std::string& damage : damages_) text += damage;
  for (const auto& [file, findings] : by_file_) {
    count += findings;
    if (findings > kMostPerFile)
      absl::StrAppend(&text, "damage: ", file, ": ", findings - kMostPerFile, " more findings\n");
  }
  if (count == 0) return text + "sound: no damage was found\n";
  return absl::StrCat(text, "damaged: ", count, count == 1 ? " finding\n" : " findings\n");
}

void Progress::Tell(absl::string_view what, uint64_t done, uint64_t all) {
  const Clock::Time now = Clock::Real().Now();
  if (now - told_ < kInterval) return;
  told_ = now;
  const std::string line = absl::StrCat("verify: ", what, ", ", all == 0 ? 0 : 100 * done / all, " %\n");
  std::fputs(line.c_str(), stderr);
}

namespace {

namespace fs = std::filesystem;

absl::Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::remove_all(to, error);
  fs::rename(from, to, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("rename ", from, " to ", to));
  return SyncFile(fs::path(to).parent_path().string());
}

}  // namespace

Report::Repair CutTail(const VerifiedRun& run, const std::string& file, uint64_t bytes) {
  const std::string path = run.Path(file);
  std::error_code failed;
  if (run.KeptLength(file) > bytes || fs::is_symlink(path, failed)) return nullptr;  // others may use what a link names
  return [path, file, bytes]() -> absl::StatusOr<std::string> {
    std::error_code error;
    const uint64_t before = fs::file_size(path, error);
    if (!error) fs::resize_file(path, bytes, error);
    if (error) return ErrnoStatus(error.value(), "cut " + path);
    RETURN_IF_ERROR(SyncFile(path));
    return absl::StrCat(file, ": cut ", before - bytes, " bytes of an unfinished tail");
  };
}

Report::Repair RebuildFailures(const VerifiedRun& run, uint32_t member) {
  return [settings = run.settings, member, schema = run.schema]() -> absl::StatusOr<std::string> {
    const std::string name = absl::StrCat("member_", member, ".failures");
    const std::string path = absl::StrCat(settings.folder, "/", name), aside = path + ".damaged";
    std::error_code error;
    const bool exists = fs::exists(path, error);
    if (exists) RETURN_IF_ERROR(Rename(path, aside));
    const absl::StatusOr<std::unique_ptr<replay::MemberTable>> table =
        replay::MemberTable::Open(schema, settings, member);
    const absl::Status status = table.ok() ? (*table)->Complete((*table)->start()) : table.status();
    if (!status.ok()) {
      if (exists) (void)Rename(aside, path);
      return status;
    }
    RETURN_IF_ERROR(SyncFile(path));
    return absl::StrCat("replay/", name, ": rebuilt from the ", (*table)->inserted(), " rows that are held; ",
                        (*table)->failures(), " of them have cost > 0");
  };
}

Report::Repair MoveCheckpointAside(const VerifiedRun& run, uint64_t update) {
  return [path = absl::StrCat(run.dir, "/checkpoints/", update), update]() -> absl::StatusOr<std::string> {
    RETURN_IF_ERROR(Rename(path, path + ".damaged"));
    return absl::StrCat("checkpoints/", update, ": renamed to ", update, ".damaged; an older checkpoint is sound");
  };
}

void FindLeftovers(VerifiedRun* run) {
  if (run->running) return;
  for (const char* folder : {"", "replay", "checkpoints", "policies", "cluster", "ledger", kTaskFilesFolder}) {
    std::error_code error;
    if (fs::is_symlink(run->Path(folder), error)) continue;  // others may use what it names
    for (const fs::directory_entry& entry : fs::directory_iterator(run->Path(folder), error)) {
      const fs::path& path = entry.path();
      const std::string name = path.lexically_relative(run->dir).string();
      // Only checkpoints are written as folders.
      const bool somebodys = entry.is_directory(error) && folder != absl::string_view("checkpoints");
      if (!absl::EndsWith(name, ".tmp") || somebodys) continue;
      run->report->Note(absl::StrCat(name, ": left by an interrupted write"), [path, name]() {
        std::error_code failed;
        fs::remove_all(path, failed);
        return failed ? absl::StatusOr<std::string>(ErrnoStatus(failed.value(), "remove " + path.string()))
                      : absl::StatusOr<std::string>(name + ": removed");
      });
    }
  }
}

std::string Count(uint64_t number, const std::string& singular, const std::string& plural) {
  return absl::StrCat(number, " ", number == 1 ? singular : plural.empty() ? singular + "s" : plural);
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
