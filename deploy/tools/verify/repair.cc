#include "deploy/tools/verify/repair.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "replay/member_table.h"

namespace datacom::verify {
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
  for (const char* folder : {"", "replay", "checkpoints", "policies", "cluster", "ledger"}) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(run->Path(folder), error)) {
      const fs::path& path = entry.path();
      const std::string name = path.lexically_relative(run->dir).string();
      if (!absl::EndsWith(name, ".tmp")) continue;
      run->report->Note(absl::StrCat(name, ": left by an interrupted write"), [path, name]() {
        std::error_code failed;
        fs::remove_all(path, failed);
        return failed ? absl::StatusOr<std::string>(ErrnoStatus(failed.value(), "remove " + path.string()))
                      : absl::StatusOr<std::string>(name + ": removed");
      });
    }
  }
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
