#include "deploy/cli/map.h"

#include <chrono>
#include <filesystem>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "deploy/cli/process.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

constexpr char kResolution[] = "61";  // points per side: enough for a page, about 25 kB per epoch
constexpr std::chrono::milliseconds kTick{10};

}  // namespace

absl::StatusOr<std::string> MakeMap(const std::string& run_dir) {
  const std::string out = run_dir + "/feasibility_map.json", log = run_dir + "/logs/render.log";
  RETURN_IF_ERROR(MakeFolders(run_dir + "/logs"));
  std::error_code ignored;
  std::filesystem::remove(log, ignored);
  Process process;
  RETURN_IF_ERROR(process.Start({absl::StrCat(BinFolder(), "/datacom-tools"), "render", run_dir, "--map",
                                 "--resolution", kResolution, "--out", out},
                                log));
  std::optional<int> code;
  while (!(code = process.Poll()).has_value()) {
    if (Stop::Process().WaitFor(kTick)) return absl::CancelledError("stopping was requested");
  }
  if (*code == kExitOk) return ReadFile(out);
  const std::string said = TailOfFile(log, 3);
  return absl::UnavailableError(said.empty() ? absl::StrCat("datacom-tools ended with ", *code)
                                             : std::string(absl::StripAsciiWhitespace(said)));
}

}  // namespace datacom::cli
